"""The names of objects: `v1/{tenant}/{capture id}/{upload}-{number}`, and of expiry markers beside them.

`upload` names one attempt to store a capture, so no two attempts ever write the same key, and removing
one upload can never take away the bytes of another.
"""

from __future__ import annotations

import base64
import re
import secrets
from typing import Final

from msgspec import Struct

ROOT: Final = "v1/"
_KEY: Final = re.compile(
    r"v1/(?P<tenant>[a-z0-9][a-z0-9-]{0,62})/(?P<capture>cap_[a-z2-7]{20})/"
    r"(?P<upload>[a-z2-7]{16})-(?:(?P<number>\d{5})|expires-(?P<expires>\d{1,12}))"
)


class ObjectKey(Struct, frozen=True):
    """A key taken apart: a segment has a number, a marker an expiry in seconds since the epoch."""

    tenant: str
    capture: str
    upload: str
    number: int | None
    expires: int | None


def new_upload() -> str:
    """A name for one upload: 80 random bits in base32."""
    return base64.b32encode(secrets.token_bytes(10)).decode().lower()


def capture_prefix(tenant: str, capture: str) -> str:
    return f"{ROOT}{tenant}/{capture}/"


def segment_key(tenant: str, capture: str, upload: str, number: int) -> str:
    return f"{ROOT}{tenant}/{capture}/{upload}-{number:05d}"


def marker_key(tenant: str, capture: str, upload: str, expires: float) -> str:
    return f"{ROOT}{tenant}/{capture}/{upload}-expires-{int(expires)}"


def parse(key: str) -> ObjectKey | None:
    """The parts of a key; None where it is not one of ours."""
    match = _KEY.fullmatch(key)
    if match is None:
        return None
    number, expires = match["number"], match["expires"]
    return ObjectKey(
        match["tenant"],
        match["capture"],
        match["upload"],
        int(number) if number else None,
        int(expires) if expires else None,
    )
