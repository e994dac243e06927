"""The names of objects: segments, expiry markers beside them, and records of removals under way.

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
PROBES: Final = f"{ROOT}.probe/"
"""Where `check` tries what a store can do."""
REMOVALS: Final = "v1-removed/"
"""Where removals that are under way are recorded: apart from `ROOT`, so that one short listing shows all."""
GENERATIONS: Final = "v1-catalog/"
"""Where the name of the catalog's generation is kept."""
_KEY: Final = re.compile(
    r"v1/(?P<tenant>[a-z0-9][a-z0-9-]{0,62})/(?P<capture>cap_[a-z2-7]{20})/"
    r"(?P<upload>[a-z2-7]{16})-(?:(?P<number>\d{5})|expires-(?P<expires>\d{1,12})-(?P<revision>\d{16}))"
)


class ObjectKey(Struct, frozen=True):
    """A key taken apart: a segment has a number, a marker an expiry in seconds since the epoch."""

    tenant: str
    capture: str
    upload: str
    number: int | None
    expires: int | None
    revision: int = 0
    """Orders the markers of an upload: the highest was set last."""


def new_upload() -> str:
    """A name for one upload: 80 random bits in base32."""
    return base64.b32encode(secrets.token_bytes(10)).decode().lower()


def provisional_id() -> str:
    """Return a capture id for an upload whose content is not known yet: 100 random bits."""
    return "cap_" + base64.b32encode(secrets.token_bytes(13)).decode().lower()[:20]


def capture_prefix(tenant: str, capture: str) -> str:
    return f"{ROOT}{tenant}/{capture}/"


def segment_key(tenant: str, capture: str, upload: str, number: int) -> str:
    return f"{ROOT}{tenant}/{capture}/{upload}-{number:05d}"


def marker_key(tenant: str, capture: str, upload: str, expires: float, revision: int) -> str:
    return f"{ROOT}{tenant}/{capture}/{upload}-expires-{int(expires)}-{revision:016d}"


def revision_of(marker: str | None) -> int:
    """The revision in a marker's key; 0 where no expiry was ever changed."""
    key = None if marker is None else parse(marker)
    return 0 if key is None else key.revision


def removals_prefix(tenant: str) -> str:
    return f"{REMOVALS}{tenant}/"


def new_removal(tenant: str) -> str:
    """A key for the record of one removal."""
    return f"{REMOVALS}{tenant}/{new_upload()}"


def generation_key(name: str) -> str:
    return GENERATIONS + name


def is_capture_or_removal(key: str) -> bool:
    """Return whether a key names a part of a capture, or the record of a removal."""
    return key.startswith(REMOVALS) or parse(key) is not None


def is_service_key(key: str) -> bool:
    """Return whether the service ever gives an object this key."""
    return is_capture_or_removal(key) or key.startswith((GENERATIONS, PROBES))


def parse(key: str) -> ObjectKey | None:
    """The parts of a segment's or marker's key; None where it is neither."""
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
        int(match["revision"] or 0),
    )
