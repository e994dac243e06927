"""Move a finished capture of many small segments into few objects.

    read ──► new upload ──► its last segment ──► entry of the new upload ──► old objects deleted

Until the entry is replaced every read uses the old objects, and after that the new ones. A crash leaves
either, and the sweep deletes what no entry needs.
"""

from __future__ import annotations

import logging
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from overspill_service.archive.archive import inline_index
from overspill_service.archive.recovery.entries import encode_entry
from overspill_service.archive.reservations import Reservation
from overspill_service.archive.upload_leases import renewing
from overspill_service.archive.upload_memory import upload_memory
from overspill_service.archive.uploading import SEGMENT_SIZE, Upload
from overspill_service.catalog.quotas import Quota
from overspill_service.errors import CaptureDamaged
from overspill_service.store_format import object_keys
from overspill_service.store_format.ingest import Ingest
from overspill_service.telemetry.logs import fields

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from overspill_service.archive.archive import Archive
    from overspill_service.catalog.records import Entry

WORTHWHILE: Final = 4
"""A capture is moved if that makes so many times fewer objects of it."""

log = logging.getLogger(__name__)


def is_worth_compacting(entry: Entry) -> bool:
    fewest = 1 + entry.stored_size // SEGMENT_SIZE
    if entry.is_live or entry.is_held:  # the hold is on these objects
        return False
    return len(entry.segments) >= WORTHWHILE * fewest


async def compact(archive: Archive, entry: Entry) -> Entry | None:
    """Return the entry of the new objects, or what others have made of the capture meanwhile."""
    async with upload_memory(archive.memory, None, entry.size, is_rekeyed=False) as memory:
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
    """Store the content once more. Raises `CaptureDamaged` if it is another one than the entry says."""
    workers = archive.upload_workers(entry.tenant)
    ingest = Ingest(None, level=archive.level, limit=entry.size)
    await upload.fill(ingest, renewing(archive, upload, _content(archive, entry)), workers)
    if (ingest.size, ingest.sha256) != (entry.size, entry.sha256):
        raise CaptureDamaged(f"{entry.id} reads as {ingest.size} bytes of another digest than its own")
    draft = replace(entry, upload=upload.name, segments=[], index=None, marker=None)
    await upload.seal(encode_entry(draft))
    count = sum(map(len, upload.frames))
    index = await archive.cpu.run_for_frames(count, inline_index, upload.frames)
    return replace(draft, segments=upload.segments, index=index)


async def _content(archive: Archive, entry: Entry) -> AsyncIterator[bytes]:
    reader = await archive.reader(entry, archive.upload_workers(entry.tenant))
    async with aclosing(reader.content(0, entry.size)) as pieces:
        async for piece in pieces:
            yield piece
