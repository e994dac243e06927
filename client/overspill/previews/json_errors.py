"""The members of a JSON text that tell of errors: each with its path, and what stands beside it."""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgspec

from overspill.previews.folding import masked
from overspill.previews.head_tail import prefix
from overspill.text import measure
from overspill.text.sanitize import sanitize

if TYPE_CHECKING:
    from collections.abc import Iterator

_KEY: Final = 40
_VALUE: Final = 160
_CONTAINERS: Final = 10_000
_MOST_TELLING: Final = 1_000
"""Objects looked at, and how many of those that tell of errors."""
_MOST_TROUBLES: Final = 12
_LONGEST_PATH: Final = 12
_PLAIN_KEY: Final = re.compile(r"[\w$@.-]{1,40}")

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
_EXPLAINING_KEYS: Final[tuple[str, ...]] = (
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
    r"(?:.*_)?(?:error(?:ed)?|fail(?:ed|ure|ing)?|fatal|critical|crash\w*|time[d_ ]*out|denied|rejected"
    r"|unhealthy|aborted|panic|emergency|invalid)",
    re.IGNORECASE,
)
_BAD_REQUEST: Final = 400
_LAST_HTTP: Final = 599


def error_lines(value: Any) -> list[str]:
    """A line for each object that has a member which tells of an error; those alike once, with a count."""
    found: Counter[str] = Counter()
    lines: dict[str, str] = {}
    for path, told in islice(_telling(value), _MOST_TELLING):
        key = masked(told)
        found[key] += 1
        lines.setdefault(key, f"at {_path(path)}: {told}")
    ordered = sorted(lines, key=lambda key: "rror" not in lines[key].lower())[:_MOST_TROUBLES]
    least = "" if found.total() < _MOST_TELLING else "at least "
    return [
        lines[key] + (f" (and {least}{found[key] - 1:,} more like it)" if found[key] > 1 else "")
        for key in ordered
    ]


def _telling(value: Any) -> Iterator[tuple[Any, str]]:
    for path, item in islice(_objects(value), _CONTAINERS):
        if not _TELLING_KEYS.isdisjoint(item) and (told := _told(item)):
            yield path, told


def _objects(value: Any) -> Iterator[tuple[Any, dict[str, Any]]]:
    """All objects in the order of the text, each with its path: the parent's path, and a key or an index."""
    stack: list[tuple[Any, Any]] = [(None, value)]
    for _ in range(2 * _CONTAINERS):
        if not stack:
            return
        path, item = stack.pop()
        if isinstance(item, dict):
            yield path, item
            inner = [
                ((path, key), member)
                for key, member in islice(item.items(), _CONTAINERS)
                if isinstance(member, (dict, list))
            ]
        else:
            inner = [
                ((path, at), member)
                for at, member in enumerate(item[:_CONTAINERS])
                if isinstance(member, (dict, list))
            ]
        stack += reversed(inner)


def _told(item: dict[str, Any]) -> str:
    telling = [key for key, value in item.items() if key in _TELLING_KEYS and _is_bad(key, value)]
    if not telling:
        return ""
    around = [key for key in _EXPLAINING_KEYS if key in item and isinstance(item[key], (str, int))]
    keys = list(dict.fromkeys(telling[:4] + around[:4]))
    return ", ".join(f"{printable_key(key)}: {quoted(item[key], _VALUE)}" for key in keys)


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
        parts.append(f"[{key}]" if isinstance(key, int) else f".{printable_key(key)}")
    shown = parts[::-1]
    return "$" + "".join(shown if len(shown) <= _LONGEST_PATH else [*shown[:6], "…", *shown[-5:]])


def printable_key(key: str) -> str:
    """Return a name in an object, safe to show; an unusual one in quotes."""
    if _PLAIN_KEY.fullmatch(key):
        return sanitize(key)
    return quoted(key, _KEY)


def quoted(value: Any, most: int) -> str:
    """`value` as JSON on one line, safe to show and cut to `most` characters."""
    try:
        text = msgspec.json.encode(value[: 4 * most] if isinstance(value, str) else value).decode()
    except (msgspec.EncodeError, UnicodeEncodeError, RecursionError):
        text = repr(value)
    text = sanitize(text[: 8 * most]).replace("\t", " ")
    return cut_short(text, most)


def cut_short(text: str, most: int) -> str:
    """`text` in at most `most` bytes."""
    if measure.size(text) <= most:
        return text
    return text[: prefix(text[:most], max(0, most - len("…".encode())))] + "…"
