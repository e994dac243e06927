"""Find the members of a JSON value that report errors, each with its path and its explanation."""

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

_MAX_KEY_CHARS: Final = 40
_MAX_VALUE_CHARS: Final = 160
_MAX_OBJECTS: Final = 10_000
_MAX_TELLING: Final = 1_000
"""The search ends after this many objects, or after this many with errors."""
_MAX_LINES: Final = 12
_MAX_PATH_STEPS: Final = 12
_PLAIN_KEY: Final = re.compile(r"[\w$@.-]{1,40}")

_ERROR_KEYS: Final = frozenset(
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
_TELLING_KEYS: Final = _ERROR_KEYS | _STATE_KEYS | _CODE_KEYS | _FLAG_KEYS
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
    """Return a line for each object with a member that reports an error.

    Objects that are alike share a line.
    """
    found: Counter[str] = Counter()
    lines: dict[str, str] = {}
    for path, content in islice(_telling(value), _MAX_TELLING):
        key = masked(content)
        found[key] += 1
        lines.setdefault(key, f"at {_path(path)}: {content}")
    ordered = sorted(lines, key=lambda key: "rror" not in lines[key].lower())[:_MAX_LINES]
    least = "" if found.total() < _MAX_TELLING else "at least "
    return [
        lines[key] + (f" (and {least}{found[key] - 1:,} more like it)" if found[key] > 1 else "")
        for key in ordered
    ]


def _telling(value: Any) -> Iterator[tuple[Any, str]]:
    for path, item in islice(_objects(value), _MAX_OBJECTS):
        if not _TELLING_KEYS.isdisjoint(item) and (content := _message_of(item)):
            yield path, content


def _objects(value: Any) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield all objects in the order of the text. A path is the parent's path, and a key or index."""
    stack: list[tuple[Any, Any]] = [(None, value)]
    for _ in range(2 * _MAX_OBJECTS):
        if not stack:
            return
        path, item = stack.pop()
        if isinstance(item, dict):
            yield path, item
        members = islice(item.items() if isinstance(item, dict) else enumerate(item), _MAX_OBJECTS)
        inner = [((path, step), member) for step, member in members if isinstance(member, (dict, list))]
        stack += reversed(inner)


def _message_of(item: dict[str, Any]) -> str:
    telling = [key for key, value in item.items() if key in _TELLING_KEYS and _is_bad(key, value)]
    if not telling:
        return ""
    around = [key for key in _EXPLAINING_KEYS if key in item and isinstance(item[key], (str, int))]
    keys = list(dict.fromkeys(telling[:4] + around[:4]))
    return ", ".join(f"{printable_key(key)}: {quoted(item[key], _MAX_VALUE_CHARS)}" for key in keys)


def _is_bad(key: str, value: Any) -> bool:
    if key in _FLAG_KEYS:
        return value is False
    if isinstance(value, bool) or not value:
        return value is True and key in _ERROR_KEYS
    if isinstance(value, str):
        return key in _ERROR_KEYS or (key in _STATE_KEYS and _BAD_STATE.fullmatch(value) is not None)
    if isinstance(value, int) and key in _CODE_KEYS:
        exits = key.lower().startswith(("exit", "return"))
        return exits or _BAD_REQUEST <= value <= _LAST_HTTP
    return key in _ERROR_KEYS


def _path(path: Any) -> str:
    parts: list[str] = []
    while path is not None:
        path, key = path
        parts.append(f"[{key}]" if isinstance(key, int) else f".{printable_key(key)}")
    shown = parts[::-1]
    return "$" + "".join(shown if len(shown) <= _MAX_PATH_STEPS else [*shown[:6], "…", *shown[-5:]])


def printable_key(key: str) -> str:
    """Return a name in an object, safe to show; an unusual one in quotes."""
    if _PLAIN_KEY.fullmatch(key):
        return sanitize(key)
    return quoted(key, _MAX_KEY_CHARS)


def quoted(value: Any, limit: int) -> str:
    """Return `value` as JSON on one line, safe to show and cut to `limit` bytes."""
    try:
        text = msgspec.json.encode(value[: 4 * limit] if isinstance(value, str) else value).decode()
    except (msgspec.EncodeError, UnicodeEncodeError, RecursionError):
        text = repr(value)
    text = sanitize(text[: 8 * limit]).replace("\t", " ")
    return cut_short(text, limit)


def cut_short(text: str, limit: int) -> str:
    """Return `text` cut to at most `limit` bytes."""
    if measure.size(text) <= limit:
        return text
    return text[: prefix(text[:limit], max(0, limit - len("…".encode())))] + "…"
