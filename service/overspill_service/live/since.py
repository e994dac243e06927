"""Finds the first line of a capture that came after an instant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overspill_service.live import timeline
from overspill_service.live.positions import line_at

if TYPE_CHECKING:
    from overspill_service.archive.archive import Archive
    from overspill_service.catalog.records import Entry


async def first_line_since(archive: Archive, entry: Entry, instant: float) -> int:
    """Return the first line of which a byte was accepted after `instant` (seconds since the epoch).

    If there is none, it is the line behind the last one. It may be a little too early, never too late: see
    `timeline`. A capture that was stored at once came when it was created.
    """
    marks = timeline.unpack(entry.marks) or [timeline.Mark(round(entry.created * 1000), 0)]
    offset = timeline.offset_since(marks, instant, entry.size)
    if offset >= entry.size:
        return entry.lines + 1
    line, _ = await line_at(await archive.reader(entry), offset)
    return line
