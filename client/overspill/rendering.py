"""Values of any kind as the text that is captured: indented JSON, else `repr`."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Final

import msgspec

TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"
BINARY: Final = "application/octet-stream"
INDENT: Final = 2
_NOT_JSON: Final = (TypeError, ValueError, OverflowError, RecursionError)


def is_structured(value: Any) -> bool:
    """Whether `value` is a container or record that frameworks turn into JSON for the model."""
    if isinstance(value, (dict, list, tuple, set, frozenset, msgspec.Struct)):
        return True
    return not isinstance(value, type) and (dataclasses.is_dataclass(value) or hasattr(value, "model_dump"))


def as_text(value: Any) -> tuple[str, bool]:
    """`value` as indented JSON and True; its `repr` and False where it has cycles or keys unfit for JSON."""
    try:
        compact = json.dumps(value, ensure_ascii=False, default=plain_value)
    except _NOT_JSON:
        return repr(value), False
    try:
        return msgspec.json.format(compact, indent=INDENT), True
    except (msgspec.DecodeError, UnicodeEncodeError):  # NaN and infinities; lone surrogates
        return json.dumps(value, ensure_ascii=False, default=plain_value, indent=INDENT), True


def plain_value(value: Any) -> Any:
    """What JSON can hold of `value`: a record's fields, a set's members in a fixed order, else its `repr`."""
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return plain_bytes(bytes(value))
    fields = None if isinstance(value, type) else _fields(value)
    return repr(value) if fields is None else fields


def _fields(value: Any) -> dict[str, Any] | None:
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.asdict(value)
    if dataclasses.is_dataclass(value):
        return {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
    dump = getattr(value, "model_dump", None)
    return dump() if callable(dump) else None


def plain_bytes(data: bytes) -> str:
    """`data` as text where it is UTF-8, else what it is and how large."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"<{len(data):,} bytes of {kind_of_bytes(data)}>"


_MAGIC: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"\x7fELF", "application/x-elf"),
    (b"SQLite format 3\0", "application/vnd.sqlite3"),
)


def kind_of_bytes(data: bytes) -> str:
    """The media type that the first bytes give away; text where all is UTF-8."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    known = next((kind for magic, kind in _MAGIC if data.startswith(magic)), None)
    return known or (TEXT if is_utf8(data) else BINARY)


def is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
