"""Describe the shape of a JSON text in a few words: its keys and types, of the whole or of its beginning."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any, Final

import msgspec

WHOLE_BYTES: Final = 1024 * 1024
"""Up to this size a text is parsed as a whole; of a longer one only the first `HEAD_BYTES`."""
HEAD_BYTES: Final = 64 * 1024
_DEPTH: Final = 4
_KEYS: Final = 24
_ITEMS: Final = 50
_KINDS: Final = 3
_LENGTH: Final = 1_500
_KEY_LENGTH: Final = 60
_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{},]', re.DOTALL)
_CLOSERS: Final = {b"{": b"}", b"[": b"]"}


def shape_of(data: bytes, *, is_whole: bool) -> str | None:
    """Return the shape, as `{id: int, tags: [3 of str], owner: {name: str | null}}`; None if it is not JSON.

    `is_whole` says that `data` is all of the text. If not, a `+` stands behind numbers that may be higher.
    JSON Lines are described by their first line.
    """
    data = data.removeprefix(b"\xef\xbb\xbf").strip()
    try:
        return _value_text(msgspec.json.decode(data), "")
    except (msgspec.DecodeError, RecursionError):
        pass
    first, newline, _ = data.partition(b"\n")
    if newline:
        try:
            return f"lines of {_value_text(msgspec.json.decode(first), '')}"
        except (msgspec.DecodeError, RecursionError):
            pass
    return None if is_whole else _shape_of_beginning(data)


def _shape_of_beginning(data: bytes) -> str | None:
    repaired = _longest_whole(data)
    try:
        return _value_text(msgspec.json.decode(repaired), "+") if repaired else None
    except (msgspec.DecodeError, RecursionError):
        return None


def _longest_whole(data: bytes) -> bytes | None:
    """Return the longest beginning of `data` that ends with a value, with all open brackets closed."""
    depth, stop = 0, -1
    for token in _TOKEN.finditer(data):
        mark = token[0]
        if mark in _CLOSERS:
            depth += 1
        elif mark == b"," and depth:
            stop = token.start()
        elif mark in (b"]", b"}"):
            if not depth:
                return None
            depth -= 1
    return data[:stop] + closers(data[:stop]) if stop >= 0 else None


def closers(data: bytes) -> bytes:
    """Return the brackets that close all that is open at the end of `data`."""
    open_: list[bytes] = []
    for token in _TOKEN.finditer(data):
        if token[0] in _CLOSERS:
            open_.append(_CLOSERS[token[0]])
        elif token[0] in (b"]", b"}"):
            open_.pop()
    return b"".join(reversed(open_))


def _value_text(value: Any, more: str) -> str:
    text = _shape(value, more, _DEPTH)
    return text if len(text) <= _LENGTH else text[:_LENGTH] + "…"


def _shape(value: Any, more: str, depth: int) -> str:
    match value:
        case dict():
            return _object(value, more, depth)
        case list():
            return _array(value, more, depth)
        case None:
            return "null"
        case _:
            return type(value).__name__


def _object(value: dict[str, Any], more: str, depth: int) -> str:
    if not depth:
        return f"{{{len(value)}{more} keys}}" if value else "{}"
    parts = [f"{_key(key)}: {_shape(item, more, depth - 1)}" for key, item in islice(value.items(), _KEYS)]
    if len(value) > _KEYS:
        parts.append(f"… {len(value) - _KEYS}{more} more keys")
    return f"{{{', '.join(parts)}}}"


def _array(value: list[Any], more: str, depth: int) -> str:
    if not value:
        return "[]"
    shapes = list(dict.fromkeys(_shape(item, more, max(0, depth - 1)) for item in value[:_ITEMS]))
    shown = " | ".join(shapes[:_KINDS]) + (" | …" if len(shapes) > _KINDS else "")
    return f"[{len(value):,}{more} of {shown}]"


def _key(key: str) -> str:
    return key if len(key) <= _KEY_LENGTH else key[:_KEY_LENGTH] + "…"
