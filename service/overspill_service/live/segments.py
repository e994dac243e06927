"""Stores accepted bytes of a live capture as its next segment.

    cut decided in the catalog ──► segment in the object store ──► entry grown, buffer trimmed

Whichever step is interrupted, no byte is stored twice or skipped. Each attempt writes under a key of its own,
so none replaces what another has stored, even in stores that would let it. The catalog decides which attempt
counts: it changes an entry only if that is still the one that the attempt began with. So the lease of the
capture only spares work. A replica that takes over looks for a segment that the entry does not have, and
takes it in as it is. A segment that no entry has is deleted by the replica that stored it, or else by the
sweep.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from overspill_service.archive.archive import grown_index, inline_index
from overspill_service.archive.recovery.entries import captures_in, encode_entry
from overspill_service.archive.recovery.rebuild import with_all_segments
from overspill_service.archive.retention import end_of_life
from overspill_service.archive.storing import BINARY_TYPE, DEFAULT_TYPE
from overspill_service.catalog.records import Entry, Segment
from overspill_service.live.growth import with_content
from overspill_service.store_format.frames import (
    CUT_BYTES,
    FAST_LEVEL,
    Frame,
    frames_between,
    incomplete_character,
)
from overspill_service.store_format.index import Index, trailer
from overspill_service.store_format.object_keys import capture_prefix, new_upload, segment_key

if TYPE_CHECKING:
    from overspill_service.archive.archive import Archive
    from overspill_service.catalog.live import LiveRecord
    from overspill_service.live.digests import Digests, HashState
    from overspill_service.live.ending import Ending
    from overspill_service.resources.cpu import Workers

HALVED_BYTES: Final = 2 * 2**20
"""Bytes of content of which two threads make the frames."""
NEWLINE_SEARCH: Final = 64 * 1024
"""Bytes at the end of a segment in which a newline is looked for, to end it there."""


class Framed(NamedTuple):
    """The content of a segment, and its frames with their compressed bytes."""

    data: bytes
    frames: list[Frame]
    pieces: list[bytes]

    @property
    def newlines(self) -> int:
        return sum(frame.newlines for frame in self.frames)


class _Stored(NamedTuple):
    """A segment in the object store, its frames, and the hash of the capture up to its end if it is known."""

    segment: Segment
    frames: list[Frame]
    hash: HashState | None


async def store_segment(
    archive: Archive, digests: Digests, entry: Entry, record: LiveRecord, ending: Ending | None
) -> Entry | None:
    """Store what is accepted, or what was decided to be the next segment. With `ending`, it is the last one.

    Return the entry as it then is. If it is live in spite of `ending`, there is more to store. None if the
    capture was removed. Raises `StoreUnavailable`, `CatalogUnavailable`.
    """
    if record.cut is not None:  # whoever decided on it may have stored it
        known = await resumed(archive, entry)
        if known != entry:
            return known
    target = record.accepted if ending is not None else record.start + good_end(record.buffer)
    if record.cut is None and ending is None and target == record.start:
        return entry
    end = await archive.catalog.plan_cut(entry.tenant, entry.id, target)
    if end is None:
        return None
    data = record.buffer[: end - record.start]
    final = ending if end == record.accepted else None
    async with archive.memory.queue_for(2 * len(data)).shares(entry.tenant, 2 * len(data)):
        content = await framed(archive.upload_workers(entry.tenant), data, archive.level)
        return await _stored(archive, digests, entry, record, content, final)


async def store_at_once(
    archive: Archive,
    digests: Digests,
    entry: Entry,
    record: LiveRecord,
    end: int,
    ahead: Framed | None,
) -> Entry | None:
    """Store the buffer up to `end` as the next segment, although the catalog has not accepted all of it.

    `ahead` has the frames, if they are made. Return the entry as it then is: without that segment if others
    have worked on the capture meanwhile, or its end was told. None if the capture was removed. Raises as
    `store_segment` does.
    """
    if ahead is None:
        data = record.buffer[: end - record.start]
        ahead = await framed(archive.upload_workers(entry.tenant), data, level_at_once(archive))
    return await _stored(archive, digests, entry, record, ahead, None)


def level_at_once(archive: Archive) -> int:
    """Return the compression level for bytes whose producer waits."""
    return min(archive.level, FAST_LEVEL)


async def _stored(
    archive: Archive,
    digests: Digests,
    entry: Entry,
    record: LiveRecord,
    content: Framed,
    ending: Ending | None,
) -> Entry | None:
    """Store frames as the next segment, with `ending` as the last one. Return the entry as `_grow` does."""
    draft = _draft(archive, entry, record, content)
    if ending is not None:
        draft = ending.of(draft, archive.clock())
    workers = archive.upload_workers(entry.tenant)
    hashing = workers.start(digests.fed, entry.upload, entry.size, content.data)
    try:
        segment = await _store(archive, entry, draft, content, is_last=ending is not None)
    finally:
        state = await hashing
    stored = _Stored(segment, content.frames, state)
    return await _grow(archive, digests, entry, draft, stored)


async def resumed(archive: Archive, entry: Entry) -> Entry:
    """Return the entry, with the segments in the object store that the catalog does not know."""
    async for found in captures_in(archive, capture_prefix(entry.tenant, entry.id)):
        return await with_all_segments(archive, found, entry)
    return entry


def good_end(buffer: bytes, limit: int | None = None) -> int:
    """Return where to cut, before `limit` bytes or the end.

    It is behind the last newline if one is near, else between two characters.
    """
    stop = len(buffer) if limit is None else limit
    newline = buffer.rfind(b"\n", max(0, stop - NEWLINE_SEARCH), stop)
    if newline >= 0:
        return newline + 1
    return stop - incomplete_character(buffer[max(0, stop - CUT_BYTES) : stop])


async def framed(workers: Workers, data: bytes, level: int) -> Framed:
    """Return the frames of the next segment's content. Both halves of much content are done at once."""
    middle = good_end(data, len(data) // 2) if len(data) >= HALVED_BYTES else len(data)
    spans = [span for span in ((0, middle), (middle, len(data))) if span[0] < span[1]]
    halves = await asyncio.gather(*(workers.run(frames_between, data, *span, level) for span in spans))
    made = [frame for half in halves for frame in half]
    return Framed(data, [frame for frame, _ in made], [piece for _, piece in made])


def _draft(archive: Archive, entry: Entry, record: LiveRecord, content: Framed) -> Entry:
    """Return the entry after this segment, without the segment's position."""
    grown = with_content(entry, record, content.data, content.frames)
    return replace(
        grown,
        content_type=entry.content_type or (BINARY_TYPE if grown.kind == "binary" else DEFAULT_TYPE),
        last_append=record.active,
        expires=max(entry.expires, end_of_life(archive.clock(), entry.life)),
    )


async def _store(archive: Archive, entry: Entry, draft: Entry, content: Framed, *, is_last: bool) -> Segment:
    name = new_upload()
    index = Index(
        number=len(entry.segments),
        last=is_last,
        first_offset=entry.size,
        first_newline=entry.newlines,
        frames=content.frames,
        entry=encode_entry(draft),
        upload=entry.upload,
    )
    pieces = [*content.pieces, await archive.cpu.run_for_frames(len(content.frames), trailer, index)]
    await archive.store.put(segment_key(entry.tenant, entry.id, entry.upload, index.number, name), pieces)
    return Segment(sum(map(len, pieces)), len(content.data), content.newlines, name)


async def _grow(
    archive: Archive, digests: Digests, entry: Entry, draft: Entry, stored: _Stored
) -> Entry | None:
    """Add the segment to the entry in the catalog, unless others have added one, or its end was told.

    If it is not added it is deleted again, unless the catalog may be told of it by the objects.
    """
    while True:
        segments = [*entry.segments, stored.segment]
        grown = replace(draft, segments=segments, index=_index_with(entry, stored.frames))
        found = await archive.catalog.replace(entry, grown)
        if found is grown:
            archive.maps.discard(entry.version)
            digests.keep(grown.upload, stored.hash)
            return grown
        if found is None or found.upload != entry.upload:
            if await _is_removed(archive, entry):
                await archive.store.delete([grown.segment_keys[-1]])
            return None
        if found == entry or found.segments != entry.segments:
            if grown.segment_keys[-1] not in found.segment_keys and await archive.catalog.is_complete():
                await archive.store.delete([grown.segment_keys[-1]])
            return found
        entry = found  # its expiry was changed meanwhile, or it was read
        expires = max(draft.expires, found.expires)
        draft = replace(draft, marker=found.marker, expires=expires, **found.reading)


async def _is_removed(archive: Archive, entry: Entry) -> bool:
    known = await archive.catalog.get(entry.tenant, entry.id)
    return known is not None or await archive.catalog.is_complete()


def _index_with(entry: Entry, frames: list[Frame]) -> bytes | None:
    """Return the entry's frame map with one more segment, None if it is too large for the catalog."""
    if not entry.segments:
        return inline_index([frames])
    return None if entry.index is None else grown_index(entry.index, frames)
