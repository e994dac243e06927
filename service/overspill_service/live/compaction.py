"""Move a finished capture of many small segments into few objects.

    frames ──► new upload ──► its last segment ──► entry of the new upload ──► old objects deleted

Until the entry is replaced every read uses the old objects, and after that the new ones. A crash leaves one
of the two, and the sweep deletes objects that no entry needs.
"""

from __future__ import annotations

import hashlib
import logging
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from overspill_service.archive.archive import inline_index
from overspill_service.archive.frame_reader import MAX_BATCH_FRAMES
from overspill_service.archive.moved import is_scattered
from overspill_service.archive.recovery.entries import encode_entry
from overspill_service.archive.recovery.expiries import with_known_expiry
from overspill_service.archive.reservations import Reservation
from overspill_service.archive.upload_leases import renewing
from overspill_service.archive.upload_memory import upload_memory
from overspill_service.archive.uploading import Upload
from overspill_service.catalog.quotas import Quota
from overspill_service.errors import CaptureDamaged
from overspill_service.store_format import object_keys
from overspill_service.store_format.frames import FRAME_SIZE, FrameWriter, decode_frame
from overspill_service.telemetry.logs import fields

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from overspill_service.archive.archive import Archive
    from overspill_service.catalog.records import Entry
    from overspill_service.store_format.frames import Frame
    from overspill_service.store_format.ingest import Framed

SMALL_FRAME: Final = FRAME_SIZE // 2
"""A frame with at least this many bytes of content stays unchanged."""

log = logging.getLogger(__name__)


def is_worth_compacting(entry: Entry) -> bool:
    return is_scattered(entry) and not entry.is_live and not entry.is_held  # the hold is on these objects


async def compact(archive: Archive, entry: Entry) -> Entry | None:
    """Return the entry of the new objects, or the entry that others have written meanwhile.

    An older catalog may have missed a change of its expiry that only the old objects have.
    """
    entry = await with_known_expiry(archive, entry)
    if entry.is_held:
        return entry
    async with upload_memory(archive.memory, entry.tenant, None, entry.size) as memory:
        name = object_keys.new_upload()
        reservation = Reservation(archive.catalog, entry.tenant, name, Quota())
        upload = Upload(archive.store, archive.cpu, memory, reservation, capture=entry.id)
        try:
            moved = await _copy(archive, entry, upload)
        except BaseException:
            await upload.discard()
            raise
    found = await archive.catalog.replace(entry, moved)
    if found is not moved:  # its expiry has changed, or it was removed: another round decides
        await upload.discard()
        return found
    archive.maps.discard(entry.version)
    await archive.store.delete(entry.keys)
    objects = {"before": len(entry.segments), "after": len(moved.segments)}
    details = fields(tenant=entry.tenant, capture=entry.id, **objects)
    log.info("moved a finished capture into fewer objects", extra=details)
    return moved


async def _copy(archive: Archive, entry: Entry, upload: Upload) -> Entry:
    """Store the frames once more. Raises `CaptureDamaged` if they have other content than the entry says."""
    content = _Content(archive.level)
    async with aclosing(_frames(archive, entry, content)) as batches:
        async for batch in renewing(archive, upload, batches):
            for framed in batch:
                await upload.add(framed)
    if (content.size, content.sha256.digest()) != (entry.size, entry.sha256):
        raise CaptureDamaged(
            f"the stored content of {entry.id}, {content.size} bytes, does not have its digest and size"
        )
    draft = replace(entry, upload=upload.name, segments=[], index=None, marker=None)
    await upload.seal(encode_entry(draft))
    count = sum(map(len, upload.frames))
    index = await archive.cpu.run_for_frames(count, inline_index, upload.frames)
    return replace(draft, segments=upload.segments, index=index)


async def _frames(archive: Archive, entry: Entry, content: _Content) -> AsyncGenerator[list[Framed], None]:
    """Yield the frames of the new segments."""
    workers = archive.upload_workers(entry.tenant)
    reader = await archive.reader(entry, workers)
    async with aclosing(reader.stored_frames()) as blocks:
        async for frames, stored in blocks:
            rest = memoryview(stored)
            for first in range(0, len(frames), MAX_BATCH_FRAMES):
                batch = [reader.frames[each] for each in frames[first : first + MAX_BATCH_FRAMES]]
                yield await workers.run(content.take, batch, rest)
                rest = rest[sum(frame.stored_size for frame in batch) :]
    yield await workers.run(content.finish)


class _Content:
    """The content of a capture, frame by frame. CPU work: call its methods in a thread.

    A large frame stays as it is. Small ones are joined: a slow producer leaves one for each segment.
    """

    def __init__(self, level: int) -> None:
        self.size = 0
        self.sha256 = hashlib.sha256()
        self._joined = FrameWriter(level)

    def take(self, frames: Sequence[Frame], stored: memoryview) -> list[Framed]:
        """Return the new frames for those with which `stored` begins. Raises `CaptureDamaged`."""
        made: list[Framed] = []
        for frame in frames:
            made += self._taken(frame, stored[: frame.stored_size])
            stored = stored[frame.stored_size :]
        return made

    def finish(self) -> list[Framed]:
        """Return the last frame, if one is left."""
        return self._joined.finish()

    def _taken(self, frame: Frame, stored: memoryview) -> list[Framed]:
        content = decode_frame(stored, frame)
        self.size += len(content)
        self.sha256.update(content)
        if frame.size < SMALL_FRAME:
            return self._joined.write(content)
        return [*self._joined.finish(), (frame, bytes(stored))]
