"""The records of a catalog, and the values that its methods take and return.

Instants are seconds since the epoch, sizes are bytes.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from msgspec import Struct
from overspill import wire

from overspill_service.store_format.object_keys import segment_key

TOTALS_INCOMPLETE: Final = (
    "the catalog is being rebuilt from the object store, and the tenant's limits cannot be held to until it "
    "is; try again in a moment"
)


KEY_ID_LENGTH: Final = 12


class Segment(Struct, frozen=True, array_like=True):
    """One object of a capture: its size in the store and its share of the content."""

    stored_size: int
    size: int
    newlines: int


class Entry(Struct, frozen=True, kw_only=True):
    """One capture's record. Sizes in bytes."""

    tenant: str
    id: str
    upload: str
    """Names this upload's objects, so that no two uploads ever share a key."""
    state: wire.State
    size: int
    lines: int
    sha256: bytes
    content_type: str
    kind: str
    tool: str = ""
    session: str = ""
    call_id: str = ""
    status: str = ""
    labels: dict[str, str] = {}
    created: float
    expires: float
    segments: list[Segment]
    index: bytes | None = None
    """The frame map, packed, where it is small enough to live here."""
    marker: str | None = None
    """The key of the object that holds a changed expiry."""

    @property
    def stored_size(self) -> int:
        return sum(segment.stored_size for segment in self.segments)

    @property
    def segment_keys(self) -> list[str]:
        numbers = range(len(self.segments))
        return [segment_key(self.tenant, self.id, self.upload, number) for number in numbers]

    @property
    def keys(self) -> list[str]:
        """The keys of every object of this upload."""
        return self.segment_keys if self.marker is None else [*self.segment_keys, self.marker]

    def is_expired(self, now: float) -> bool:
        return self.expires <= now

    def public(self) -> wire.Entry:
        """The entry as the wire shows it."""
        return wire.Entry(
            id=self.id,
            state=self.state,
            size=self.size,
            stored_size=self.stored_size,
            lines=self.lines,
            sha256=self.sha256.hex(),
            content_type=self.content_type,
            kind=self.kind,
            tool=self.tool,
            session=self.session,
            call_id=self.call_id,
            status=self.status,
            labels=self.labels,
            created=instant(self.created),
            expires=instant(self.expires),
        )


def instant(seconds: float) -> datetime:
    """Seconds since the epoch as an aware UTC datetime of whole microseconds."""
    return datetime.fromtimestamp(round(seconds, 6), UTC)


class Tombstone(Struct, frozen=True, kw_only=True):
    """What remains of a capture that is gone, to answer 410; kept for a while, then gone too."""

    id: str
    reason: str
    """`expired` or `deleted`."""
    at: float
    keys: list[str] = []
    """The objects that go with it: a removal that was cut short is finished from here."""

    def is_of(self, entry: Entry) -> bool:
        """Whether it stands for this very upload, so that its objects are gone or about to go."""
        return not set(entry.segment_keys).isdisjoint(self.keys)

    def may_replace(self, stored: Entry) -> bool:
        """Whether what is stored is still due: an expiry that was moved meanwhile saves a capture."""
        return self.reason != "expired" or stored.is_expired(self.at)


class Quota(Struct, frozen=True):
    """Limits that `commit` holds a tenant's totals to; 0 is none."""

    stored_size: int = 0
    captures: int = 0

    @property
    def is_limited(self) -> bool:
        return self.stored_size > 0 or self.captures > 0


class Query(Struct, frozen=True, kw_only=True):
    """What a listing selects: every given field must be equal; `since <= created < until`."""

    session: str | None = None
    call_id: str | None = None
    tool: str | None = None
    state: wire.State | None = None
    since: float | None = None
    until: float | None = None


class Totals(Struct, frozen=True):
    captures: int = 0
    size: int = 0
    stored_size: int = 0
    oldest: float | None = None
    """When the oldest capture was created."""


class KeyRecord(Struct, frozen=True, kw_only=True):
    """An API key as stored: never the key, only its keyed hash (hex)."""

    hash: str
    tenant: str
    scopes: list[wire.Scope]
    name: str = ""
    created: float = 0
    expires: float | None = None

    @property
    def id(self) -> str:
        """What people and logs call the key: the beginning of its hash."""
        return self.hash[:KEY_ID_LENGTH]


class Generation(Struct, frozen=True, kw_only=True):
    """Which state of a catalog this is: a copy that was put back has the name of an earlier one."""

    name: str = ""
    """A random word that is also kept beside the objects; empty in a new catalog."""
    is_closed: bool = False
    """Whether whoever wrote to the catalog said at its end that nothing more was coming."""
    state: str = ""
    """Changes whenever a capture is recorded or removed."""
