"""Counts the segments that this process stores, and measures how late they are durable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overspill_service.errors import ServiceError
from overspill_service.live import timeline

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from overspill_service.archive.archive import Archive
    from overspill_service.catalog.live import LiveRecord
    from overspill_service.catalog.records import Entry
    from overspill_service.telemetry.live import LiveMetrics


class SegmentMetrics:
    def __init__(self, archive: Archive, metrics: LiveMetrics) -> None:
        self._archive, self._metrics = archive, metrics

    async def counted(
        self, entry: Entry, record: LiveRecord, storing: Awaitable[Entry | None]
    ) -> Entry | None:
        """Await `storing`, which stores the next segment. Count it, or its failure. Return the entry."""
        try:
            grown = await storing
        except ServiceError:
            self._metrics.segment(entry.tenant, is_done=False)
            raise
        if grown is not None and len(grown.segments) == len(entry.segments) + 1:
            self._metrics.segment(entry.tenant, is_done=True)
            if grown.size > entry.size:
                self._metrics.durable(max(0.0, self._archive.clock() - _accepted_at(entry, record)))
        return grown


def _accepted_at(entry: Entry, record: LiveRecord) -> float:
    """Return the earliest time at which the first byte of the buffer may have been accepted.

    The timeline has only some of the times. Beyond them: bytes in the buffer came after the last segment
    was cut, except the rest of a line.
    """
    marks = timeline.of_record(record.marks)
    before = [mark.moment for mark in marks if mark.offset <= record.durable]
    return max(before[-1] / 1000 if before else 0.0, entry.last_append, entry.created)
