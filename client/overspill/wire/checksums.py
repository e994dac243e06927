"""The checksum of one append: CRC32C (RFC 3720, appendix B.4) in a `Content-Digest` field (RFC 9530).

It is a module of its own, so that only who appends loads the library.
"""

from __future__ import annotations

import base64
from functools import reduce
from typing import Final

from google_crc32c import extend as extend_crc32c

from overspill.wire.headers import digest_in

_BYTES: Final = 4


def encode_crc32c(*pieces: bytes) -> str:
    """Return the field for bytes in pieces: their CRC32C, big-endian."""
    return f"crc32c=:{base64.b64encode(_checksum(*pieces)).decode()}:"


def is_crc32c(field: str, data: bytes) -> bool:
    """Return whether the field has the checksum of these bytes. Raises `ValueError` if it has none."""
    checksum = digest_in(field, "crc32c", _BYTES)
    if checksum is None:
        raise ValueError("Content-Digest needs the form crc32c=:BASE64: with a checksum of 4 bytes")
    return checksum == _checksum(data)


def _checksum(*pieces: bytes) -> bytes:
    return reduce(extend_crc32c, pieces, 0).to_bytes(_BYTES, "big")
