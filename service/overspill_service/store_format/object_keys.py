"""The keys of objects: segments, markers of expiries and removals, records of removals, and of API keys.

`upload` names one attempt to store a capture. So two attempts never write the same key, and removing one
upload never deletes the bytes of another.
"""

from __future__ import annotations

import base64
import re
from typing import Final

from msgspec import Struct

from overspill_service.resources.random_names import random_bytes

ROOT: Final = "v1/"
PROBES: Final = f"{ROOT}.probe/"
"""The keys that `check` writes."""
REMOVALS: Final = "v1-removed/"
"""The records of unfinished removals. They are outside of `ROOT`, so that one short listing has all of them.
"""
GENERATIONS: Final = "v1-catalog/"
"""The object here is named after the catalog's generation."""
KEYS: Final = "v1-keys/"
"""The records of API keys, and the choice whether requests need one. Each change is a new object; the highest
revision counts.
"""
ACCESS: Final = f"{KEYS}access/"
PAGE_SECRET: Final = "v1-page/secret"  # noqa: S105  (a name)
"""The secret that sessions of the web page are sealed with. Without it they end, and the next one is made."""
MARKER: Final = bytes.fromhex("5d2a4d1800000000")
"""The content of a marker: an empty skippable zstd frame. All information is in its key."""
MICROSECONDS: Final = 10**6
# Numbers have a fixed width, so that keys sort as segments do.
_KEY: Final = re.compile(
    r"v1/(?P<tenant>[a-z0-9][a-z0-9-]{0,62})/(?P<capture>cap_[a-z2-7]{20})/(?:removed-\d{16}|"
    r"(?P<upload>[a-z2-7]{16})-(?:(?P<number>\d{5})(?:-(?P<name>[a-z2-7]{16}))?|"
    r"expires-(?P<expires>\d{1,12})-(?P<revision>\d{16})))"
)


class ObjectKey(Struct, frozen=True):
    """A parsed key.

    A segment has a number, an expiry marker an expiry in seconds since the epoch, a removal marker neither.
    """

    tenant: str
    capture: str
    upload: str
    """Empty for a removal marker."""
    number: int | None
    expires: int | None
    revision: int = 0
    """The order of an upload's markers: the highest was set last."""
    name: str = ""
    """A live capture's segment has one: each attempt to store it has its own key."""

    @property
    def is_removal(self) -> bool:
        """Return whether it is a removal marker's."""
        return not self.upload


def new_upload() -> str:
    """Return a name for one upload, or for a segment of a live capture: 80 random bits in base32."""
    return base64.b32encode(random_bytes(10)).decode().lower()


def provisional_id() -> str:
    """Return a capture id for an upload whose content is not known yet: 100 random bits."""
    return "cap_" + base64.b32encode(random_bytes(13)).decode().lower()[:20]


def capture_prefix(tenant: str, capture: str) -> str:
    return f"{ROOT}{tenant}/{capture}/"


def segment_key(tenant: str, capture: str, upload: str, number: int, name: str = "") -> str:
    key = f"{ROOT}{tenant}/{capture}/{upload}-{number:05d}"
    return f"{key}-{name}" if name else key


def marker_key(tenant: str, capture: str, upload: str, expires: float, revision: int) -> str:
    return f"{ROOT}{tenant}/{capture}/{upload}-expires-{int(expires)}-{revision:016d}"


def removal_marker(tenant: str, capture: str, created: float) -> str:
    """Return the key that says that a live capture was removed.

    `created` distinguishes it from others with its id.
    """
    return f"{ROOT}{tenant}/{capture}/removed-{round(created * MICROSECONDS):016d}"


def revision_of(marker: str | None) -> int:
    """Return the revision in a marker's key, 0 if the expiry was never changed."""
    key = None if marker is None else parse(marker)
    return 0 if key is None else key.revision


def removals_prefix(tenant: str) -> str:
    return f"{REMOVALS}{tenant}/"


def new_removal(tenant: str) -> str:
    """Return a key for the record of one removal."""
    return f"{REMOVALS}{tenant}/{new_upload()}"


def generation_key(name: str) -> str:
    return GENERATIONS + name


def key_prefix(key_hash: str) -> str:
    """Return the prefix of all revisions of one API key's record."""
    return f"{KEYS}{key_hash}/"


def key_record(key_hash: str, revision: int) -> str:
    return f"{key_prefix(key_hash)}{revision:016d}"


def access_choice(choice: str, revision: int) -> str:
    """Return the key of a choice whether requests need an API key. The object has no content that counts."""
    return f"{ACCESS}{revision:016d}-{choice}"


def is_kept_elsewhere(key: str) -> bool:
    """Return whether a copy or a backup of the store must have this object."""
    return key.startswith((REMOVALS, KEYS)) or parse(key) is not None


def records_removal(key: str) -> bool:
    """Return whether a removal writes this object: its record, or the marker that it leaves."""
    parsed = parse(key)
    return key.startswith(REMOVALS) or (parsed is not None and parsed.is_removal)


def is_service_key(key: str) -> bool:
    """Return whether the service ever uses this key."""
    return is_kept_elsewhere(key) or key.startswith((GENERATIONS, PROBES)) or key == PAGE_SECRET


def parse(key: str) -> ObjectKey | None:
    """Return the parts of the key of a segment or a marker, None for any other key."""
    match = _KEY.fullmatch(key)
    if match is None:
        return None
    number, expires = match["number"], match["expires"]
    return ObjectKey(
        match["tenant"],
        match["capture"],
        match["upload"] or "",
        int(number) if number else None,
        int(expires) if expires else None,
        int(match["revision"] or 0),
        match["name"] or "",
    )
