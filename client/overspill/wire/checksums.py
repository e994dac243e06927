"""The checksum of one append: CRC32C (RFC 3720, appendix B.4) in a `Content-Digest` field (RFC 9530).

It is a module of its own, so that only who appends loads the library.
"""

from __future__ import annotations

import base64
import binascii
import re
from functools import reduce
from typing import Final

from google_crc32c import extend as extend_crc32c

_FIELD: Final = re.compile(r"crc32c=:([A-Za-z0-9+/]{6}==):")


def encode_crc32c(*pieces: bytes) -> str:
    """Return the field for bytes in pieces: their CRC32C, big-endian."""
    return f"crc32c=:{base64.b64encode(_checksum(*pieces)).decode()}:"


def is_crc32c(field: str, data: bytes) -> bool:
    """Return whether the field is the checksum of these bytes. Raises `ValueError` if it is malformed."""
    match = _FIELD.fullmatch(field.strip())
    if match is None:
        raise ValueError("Content-Digest needs the form crc32c=:BASE64: with a checksum of 4 bytes")
    try:
        return base64.b64decode(match[1], validate=True) == _checksum(data)
    except binascii.Error as error:
        raise ValueError(f"Content-Digest is no base64: {error}") from error


def _checksum(*pieces: bytes) -> bytes:
    return reduce(extend_crc32c, pieces, 0).to_bytes(4, "big")
