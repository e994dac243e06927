"""What is in a JSON text, in a few lines: its keys, types and lengths, and the members that tell of errors.

Cheap and bounded: a long text is parsed at its beginning only, and a `+` stands behind what may be more.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from overspill import measure
from overspill.ends import prefix
from overspill.folding import form
from overspill.plain import clean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from overspill.excerpt import Excerpt

WHOLE: Final = 2 * 1024 * 1024
"""Characters up to which a text is parsed as a whole; of a longer one its first `_BEGINNING`."""
_BEGINNING: Final = 64 * 1024
_SAMPLES: Final = 50
_DEPTH: Final = 4
_KEYS: Final = 24
_KINDS: Final = 3
_KEY: Final = 40
_VALUE: Final = 160
_CONTAINERS: Final = 50_000
_MOST_TROUBLES: Final = 12
_LEAST: Final = 40
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*+(?P<closed>")?|[\[\]{},]', re.DOTALL)
_CLOSERS: Final = {"{": "}", "[": "]"}
_PLAIN_KEY: Final = re.compile(r"[\w$@.-]{1,40}")
_NOT_JSON: Final = (msgspec.DecodeError, UnicodeEncodeError, RecursionError)

_TROUBLE_KEYS: Final = frozenset(
    key
    for word in ("error", "errors", "exception", "failure", "failures", "fault", "err", "traceback", "stderr")
    for key in (word, word.capitalize(), word.upper())
) | {
    "errorMessage",
    "error_message",
    "errorCode",
    "error_code",
    "failureReason",
    "failure_reason",
    "lastError",
    "last_error",
}
_STATE_KEYS: Final = frozenset(
    {
        "status",
        "state",
        "result",
        "outcome",
        "level",
        "severity",
        "conclusion",
        "phase",
        "type",
        "kind",
        "Status",
        "State",
        "health",
    }
)
_CODE_KEYS: Final = frozenset(
    {
        "status",
        "statusCode",
        "status_code",
        "httpStatus",
        "http_status",
        "code",
        "exitCode",
        "exit_code",
        "returncode",
    }
)
_FLAG_KEYS: Final = frozenset({"success", "ok", "succeeded", "passed", "healthy", "valid"})
_TELLING_KEYS: Final = _TROUBLE_KEYS | _STATE_KEYS | _CODE_KEYS | _FLAG_KEYS
_EXPLAINING_KEYS: Final = (
    "message",
    "reason",
    "detail",
    "details",
    "description",
    "title",
    "msg",
    "cause",
    "code",
    "name",
    "id",
)
_BAD_STATE: Final = re.compile(
    r"(?:.*_)?(?:error(?:ed)?|fail(?:ed|ure|ing)?|fatal|critical|crash\w*|time[d_ ]*out|denied|rejected|unhealthy|aborted|panic|emergency|invalid)",
    re.IGNORECASE,
)
_BAD_REQUEST: Final = 400
_LAST_HTTP: Final = 599


class Sketch(NamedTuple):
    """`shape` is one line; `troubles` are lines, each with the path of a member."""

    shape: str
    troubles: list[str]
    is_whole: bool = False

    def within(self, max_bytes: int, max_lines: int) -> str:
        """As many of the lines as fit; the shape is cut short where it would leave no room for troubles."""
        if max_lines < 1 or max_bytes < _LEAST:
            return ""
        most = max_bytes if not self.troubles else max_bytes // 2
        lines = [_cut(self.shape, most - 1)]
        left = max_bytes - measure.size(lines[0]) - 1
        for line in self.troubles[: max_lines - 1]:
            left -= measure.size(line) + 1
            if left < 0:
                break
            lines.append(line)
        return "".join(f"{line}\n" for line in lines)


def of(excerpt: Excerpt) -> Sketch | None:
    """None where the text is not JSON, or JSON Lines."""
    text = excerpt.text
    begin = re.compile(r"\ufeff?\s{0,1000}").match(text).end()
    if text[begin : begin + 1] not in ("{", "["):
        return None
    if excerpt.is_whole and len(text) <= WHOLE:
        try:
            value = msgspec.json.decode(text[begin:] if begin else text)
        except _NOT_JSON:
            pass
        else:
            return Sketch(f"JSON: {_shape([value], '', _DEPTH)}", _troubles(value), is_whole=True)
    beginning = text[begin : min(begin + _BEGINNING, excerpt.first_stop)]
    return _of_lines(beginning, excerpt.whole.lines) or _of_beginning(beginning, excerpt)


def _of_lines(beginning: str, lines: int) -> Sketch | None:
    whole = beginning.split("\n")[:-1]
    try:
        values = [msgspec.json.decode(line) for line in islice(filter(str.strip, whole), _SAMPLES)]
    except _NOT_JSON:
        return None
    if len(values) < 2 or not all(isinstance(value, (dict, list)) for value in values):
        return None
    return Sketch(f"JSON Lines: {lines:,} of {_shape(values, '', _DEPTH)}", [])


def _of_beginning(beginning: str, excerpt: Excerpt) -> Sketch | None:
    if excerpt.is_whole and len(excerpt.text) <= WHOLE:
        return None
    try:
        value = msgspec.json.decode(_closed(beginning))
    except _NOT_JSON:
        return None
    return Sketch(f"JSON (from its beginning): {_shape([value], '+', _DEPTH)}", [])


def _closed(text: str) -> str:
    """The longest beginning of `text` that ends with a value, with all that is open closed; else nothing."""
    open_: list[str] = []
    best = ""
    last = -1
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in _CLOSERS:
            open_.append(_CLOSERS[mark])
        elif mark == "," and open_:
            best, last = "".join(reversed(open_)), token.start()
        elif mark in ("]", "}"):
            if not open_:
                return ""
            open_.pop()
    return text[:last] + best if last >= 0 else ""


# --- the shape -----------------------------------------------------------------------------------------


def _shape(values: list[Any], more: str, depth: int) -> str:
    """What these values, which stand in the same place, have in common."""
    kinds: dict[str, list[Any]] = {}
    for value in values:
        kinds.setdefault(_kind(value), []).append(value)
    shown = [_one_kind(kind, some, more, depth) for kind, some in islice(kinds.items(), _KINDS)]
    return "|".join(shown + ["…"] * (len(kinds) > _KINDS))


def _one_kind(kind: str, values: list[Any], more: str, depth: int) -> str:
    if kind == "object":
        return f"object {_members(values, more, depth)}"
    return f"array of {_items(values, more, depth)}" if kind == "array" else kind


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


def _members(values: list[dict[str, Any]], more: str, depth: int) -> str:
    if not depth:
        return "{…}"
    keys: dict[str, list[Any]] = {}
    for value in values:
        for key, member in islice(value.items(), 4 * _KEYS):
            keys.setdefault(key, []).append(member)
    parts = [
        f"{_key(key)}{'?' * (len(members) < len(values))}: {_shape(members, more, depth - 1)}"
        for key, members in islice(keys.items(), _KEYS)
    ]
    count = max(map(len, values))
    if count > _KEYS:
        parts.append(f"… {count - _KEYS:,}{more} more keys")
    return f"{{{', '.join(parts)}}}"


def _items(values: list[list[Any]], more: str, depth: int) -> str:
    lengths = [len(value) for value in values]
    low, high = min(lengths), max(lengths)
    count = f"{low:,}{more}" if low == high else f"{low:,}-{high:,}{more}"
    samples = [item for value in values for item in _spread(value)][:_SAMPLES]
    kinds = dict.fromkeys(map(_kind, samples))
    if len(kinds) != 1:
        return (
            f"{count} values ({_shape(samples, more, depth - 1)})" if samples and depth else f"{count} values"
        )
    kind = next(iter(kinds))
    noun = f"{count} {kind}{'' if high == 1 else 's'}"
    if not depth or kind not in ("object", "array"):
        return noun
    if kind == "object":
        return f"{noun} {_members(samples, more, depth - 1)}"
    return f"{noun} of {_items(samples, more, depth - 1)}"


def _spread(values: list[Any]) -> list[Any]:
    """Samples of an array: its first items, and some all over the rest."""
    half = _SAMPLES // 2
    return values[:half] + values[half :: max(1, (len(values) - half) // half)]


def _key(key: str) -> str:
    if _PLAIN_KEY.fullmatch(key):
        return clean(key)
    return _quoted(key, _KEY)


def _quoted(value: Any, most: int) -> str:
    """`value` as JSON on one line, safe to show and cut to `most` characters."""
    try:
        text = msgspec.json.encode(value[: 4 * most] if isinstance(value, str) else value).decode()
    except (msgspec.EncodeError, UnicodeEncodeError, RecursionError):
        text = repr(value)
    text = clean(text[: 8 * most]).replace("\t", " ")
    return _cut(text, most)


def _cut(text: str, most: int) -> str:
    """`text` in at most `most` bytes."""
    if measure.size(text) <= most:
        return text
    return text[: prefix(text[:most], max(0, most - len("…".encode())))] + "…"


# --- what tells of errors ------------------------------------------------------------------------------


def _troubles(value: Any) -> list[str]:
    """A line for each object that has a member which tells of an error; those alike once, with a count."""
    found: Counter[str] = Counter()
    lines: dict[str, str] = {}
    for path, item in islice(_objects(value), _CONTAINERS):
        if _TELLING_KEYS.isdisjoint(item):
            continue
        told = _told(item)
        if told:
            key = form(told)
            found[key] += 1
            lines.setdefault(key, f"at {_path(path)}: {told}")
    ordered = sorted(lines, key=lambda key: "rror" not in lines[key].lower())[:_MOST_TROUBLES]
    return [
        lines[key] + (f" (and {found[key] - 1:,} more like it)" if found[key] > 1 else "") for key in ordered
    ]


def _objects(value: Any) -> Iterator[tuple[Any, dict[str, Any]]]:
    """All objects in the order of the text, each with its path: pairs of the parent's path and a key or index."""
    stack: list[tuple[Any, Any]] = [(None, value)]
    for _ in range(4 * _CONTAINERS):
        if not stack:
            return
        path, item = stack.pop()
        if isinstance(item, dict):
            yield path, item
            inner = [
                ((path, key), member) for key, member in item.items() if isinstance(member, (dict, list))
            ]
        else:
            inner = [
                ((path, at), member) for at, member in enumerate(item) if isinstance(member, (dict, list))
            ]
        stack += reversed(inner)


def _told(item: dict[str, Any]) -> str:
    telling = [key for key, value in item.items() if key in _TELLING_KEYS and _is_bad(key, value)]
    if not telling:
        return ""
    around = [key for key in _EXPLAINING_KEYS if key in item and isinstance(item[key], (str, int))]
    keys = list(dict.fromkeys(telling[:4] + around[:4]))
    return ", ".join(f"{_key(key)}: {_quoted(item[key], _VALUE)}" for key in keys)


def _is_bad(key: str, value: Any) -> bool:
    if key in _FLAG_KEYS:
        return value is False
    if isinstance(value, bool) or not value:
        return value is True and key in _TROUBLE_KEYS
    if isinstance(value, str):
        return key in _TROUBLE_KEYS or (key in _STATE_KEYS and _BAD_STATE.fullmatch(value) is not None)
    if isinstance(value, int) and key in _CODE_KEYS:
        exits = key.lower().startswith(("exit", "return"))
        return exits or _BAD_REQUEST <= value <= _LAST_HTTP
    return key in _TROUBLE_KEYS


def _path(path: Any) -> str:
    parts: list[str] = []
    while path is not None:
        path, key = path
        parts.append(f"[{key}]" if isinstance(key, int) else f".{_key(key)}")
    shown = parts[::-1]
    return "$" + "".join(shown if len(shown) <= 12 else [*shown[:6], "…", *shown[-5:]])
