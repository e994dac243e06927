"""The entry of a live capture with more bytes at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace
from overspill.reading.content_kind import HEAD_BYTES, detect

from overspill_service.live import timeline

if TYPE_CHECKING:
    from overspill_service.catalog.live import LiveRecord
    from overspill_service.catalog.records import Entry
    from overspill_service.store_format.frames import Frame


def with_content(entry: Entry, record: LiveRecord, data: bytes, frames: list[Frame]) -> Entry:
    """Return the entry with `data` after the stored content. These are its frames.

    `record` says when the bytes came. Positions of segments stay as they are.
    """
    end = entry.size + len(data)
    newlines = entry.newlines + sum(frame.newlines for frame in frames)
    is_open = data[-1:] != b"\n" if data else entry.lines > entry.newlines
    come = [mark for mark in timeline.of_record(record.marks) if mark.offset < end]
    return replace(
        entry,
        size=end,
        lines=newlines + int(is_open and end > 0),
        kind=entry.kind if entry.segments else detect(data[:HEAD_BYTES], entry.content_type or None),
        marks=timeline.pack(timeline.joined(timeline.unpack(entry.marks), come)),
    )
