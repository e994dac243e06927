"""The progress of a live capture: how many bytes are accepted, and how many of them are durable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overspill import wire

from overspill_service.archive.captures import check_id
from overspill_service.catalog.live import NO_BYTES
from overspill_service.catalog.records import Entry
from overspill_service.errors import NotLive
from overspill_service.live.flusher import reopened

if TYPE_CHECKING:
    from overspill_service.archive.archive import Archive
    from overspill_service.archive.captures import Captures
    from overspill_service.catalog.live import LiveRecord


async def progress(archive: Archive, entry: Entry) -> wire.LiveStatus:
    """Return the progress of a capture. Begin its buffer again if the catalog has lost it."""
    record = await archive.catalog.live(entry.tenant, entry.id, since=NO_BYTES)
    if record is None and entry.is_live:
        try:
            record = await reopened(archive, entry)
        except NotLive:
            ended = await archive.catalog.get(entry.tenant, entry.id)
            if not isinstance(ended, Entry):
                raise
            entry = ended
    return _status(entry, record)


async def progress_for(
    captures: Captures, capture: str, producer: str | None, *, may_read: bool
) -> wire.LiveStatus | None:
    """Return the progress of a capture, for a refusal.

    None if the caller may not know, or if it is not known. The producer of a capture may know, and everyone
    who may read it. Raises `InvalidId`, `CatalogUnavailable`.
    """
    check_id(capture)
    catalog = captures.archive.catalog
    found = await catalog.get(captures.tenant.name, capture)
    if not isinstance(found, Entry) or not captures.allows(found):
        return None
    if not may_read and not (producer and found.producer == producer):
        return None
    return _status(found, await catalog.live(found.tenant, found.id, since=NO_BYTES))


def _status(entry: Entry, record: LiveRecord | None) -> wire.LiveStatus:
    accepted, durable = (entry.size,) * 2 if record is None else (record.accepted, record.durable)
    return wire.LiveStatus(id=entry.id, state=entry.state, accepted=accepted, durable=durable, gap=entry.gap)
