"""The records of a catalog, and the values that its methods take and return.

Instants are seconds since the epoch, sizes are bytes.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from enum import StrEnum
from itertools import chain
from typing import Final, NamedTuple

from msgspec import Struct
from overspill import wire

from overspill_service.errors import QuotaExceeded
from overspill_service.store_format.object_keys import segment_key
from overspill_service.tenants.directory import KEY_ID_LENGTH

TOTALS_INCOMPLETE: Final = (
    "the catalog is being rebuilt from the object store, and the tenant's limits cannot be checked before "
    "that; try again in a moment"
)
FIXED_BYTES: Final = 1024
"""Bytes that an entry takes in Redis without its texts, labels, index and segments, about."""
SEGMENT_BYTES: Final = 24
"""Bytes of an entry for each segment."""
UNRESERVED_BYTES: Final = 2**20
UNRESERVED_SHARE: Final = 1000
"""An upload of so many bytes, or of less than such a part of the limit, is counted at its end only."""


_EXIT_CODE: Final = re.compile(r"-?\d{1,10}", re.ASCII)


class Charge(NamedTuple):
    """What counts against a quota."""

    captures: int
    size: int
    stored_size: int
    metadata: int


CHARGED: Final = ("captures", "content bytes", "stored bytes", "metadata bytes")
"""The parts of a charge, as a refusal names them."""


HELD_UNTIL: Final = 253_370_764_800.0
"""The expiry of a capture on hold: the year 9999, UTC. It stays representable in every time zone."""


class Segment(Struct, frozen=True, array_like=True):
    """One object of a capture: its size in the store, and the size and newlines of its content."""

    stored_size: int
    size: int
    newlines: int


class Entry(Struct, frozen=True, kw_only=True):
    """The record of one capture."""

    tenant: str
    id: str
    upload: str
    """The name of the upload, which is part of its objects' keys: no two uploads share a key."""
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
    """The packed frame map, if it is small enough."""
    marker: str | None = None
    """The key of the object that holds a changed expiry."""
    first_read: float | None = None
    """When the content was first read, as far as this catalog knows. The objects do not tell it."""
    producer: str = ""
    """The word of who may append, while the capture is live."""
    life: float = 0.0
    """Seconds that a live capture lives after its last segment."""
    marks: bytes = b""
    """When its bytes were accepted, if it was live: a packed timeline."""
    lost: int | None = None
    """How many accepted bytes were lost at the end of a partial capture; -1: some, nobody knows how many."""

    @property
    def stored_size(self) -> int:
        return sum(segment.stored_size for segment in self.segments)

    @property
    def metadata_size(self) -> int:
        """About how many bytes the entry takes in a catalog. Only that of a live capture changes."""
        texts = self.session, self.call_id, self.tool, self.status, self.content_type
        labels = (part for label in self.labels.items() for part in label)
        written = sum(len(text.encode("utf-8", "surrogatepass")) for text in chain(texts, labels))
        packed = len(self.index or b"") + len(self.marks)
        return FIXED_BYTES + written + packed + SEGMENT_BYTES * len(self.segments)

    @property
    def version(self) -> str:
        """A name of the stored bytes: that of the upload, for a live capture with the number of segments."""
        return f"{self.upload}-{len(self.segments)}" if self.is_live else self.upload

    @property
    def newlines(self) -> int:
        return sum(segment.newlines for segment in self.segments)

    @property
    def charge(self) -> Charge:
        """What the entry adds to its tenant's totals."""
        return Charge(1, self.size, self.stored_size, self.metadata_size)

    @property
    def segment_keys(self) -> list[str]:
        numbers = range(len(self.segments))
        return [segment_key(self.tenant, self.id, self.upload, number) for number in numbers]

    @property
    def keys(self) -> list[str]:
        """The keys of every object of this upload."""
        return self.segment_keys if self.marker is None else [*self.segment_keys, self.marker]

    @property
    def is_live(self) -> bool:
        return self.state is wire.State.LIVE

    @property
    def exit_code(self) -> int | None:
        """The exit code in the labels, which anybody may have sent: None if that is no number."""
        text = self.labels.get(wire.EXIT_CODE_LABEL, "")
        return int(text) if _EXIT_CODE.fullmatch(text) else None

    @property
    def is_held(self) -> bool:
        """Return whether the capture is on hold: it neither expires, nor can it be deleted."""
        return self.expires >= HELD_UNTIL

    def is_expired(self, now: float) -> bool:
        return self.expires <= now

    def to_wire(self) -> wire.Entry:
        """Return the entry as the HTTP API shows it."""
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
            held=self.is_held,
            first_read=None if self.first_read is None else instant(self.first_read),
            gap=None if self.lost is None else self._gap(self.lost),
        )

    def _gap(self, lost: int) -> wire.Gap:
        return wire.Gap(offset=self.size, size=None if lost < 0 else lost)


def instant(seconds: float) -> datetime:
    """Return seconds since the epoch as a UTC datetime of whole microseconds."""
    return datetime.fromtimestamp(round(seconds, 6), UTC)


class Tombstone(Struct, frozen=True, kw_only=True):
    """What remains of a removed capture, so that it answers 410. It goes after a while."""

    id: str
    reason: str
    """`expired`, `deleted`, or `unreadable`: its objects were gone or damaged."""
    at: float
    keys: list[str] = []
    """The keys of the capture's objects: an interrupted removal is finished with them."""

    def is_of_upload(self, entry: Entry) -> bool:
        """Return whether this tombstone is of the entry's own upload."""
        return not set(entry.segment_keys).isdisjoint(self.keys)

    def may_replace(self, stored: Entry) -> bool:
        """Return whether the entry may still be removed.

        An expired one may not if its expiry was extended, a deleted one not if it was put on hold.
        """
        if self.reason == "expired":
            return stored.is_expired(self.at)
        return self.reason == "unreadable" or not stored.is_held


class Quota(Struct, frozen=True, kw_only=True):
    """The limits of a tenant's totals; 0 is no limit."""

    captures: int = 0
    size: int = 0
    """Bytes of content."""
    stored_size: int = 0
    metadata: int = 0
    """Bytes of the catalog, as `Entry.metadata_size` counts them."""
    is_exact: bool = True
    """Refuse captures while the totals are not known, instead of holding what is known to the limits."""

    @property
    def limits(self) -> Charge:
        return Charge(self.captures, self.size, self.stored_size, self.metadata)

    @property
    def is_limited(self) -> bool:
        return any(self.limits)

    @property
    def needs_totals(self) -> bool:
        return self.is_exact and self.is_limited

    def needs_reservation(self, size: int, stored_size: int) -> bool:
        """Return whether an upload of so many bytes must not wait until its end to be counted."""
        return _is_much(size, self.size) or _is_much(stored_size, self.stored_size)

    def refusal(self, part: int) -> QuotaExceeded:
        """Return the error for the limit of one part of a charge."""
        return QuotaExceeded(CHARGED[part], self.limits[part])

    def require(self, held: Charge) -> None:
        """Raise `QuotaExceeded` if a tenant must not hold so much."""
        for part, (limit, amount) in enumerate(zip(self.limits, held, strict=True)):
            if 0 < limit < amount:
                raise self.refusal(part)


def _is_much(amount: int, limit: int) -> bool:
    return limit > 0 and amount > min(UNRESERVED_BYTES, limit // UNRESERVED_SHARE)


class Query(Struct, frozen=True, kw_only=True):
    """The filter of a listing: every given field must be equal, and `since <= created < until`."""

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
    metadata: int = 0
    oldest: float | None = None
    """When the oldest capture was created."""


class AccessMode(StrEnum):
    """Whether requests need a key. It is chosen, and remembered: never inferred from the keys that exist."""

    CLOSED = "closed"
    UNTIL_KEY = "until_key"
    """Open until the first key is made: the choice of who wants no keys at all."""
    OPEN = "open"
    """Open although there are keys."""

    @property
    def is_open(self) -> bool:
        return self is not AccessMode.CLOSED


class KeyRecord(Struct, frozen=True, kw_only=True):
    """An API key as it is stored: only its keyed hash, in hexadecimal, never the key."""

    hash: str
    tenant: str
    scopes: list[wire.Scope]
    name: str = ""
    created: float = 0
    expires: float | None = None
    session: str | None = None
    """The only session that the key may use; None for a key of all sessions."""
    is_prefix: bool = False
    """`session` is the beginning of the sessions that the key may use."""
    secret: str = ""
    """The id of the secret that the key is hashed with."""
    replaces: str = ""
    """The id of the key that this one was made to replace."""
    first_id: str = ""
    """The id that the key had before it was hashed with another secret. Empty if it never was."""

    @property
    def id(self) -> str:
        """The beginning of the first hash, which people and logs use as the key's name."""
        return self.first_id or self.hash[:KEY_ID_LENGTH]

    def is_expired(self, now: float) -> bool:
        return self.expires is not None and self.expires <= now


class Generation(Struct, frozen=True, kw_only=True):
    """The generation of a catalog. An older copy that was put back has the name of an earlier one."""

    name: str = ""
    """A random word that is also kept in the object store. Empty in a new catalog."""
    is_closed: bool = False
    """Whether the last process that wrote to the catalog has recorded its end."""
    state: str = ""
    """A text that changes whenever a capture is recorded or removed."""
