"""Store an append that fills a segment, with the bytes that wait before it, without the catalog's buffer.

    lease of the capture ──► segment in the object store ──► entry grown, buffer trimmed

A fast producer sends large appends. Their bytes do not pass through the catalog, and are durable with the
answer. If this is not possible, the append goes to the buffer like any other. An append that is interrupted
may leave its segment in the object store. The sweep deletes the segment, unless the process that takes over,
or a rebuild of the catalog, adds it to the entry. Then the producer, which sends the same bytes again, is
told to go on behind the segment.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from overspill_service.catalog.live import NO_BYTES
from overspill_service.catalog.records import Entry
from overspill_service.errors import ServiceError
from overspill_service.live import timeline
from overspill_service.live.flusher import LEASE_SECONDS, SEGMENT_BYTES
from overspill_service.live.segments import Framed, framed, good_end, level_at_once, store_at_once

if TYPE_CHECKING:
    from overspill_service.archive.archive import Archive
    from overspill_service.catalog.live import Append, LiveRecord
    from overspill_service.live.flusher import Flusher

MIN_BYTES: Final = SEGMENT_BYTES // 8
"""A smaller append always goes to the buffer: its sender does not wait for the object store."""
MIN_SEGMENT: Final = SEGMENT_BYTES // 2
"""The smallest segment that is worth storing, in bytes."""
STORE_SECONDS: Final = LEASE_SECONDS / 2
"""Seconds that storing may take. Nobody else can get the lease before they are over."""


async def framed_ahead(archive: Archive, name: tuple[str, str], data: bytes) -> Framed | None:
    """Return the frames of an append that waits for another one, if they may become a segment."""
    if len(data) < MIN_SEGMENT:
        return None
    content = data[: good_end(data)]  # as the segment ends that begins with it
    return await framed(archive.upload_workers(name[0]), content, level_at_once(archive))


async def fill(
    flusher: Flusher, archive: Archive, name: tuple[str, str], append: Append, ahead: Framed | None
) -> Append:
    """Store a segment that ends with the append. Return the rest of the append, for the buffer.

    The rest is all of it if there is no segment to fill, or if storing is not possible now. `name`: the
    tenant and the capture. `ahead`: the append's frames, if they are made.
    """
    if len(append.data) < MIN_BYTES:
        return append
    try:
        async with asyncio.timeout(STORE_SECONDS):
            end = await _end_of_segment(flusher, archive, name, append, ahead)
    except (ServiceError, TimeoutError):
        return append
    return append if end is None else append._replace(offset=end, data=append.data[end - append.offset :])


async def _end_of_segment(
    flusher: Flusher, archive: Archive, name: tuple[str, str], append: Append, ahead: Framed | None
) -> int | None:
    """Store the segment and return where it ends, None if none was stored."""
    record = await archive.catalog.live(*name, since=NO_BYTES)
    if record is None or record.accepted != append.offset:
        return None
    size = append.offset + len(append.data) - record.durable
    if size < MIN_SEGMENT or not archive.memory.large.try_take(name[0], 2 * size):
        return None
    try:
        return await _leased(flusher, archive, name, append, ahead)
    finally:
        archive.memory.large.give_back(name[0], 2 * size)


async def _leased(
    flusher: Flusher, archive: Archive, name: tuple[str, str], append: Append, ahead: Framed | None
) -> int | None:
    """Do the work of `_end_of_segment` with the memory for it."""
    entry = await archive.catalog.get(*name)
    if not isinstance(entry, Entry) or not entry.is_live:
        return None
    async with flusher.holding(entry) as is_held:
        return await _filled(flusher, archive, entry, append, ahead) if is_held else None


async def _filled(
    flusher: Flusher, archive: Archive, entry: Entry, append: Append, ahead: Framed | None
) -> int | None:
    """Do the work of `_end_of_segment`. The caller makes sure that nobody else works on the capture."""
    record = await archive.catalog.live(entry.tenant, entry.id)
    if record is None or not _continues(record, entry, append) or not await archive.catalog.is_complete():
        return None
    record = _with(record, entry, append)
    end = record.start + good_end(record.buffer)
    is_worth_it = end - record.start >= MIN_SEGMENT and end > append.offset
    if not is_worth_it:
        return None
    made = ahead if ahead is not None and _is_of(ahead, append, record.start, end) else None
    storing = store_at_once(archive, flusher.digests, entry, record, end, made)
    grown = await flusher.segment_metrics.counted(entry, record, storing)
    return None if grown is None or grown.size != end else end


def _is_of(ahead: Framed, append: Append, start: int, end: int) -> bool:
    """Return whether frames that were made of an append alone are those from `start` to `end`."""
    return start == append.offset and end - start == len(ahead.data)


def _continues(record: LiveRecord, entry: Entry, append: Append) -> bool:
    """Return whether the append is the next one, and nothing else of the capture is under way."""
    is_open = record.cut is None and record.ending is None and record.durable == entry.size
    return is_open and (record.producer, record.accepted) == (append.producer, append.offset)


def _with(record: LiveRecord, entry: Entry, append: Append) -> LiveRecord:
    """Return the record with the append added."""
    moment = round(append.now * 1000)
    mark = timeline.Mark(moment, append.offset)
    return replace(
        record,
        accepted=append.offset + len(append.data),
        buffer=record.buffer + append.data,
        marks=timeline.with_mark(record.marks, round(entry.created * 1000), mark),
    )
