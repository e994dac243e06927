"""The records of a catalog about captures, and the values that its methods take and return.

Instants are seconds since the epoch, sizes are bytes.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import chain
from typing import Final

from msgspec import Struct
from overspill import wire

from overspill_service.catalog.quotas import Charge
from overspill_service.store_format.object_keys import removal_marker, segment_key

FIXED_BYTES: Final = 1024
"""Bytes that an entry takes in Redis without its texts, labels, index and segments, about."""
NAMED_BYTES: Final = 160
"""Bytes that it takes for each of session, tool call and tool: it may be alone in their indexes."""
LIVE_BYTES: Final = 1024
"""Bytes that a live capture takes beside its entry: its record, its buffer without bytes, when it is due."""
SEGMENT_BYTES: Final = 24
"""Bytes of an entry for each segment."""
_EXIT_CODE: Final = re.compile(r"-?\d{1,10}", re.ASCII)

HELD_UNTIL: Final = 253_370_764_800.0
"""The expiry of a capture on hold: the year 9999, UTC. It stays representable in every time zone."""


class Segment(Struct, frozen=True, array_like=True):
    """One object of a capture: its size in the store, and the size and newlines of its content."""

    stored_size: int
    size: int
    newlines: int
    name: str = ""
    """The end of its key, if the capture was live when it was stored."""


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
    sent: bytes = b""
    """SHA-256 of what was sent, if secrets in it were masked. Empty if the service chose the id."""
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
    """When the content was first read, as far as this catalog knows. No object has it."""
    first_reader: str = ""
    """The id of the key that read it then, or the subject of a token. Empty if nobody said who."""
    producer: str = ""
    """The word of the producer, who may append while the capture is live."""
    life: float = 0.0
    """Seconds for which a live capture lives after its last segment."""
    marks: bytes = b""
    """When its bytes were accepted, if it was live: a packed timeline."""
    last_append: float = 0.0
    """When its producer was last heard of, as of its last segment, if it was live."""
    lost: int | None = None
    """The accepted bytes that were lost at the end of a partial capture; -1 if their number is unknown."""

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
        named = NAMED_BYTES * sum(map(bool, (self.session, self.call_id, self.tool)))
        live = LIVE_BYTES if self.is_live else 0
        return FIXED_BYTES + named + live + written + packed + SEGMENT_BYTES * len(self.segments)

    @property
    def version(self) -> str:
        """A name of the stored bytes: that of the upload, while it is live with that of its last segment."""
        if not self.is_live:
            return self.upload
        last = self.segments[-1].name if self.segments else ""
        return f"{self.upload}-{len(self.segments)}-{last}"

    @property
    def newlines(self) -> int:
        return sum(segment.newlines for segment in self.segments)

    @property
    def charge(self) -> Charge:
        """The amounts that the entry adds to its tenant's totals."""
        return Charge(1, self.size, self.stored_size, self.metadata_size)

    @property
    def segment_keys(self) -> list[str]:
        return [self.segment_key(number) for number in range(len(self.segments))]

    def segment_key(self, number: int) -> str:
        return segment_key(self.tenant, self.id, self.upload, number, self.segments[number].name)

    @property
    def keys(self) -> list[str]:
        """The keys of every object of this upload."""
        return self.segment_keys if self.marker is None else [*self.segment_keys, self.marker]

    @property
    def removal_marker(self) -> str | None:
        """The key of the marker that its removal leaves. None if it was never live: then it leaves none."""
        was_live = self.is_live or bool(self.marks or self.last_append)
        return removal_marker(self.tenant, self.id, self.created) if was_live else None

    @property
    def reading(self) -> dict[str, object]:
        """The facts about the first read. No object has them, so a new entry takes them over."""
        return {"first_read": self.first_read, "first_reader": self.first_reader}

    @property
    def is_live(self) -> bool:
        return self.state is wire.State.LIVE

    @property
    def exit_code(self) -> int | None:
        """The exit code in the labels, which anybody may have sent: None if that is not a number."""
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
            first_reader=self.first_reader,
            last_append=instant(self.last_append) if self.last_append else None,
            gap=self.gap,
        )

    @property
    def gap(self) -> wire.Gap | None:
        """The bytes that are missing at the end of a partial capture, if any are known to be."""
        if self.lost is None:
            return None
        return wire.Gap(offset=self.size, size=None if self.lost < 0 else self.lost)


def instant(seconds: float) -> datetime:
    """Return seconds since the epoch as a UTC datetime of whole microseconds."""
    return datetime.fromtimestamp(round(seconds, 6), UTC)


class Tombstone(Struct, frozen=True, kw_only=True):
    """The record of a removed capture, so that it answers 410. It is deleted after a while."""

    id: str
    reason: str
    """`expired`, `deleted`, or `unreadable`: its objects were gone or damaged."""
    at: float
    keys: list[str] = []
    """The keys of the capture's objects: an interrupted removal is finished with them."""
    marker: str = ""
    """The key of the removal marker, if the removal leaves one."""

    def is_of_upload(self, entry: Entry) -> bool:
        """Return whether this tombstone is of the entry's own upload."""
        return not set(entry.segment_keys).isdisjoint(self.keys)

    def may_replace(self, stored: Entry) -> bool:
        """Return whether the entry may still be removed.

        An expired one may not if its expiry was extended, a deleted one not if it was put on hold. Neither a
        deleted nor an unreadable one may if it has other objects by now: they would stay, or a hold be lost.
        """
        if self.reason == "expired":
            return stored.is_expired(self.at)
        if self.reason == "unreadable":
            return not self.keys or set(stored.keys) <= set(self.keys)
        return not stored.is_held and set(stored.keys) <= set(self.keys)


class Query(Struct, frozen=True, kw_only=True):
    """The filter of a listing: every given field must be equal, and `since <= created < until`."""

    session: str | None = None
    call_id: str | None = None
    tool: str | None = None
    state: wire.State | None = None
    since: float | None = None
    until: float | None = None


class Generation(Struct, frozen=True, kw_only=True):
    """The generation of a catalog. An older copy that was put back has the name of an earlier one."""

    name: str = ""
    """A random word that is also kept in the object store. Empty in a new catalog."""
    is_closed: bool = False
    """Whether the last process that wrote to the catalog has recorded its end."""
    state: str = ""
    """A text that changes whenever a capture is recorded or removed."""
