"""Describe JSON in a few words: keys, types and lengths, with what all items of an array have in common.

    array of 1,204 objects {id: number, name?: string, tags: array of 0-3 strings}

A `?` stands behind a key that some of the objects lack. A `+` stands behind a number that may be higher,
because only the beginning of the text was parsed.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

WHOLE_BYTES: Final = 1024 * 1024
"""Up to this size a summary parses all of a text; of a longer one only the first `HEAD_BYTES`."""
HEAD_BYTES: Final = 64 * 1024
_LINES_CHARS: Final = 32 * 1024
"""The beginning of JSON Lines that is parsed."""
_MIN_LINES: Final = 2
_SAMPLES: Final = 50
"""The most lines, and items of an array, that are looked at."""
_DEPTH: Final = 4
_KEYS: Final = 24
_KINDS: Final = 3
_KEY_CHARS: Final = 60
_SHAPE_CHARS: Final = 1_500
_DEEPEST_CUT: Final = 100
_TOKEN: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{},]', re.DOTALL)
_NAMES: Final = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}
_CLOSERS: Final = {"{": "}", "[": "]"}
_NOT_JSON: Final = (msgspec.DecodeError, UnicodeEncodeError, RecursionError)


class ParsedJson(NamedTuple):
    """One value, or those of some JSON Lines. There may be more in the outer `cut_levels` of it."""

    values: list[Any]
    is_lines: bool = False
    cut_levels: int = 0

    def shape(self, show_key: Callable[[str], str]) -> str:
        """Return the shape. `show_key` says how a key is written."""
        return _Shapes(show_key).of(self.values, self.cut_levels, _DEPTH)


def parsed(text: str, *, is_whole: bool) -> ParsedJson | None:
    """Parse JSON or JSON Lines, or their beginning if that is all there is; None if it is neither."""
    if is_whole:
        try:
            return ParsedJson([msgspec.json.decode(text)])
        except _NOT_JSON:
            pass
    return _of_lines(text[:_LINES_CHARS]) or (None if is_whole else _of_beginning(text))


def shape_of(data: bytes, *, is_whole: bool) -> str | None:
    """Return the shape of all of a text, or of its beginning; None if it is not JSON."""
    found = parsed(data.decode(errors="replace").removeprefix("\ufeff").lstrip(), is_whole=is_whole)
    if found is None:
        return None
    shape = f"{'lines of ' if found.is_lines else ''}{found.shape(_shortened)}"
    return shape if len(shape) <= _SHAPE_CHARS else f"{shape[:_SHAPE_CHARS]}…"


def _shortened(key: str) -> str:
    return key if len(key) <= _KEY_CHARS else f"{key[:_KEY_CHARS]}…"


def _of_lines(beginning: str) -> ParsedJson | None:
    *whole, last = beginning.split("\n")  # the last may be cut
    try:
        values = [msgspec.json.decode(line) for line in islice(filter(str.strip, whole), _SAMPLES)]
    except _NOT_JSON:
        return None
    count = len(values) + last.startswith(("{", "["))
    if not values or count < _MIN_LINES or not all(isinstance(value, (dict, list)) for value in values):
        return None
    return ParsedJson(values, is_lines=True)


def _of_beginning(text: str) -> ParsedJson | None:
    stop = _last_cut(text)
    missing = _closers(text[:stop])
    try:
        return ParsedJson([msgspec.json.decode(text[:stop] + missing)], cut_levels=len(missing))
    except _NOT_JSON:
        return None


def _last_cut(text: str) -> int:
    """Return the outermost comma that loses no more than half of the text, so that the last item is whole."""
    depth = 0
    last: dict[int, int] = {}
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in _CLOSERS:
            depth += 1
        elif mark == "," and 0 < depth <= _DEEPEST_CUT:
            last[depth] = token.start()
        elif mark in ("]", "}"):
            if not depth:
                return 0
            depth -= 1
    best = [last[depth] for depth in sorted(last) if last[depth] * 2 >= len(text)]
    return best[0] if best else max(last.values(), default=0)


def _closers(text: str) -> str:
    """Return the brackets that close everything that is open at the end of cut JSON."""
    open_: list[str] = []
    for token in _TOKEN.finditer(text):
        if token[0] in _CLOSERS:
            open_.append(_CLOSERS[token[0]])
        elif token[0] in ("]", "}"):
            open_.pop()
    return "".join(reversed(open_))


class _Shapes:
    """Describes values. In the outer `levels` of them there may be more; `depth` more levels are shown."""

    def __init__(self, show_key: Callable[[str], str]) -> None:
        self._show_key = show_key

    def of(self, values: list[Any], levels: int, depth: int) -> str:
        """Describe the common features of values in the same place."""
        kinds: dict[str, list[Any]] = {}
        for value in values:
            kinds.setdefault(_json_type(value), []).append(value)
        shown = [self._of_type(kind, some, levels, depth) for kind, some in islice(kinds.items(), _KINDS)]
        return "|".join(shown + ["…"] * (len(kinds) > _KINDS))

    def _of_type(self, kind: str, values: list[Any], levels: int, depth: int) -> str:
        if kind == "object":
            return f"object {self._members(values, levels, depth)}"
        return f"array of {self._items(values, levels, depth)}" if kind == "array" else kind

    def _members(self, values: list[dict[str, Any]], levels: int, depth: int) -> str:
        if not depth:
            return "{…}"
        keys: dict[str, list[Any]] = {}
        for value in values:
            for key, member in islice(value.items(), 4 * _KEYS):
                keys.setdefault(key, []).append(member)
        parts = []
        for key, members in islice(keys.items(), _KEYS):
            optional = "?" if len(members) < len(values) else ""
            shape = self.of(members, levels - 1, depth - 1)
            parts.append(f"{self._show_key(key)}{optional}: {shape}")
        count = max(map(len, values))
        if count > _KEYS:
            parts.append(f"… {count - _KEYS:,} more keys")
        return f"{{{', '.join(parts)}}}"

    def _items(self, values: list[list[Any]], levels: int, depth: int) -> str:
        lengths = [len(value) for value in values]
        low, high = min(lengths), max(lengths)
        count = (f"{low:,}" if low == high else f"{low:,}-{high:,}") + "+" * (levels > 0)
        samples = [item for value in values for item in _spread(value)][:_SAMPLES]
        kinds = set(map(_json_type, samples))
        if len(kinds) != 1:
            inside = f" ({self.of(samples, levels - 1, depth - 1)})" if samples and depth else ""
            return f"{count} values{inside}"
        kind = kinds.pop()
        noun = f"{count} {kind}{'' if high == 1 else 's'}"
        if depth and kind == "object":
            return f"{noun} {self._members(samples, levels - 1, depth - 1)}"
        if depth and kind == "array":
            return f"{noun} of {self._items(samples, levels - 1, depth - 1)}"
        return noun


def _json_type(value: Any) -> str:
    """Return JSON's name for the type of a parsed value."""
    return _NAMES.get(type(value), "number")


def _spread(values: list[Any]) -> list[Any]:
    """Return samples of an array: its first items, and some from all over the rest."""
    half = _SAMPLES // 2
    return values[:half] + values[half :: max(1, (len(values) - half) // half)]
