"""API keys: their form, and the hash that is stored in their place.

    ovs_ | 32 characters: 160 random bits in base32 | 7 characters: CRC-32 of those before, in base32
    ^prefix                                           ^a typo, or a scanner's false find, shows at once

`ovl_` begins the key of a machine's user. `ov[sl]_[a-z2-7]{39}` finds keys in texts. Only a keyed BLAKE2b
hash of a key is stored.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import zlib
from functools import lru_cache
from typing import Final

KEY_PREFIX: Final = "ovs_"
LOCAL_PREFIX: Final = "ovl_"
KEY_LENGTH: Final = 43
KEY_PATTERN: Final = re.compile(r"ov[sl]_[a-z2-7]{39}")
CHECKSUM_LENGTH: Final = 7


def new_key(prefix: str = KEY_PREFIX) -> str:
    """Return a new key. Only its hash is stored, so this is the only time that it is known."""
    body = prefix + base64.b32encode(secrets.token_bytes(20)).decode().lower()
    return body + _checksum(body)


def is_key(text: str) -> bool:
    """Return whether the text has the form of a key, checksum included."""
    if not KEY_PATTERN.fullmatch(text):
        return False
    return text.endswith(_checksum(text[:-CHECKSUM_LENGTH]))


def _checksum(text: str) -> str:
    crc = zlib.crc32(text.encode()).to_bytes(4, "big")
    return base64.b32encode(crc).decode().rstrip("=").lower()


def hash_key(key: str, secret: str = "") -> str:
    """Return the hash of a key in hexadecimal: BLAKE2b-256, keyed with the service's secret."""
    # A fast hash is enough: a key has 160 random bits, so nobody can try them all.
    return hashlib.blake2b(
        key.encode("utf-8", "surrogatepass"), digest_size=32, key=_pepper(secret), person=b"overspill-key"
    ).hexdigest()


@lru_cache(maxsize=16)
def _pepper(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest() if secret else b""


def secret_id(secret: str) -> str:
    """Return a name that reveals nothing about a hashing secret: 8 characters, none for an empty one."""
    return hash_key("the name of a secret", secret)[:8] if secret else ""
