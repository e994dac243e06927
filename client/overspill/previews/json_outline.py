"""Outline a JSON text in a few lines: its keys, types and lengths, and the members that tell of errors.

Cheap and bounded: of a long text only the beginning is parsed, and a `+` stands behind numbers that may be
higher.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from overspill.previews.json_errors import cut_short, error_lines, printable_key
from overspill.reading.json_shape import closers
from overspill.text import measure

if TYPE_CHECKING:
    from overspill.previews.excerpt import Excerpt

WHOLE: Final = 384 * 1024
"""Up to this length a text is parsed as a whole; of a longer one its first `_BEGINNING_CHARS`."""
_BEGINNING_CHARS: Final = 32 * 1024
_SAMPLES: Final = 50
_DEPTH: Final = 4
_KEYS: Final = 24
_KINDS: Final = 3
_LEAST: Final = 40
_LEAST_LINES: Final = 2
_DEEPEST: Final = 100
_MOST_BLANKS: Final = 1_000
_TOKEN: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{},]', re.DOTALL)
_NOT_JSON: Final = (msgspec.DecodeError, UnicodeEncodeError, RecursionError)


class JsonOutline(NamedTuple):
    """`shape` is one line. Each of the `errors` is a line with the path of a member."""

    shape: str
    errors: list[str]
    is_whole: bool = False

    def within(self, max_bytes: int, max_lines: int) -> str:
        """Return as many lines as fit. The shape is cut short if it would leave no room for errors."""
        if max_lines < 1 or max_bytes < _LEAST:
            return ""
        most = max_bytes if not self.errors else max_bytes // 2
        lines = [cut_short(self.shape, most - 1)]
        left = max_bytes - measure.size(lines[0]) - 1
        for line in self.errors[: max_lines - 1]:
            left -= measure.size(line) + 1
            if left < 0:
                break
            lines.append(line)
        return "".join(f"{line}\n" for line in lines)


def json_outline(excerpt: Excerpt) -> JsonOutline | None:
    """Return the outline of an excerpt; None if it is neither JSON nor JSON Lines."""
    text = excerpt.text
    begin = int(text.startswith("\ufeff"))
    while begin < _MOST_BLANKS and text[begin : begin + 1].isspace():
        begin += 1
    if text[begin : begin + 1] not in ("{", "["):
        return None
    if excerpt.is_whole and len(text) <= WHOLE:
        try:
            value = msgspec.json.decode(text[begin:] if begin else text)
        except _NOT_JSON:
            pass
        else:
            return JsonOutline(f"JSON: {_shape([value], 0, _DEPTH)}", error_lines(value), is_whole=True)
    beginning = text[begin : min(begin + _BEGINNING_CHARS, excerpt.first_stop)]
    return _of_lines(beginning, excerpt.whole.lines) or _of_beginning(beginning, excerpt)


def _of_lines(beginning: str, lines: int) -> JsonOutline | None:
    whole = beginning.split("\n")[:-1]
    try:
        values = [msgspec.json.decode(line) for line in islice(filter(str.strip, whole), _SAMPLES)]
    except _NOT_JSON:
        return None
    if len(values) < _LEAST_LINES or not all(isinstance(value, (dict, list)) for value in values):
        return None
    return JsonOutline(f"JSON Lines: {lines:,} of {_shape(values, 0, _DEPTH)}", [])


def _of_beginning(beginning: str, excerpt: Excerpt) -> JsonOutline | None:
    if excerpt.is_whole and len(excerpt.text) <= WHOLE:
        return None
    try:
        closed, levels = _with_closed_brackets(beginning)
        value = msgspec.json.decode(closed)
    except _NOT_JSON:
        return None
    return JsonOutline(f"JSON (from its beginning): {_shape([value], levels, _DEPTH)}", [])


def _with_closed_brackets(text: str) -> tuple[str, int]:
    """Return a beginning of `text` with all open brackets closed, and how many these are.

    It ends at the outermost comma that loses no more than half of the text, so that the last item is whole.
    """
    depth = 0
    last: dict[int, int] = {}
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in ("{", "["):
            depth += 1
        elif mark == "," and 0 < depth <= _DEEPEST:
            last[depth] = token.start()
        elif mark in ("]", "}"):
            if not depth:
                return "", 0
            depth -= 1
    best = [last[depth] for depth in sorted(last) if last[depth] * 2 >= len(text)]
    stop = best[0] if best else max(last.values(), default=0)
    missing = closers(text[:stop].encode("utf-8", "surrogatepass"))
    return text[:stop] + missing.decode(), len(missing)


def _shape(values: list[Any], levels: int, depth: int) -> str:
    """Describe what values in the same place have in common. Behind the outer `levels` there may be more."""
    kinds: dict[str, list[Any]] = {}
    for value in values:
        kinds.setdefault(_kind(value), []).append(value)
    shown = [_one_kind(kind, some, levels, depth) for kind, some in islice(kinds.items(), _KINDS)]
    return "|".join(shown + ["…"] * (len(kinds) > _KINDS))


def _one_kind(kind: str, values: list[Any], levels: int, depth: int) -> str:
    if kind == "object":
        return f"object {_members(values, levels, depth)}"
    return f"array of {_items(values, levels, depth)}" if kind == "array" else kind


def _kind(value: Any) -> str:
    match value:
        case dict():
            return "object"
        case list():
            return "array"
        case str():
            return "string"
        case bool():
            return "boolean"
        case None:
            return "null"
        case _:
            return "number"


def _members(values: list[dict[str, Any]], levels: int, depth: int) -> str:
    if not depth:
        return "{…}"
    keys: dict[str, list[Any]] = {}
    for value in values:
        for key, member in islice(value.items(), 4 * _KEYS):
            keys.setdefault(key, []).append(member)
    parts = [
        f"{printable_key(key)}{'?' * (len(members) < len(values))}: {_shape(members, levels - 1, depth - 1)}"
        for key, members in islice(keys.items(), _KEYS)
    ]
    count = max(map(len, values))
    if count > _KEYS:
        parts.append(f"… {count - _KEYS:,} more keys")
    return f"{{{', '.join(parts)}}}"


def _items(values: list[list[Any]], levels: int, depth: int) -> str:
    more = "+" if levels > 0 else ""
    lengths = [len(value) for value in values]
    low, high = min(lengths), max(lengths)
    count = f"{low:,}{more}" if low == high else f"{low:,}-{high:,}{more}"
    samples = [item for value in values for item in _spread(value)][:_SAMPLES]
    kinds = dict.fromkeys(map(_kind, samples))
    if len(kinds) != 1:
        return (
            f"{count} values ({_shape(samples, levels - 1, depth - 1)})"
            if samples and depth
            else f"{count} values"
        )
    kind = next(iter(kinds))
    noun = f"{count} {kind}{'' if high == 1 else 's'}"
    if not depth or kind not in ("object", "array"):
        return noun
    if kind == "object":
        return f"{noun} {_members(samples, levels - 1, depth - 1)}"
    return f"{noun} of {_items(samples, levels - 1, depth - 1)}"


def _spread(values: list[Any]) -> list[Any]:
    """Return samples of an array: its first items, and some from all over the rest."""
    half = _SAMPLES // 2
    return values[:half] + values[half :: max(1, (len(values) - half) // half)]
