"""Determines the media type of bytes by their beginning."""

from __future__ import annotations

from typing import Final

from overspill.reading.text import is_utf8

TEXT_TYPE: Final = "text/plain; charset=utf-8"
JSON_TYPE: Final = "application/json"
BINARY_TYPE: Final = "application/octet-stream"
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
    (b"ID3\x03", "audio/mpeg"),
    (b"ID3\x04", "audio/mpeg"),
    (b"OggS\0", "audio/ogg"),
    (b"fLaC\0", "audio/flac"),
    (b"\x1a\x45\xdf\xa3", "video/webm"),
)
_RIFF: Final = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}


def media_type_of(data: bytes) -> str:
    """Return the media type of some bytes: by their first bytes, or text if all is UTF-8."""
    return sniff_media_type(data) or (TEXT_TYPE if is_utf8(data) else BINARY_TYPE)


def sniff_media_type(data: bytes) -> str | None:
    """Return the media type that the first bytes show; None if they show none."""
    if data[:4] == b"RIFF":
        return _RIFF.get(data[8:12])
    if data[:2] == b"\0\0" and data[4:8] == b"ftyp":
        return "video/mp4"
    return next((kind for magic, kind in _MAGIC if data.startswith(magic)), None)
