"""The bytes of an output as they are stored, and their digest."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from overspill.text import encoding
from overspill.text.body import FileBody
from overspill.text.buffer import Buffer, CannotBuffer

if TYPE_CHECKING:
    from overspill.text.body import Body

_IN_MEMORY_CHARS: Final = 64 * 1024 * 1024
"""A text of more characters is encoded into a temporary file: its bytes would take as much memory again."""


def hashed(body: Body) -> tuple[bytes | FileBody, bytes]:
    """Return the bytes of a body, and their SHA-256."""
    data = _encoded(body) if isinstance(body, str) else body
    return data, data.sha256 if isinstance(data, FileBody) else hashlib.sha256(data).digest()


def _encoded(text: str) -> bytes | FileBody:
    if len(text) <= _IN_MEMORY_CHARS:
        return encoding.encode(text)
    buffer = Buffer(memory_bytes=0)
    try:
        buffer.write(text)
    except CannotBuffer:  # no room on the disk
        buffer.close()
        return encoding.encode(text)
    body = buffer.finish()
    if buffer.missing:  # no room on the disk, found out at the end
        return encoding.encode(text)
    return body if isinstance(body, FileBody) else encoding.bytes_of(body)
