"""A live capture as one read sees it: its segments, then the accepted bytes that are not stored yet.

The accepted bytes are compressed into frames, as if they were one more segment. So every reader works on a
live capture as on a whole one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from overspill_service.archive.frame_reader import Reader
from overspill_service.catalog.records import Entry, instant

if TYPE_CHECKING:
    from overspill import wire

    from overspill_service.store_format.frame_map import Span
    from overspill_service.store_format.frames import Frame


class Tail(Struct, frozen=True):
    """Frames that are in memory alone, and their stored bytes."""

    frames: list[Frame]
    data: bytes


class GrowingEntry(Entry, frozen=True, kw_only=True):
    """A live capture at one moment. Its sizes include accepted bytes."""

    stored: Entry
    """The entry as the catalog has it."""
    tail: Tail
    active: float
    """When the producer was last heard of, in seconds since the epoch."""

    @property
    def newlines(self) -> int:
        return self.stored.newlines + sum(frame.newlines for frame in self.tail.frames)

    def to_wire(self) -> wire.Entry:
        return replace(super().to_wire(), durable=self.stored.size, last_append=instant(self.active))


def as_stored(entry: Entry) -> Entry:
    """Return the entry as the catalog has it, without the bytes that a view holds in memory."""
    return entry.stored if isinstance(entry, GrowingEntry) else entry


class GrowingReader(Reader):
    """Reads a live capture as it was when its entry was made."""

    async def _fetch(self, span: Span) -> bytes:
        entry = self.entry
        assert isinstance(entry, GrowingEntry)
        if span.segment == len(entry.stored.segments):
            return entry.tail.data[span.start : span.start + span.length]
        return await super()._fetch(span)
