"""Rebuild the catalog: add lost entries, correct expiries, drop entries without objects."""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from overspill_service.archive.recovery.entries import captures_in, entry_of, record_of
from overspill_service.archive.recovery.expiries import hold_as_others, newer_marker, with_corrected_expiry
from overspill_service.archive.recovery.stale_entries import (
    UploadFilter,
    drop_entry,
    drop_if_stale,
    drop_stale,
    is_gone,
)
from overspill_service.archive.removal import finish_removals
from overspill_service.archive.removal_records import removed_uploads
from overspill_service.catalog.quotas import Quota
from overspill_service.catalog.records import Entry, Tombstone
from overspill_service.errors import CaptureDamaged, RecordDamaged, ServiceError
from overspill_service.store_format import object_keys
from overspill_service.telemetry.logs import fields

if TYPE_CHECKING:
    from collections.abc import Iterable

    from overspill_service.archive.archive import Archive
    from overspill_service.archive.recovery.entries import CaptureFound

CONCURRENCY: Final = 16
"""Captures read at the same time."""
MAX_LIVE: Final = 1_000_000
YOUNG_SECONDS: Final = 120.0
"""Age after which no upload can still be between its last segment and its end."""
LEASE: Final = "rebuild"
LEASE_TTL: Final = 15.0
"""Seconds after which another process takes over from one that died. Two rebuilds at once do no harm."""

log = logging.getLogger(__name__)


async def rebuild(archive: Archive, holder: str = "") -> int:
    """Put every unexpired capture of the object store into the catalog, and return their number.

    The API keys come first: a catalog that calls itself complete, and lacks them, would refuse them all.
    First finish interrupted removals; at the end drop entries whose objects are gone. Entries that the
    catalog has stay as they are, so a rebuild may run at any time, and twice at once. The lease of `holder`
    is renewed on the way.
    """
    began = await archive.catalog.begin_rebuild()
    if not await archive.catalog.is_complete():
        await _doubt_live(archive)
    await archive.keyring.restore()
    removed = await _unfinished_removals(archive)
    listed = UploadFilter(secrets.token_bytes(16))
    count = 0
    pending: list[CaptureFound] = []
    async for found in captures_in(archive):
        for upload in found.uploads:
            if upload.segments:
                listed.add(upload.name)
        pending.append(found)
        if len(pending) == CONCURRENCY:
            count += await _ensure_entries(archive, pending, removed)
            pending = []
            await _renew(archive, holder)
    count += await _ensure_entries(archive, pending, removed)
    await _drop_stale(archive, listed, holder)
    await archive.catalog.mark_complete(began)
    return count


async def _doubt_live(archive: Archive) -> None:
    """Note for all live captures that more bytes may have been accepted: the catalog may be an older copy."""
    live = await archive.catalog.due(math.inf, MAX_LIVE)
    for start in range(0, len(live), CONCURRENCY):
        await asyncio.gather(
            *(archive.catalog.doubt_live(*each) for each in live[start : start + CONCURRENCY])
        )


async def _drop_stale(archive: Archive, listed: UploadFilter, holder: str) -> None:
    dropped = 0
    async with aclosing(drop_stale(archive, listed)) as pages:
        async for page in pages:
            dropped += page
            await _renew(archive, holder)
    if dropped:
        log.warning("dropped %d entries from the catalog: their objects were deleted", dropped)


async def _renew(archive: Archive, holder: str) -> None:
    if holder:
        await archive.catalog.lease(LEASE, holder, LEASE_TTL)


async def rebuild_if_due(archive: Archive, holder: str) -> int | None:
    """Rebuild if the catalog needs it and no other process does it. Return None if nothing was done."""
    if not await archive.catalog.is_rebuild_due():
        return None
    if not await archive.catalog.lease(LEASE, holder, LEASE_TTL):
        return None
    try:
        return await rebuild(archive, holder)
    finally:
        await archive.catalog.release(LEASE, holder)


async def _unfinished_removals(archive: Archive) -> frozenset[str]:
    """Finish interrupted removals. Return the uploads whose objects the store does not delete yet."""
    try:
        await finish_removals(archive)
    except ServiceError as error:
        log.warning("a removal cannot be finished now", extra=fields(code=error.code, cause=str(error)))
    return await removed_uploads(archive)


async def _ensure_entries(archive: Archive, found: Iterable[CaptureFound], removed: frozenset[str]) -> int:
    return sum(await asyncio.gather(*(ensure_entry(archive, each, removed) for each in found)))


async def ensure_entry(archive: Archive, found: CaptureFound, removed: frozenset[str] = frozenset()) -> bool:
    """Make sure that a capture with objects has an entry. Return False if its objects give none.

    `removed` uploads are ignored. If the catalog has the entry its objects are not read, but its expiry is
    corrected. An older catalog may have an entry whose objects have moved since: a complete one must not.
    """
    try:
        record = await _known(archive, found)
    except RecordDamaged:
        return False
    if isinstance(record, Entry) and await _has_moved(archive, found, record):
        return await _replace_moved(archive, found, record, removed)
    if isinstance(record, Entry):
        await hold_as_others(archive, found, record)
        if record.is_live:
            await with_all_segments(archive, found, record, removed)
    if isinstance(record, Entry) and not record.is_expired(archive.clock()):
        return True
    entry = await entry_of(archive, found, removed)
    if entry is None or entry.is_expired(archive.clock()):
        return False
    return isinstance(await restore_entry(archive, entry, Quota()), Entry)


async def _known(archive: Archive, found: CaptureFound) -> Entry | Tombstone | None:
    """Return the catalog's record of a capture, with the expiry that its objects have.

    A capture that was removed since the catalog was copied is removed from the catalog too. Raises
    `RecordDamaged`.
    """
    record = await record_of(archive, found.tenant, found.capture)
    if not isinstance(record, Entry):
        return record
    if found.is_removed(record):
        await drop_entry(archive, record)
        log.warning("dropped a removed capture", extra=fields(tenant=record.tenant, capture=record.id))
        return None
    return record if newer_marker(found, record) is None else await with_corrected_expiry(archive, record)


async def compared(archive: Archive, entry: Entry) -> Entry | Tombstone | None:
    """Return the catalog's record of a capture, compared with its objects if it is live.

    An incomplete catalog may be older than the end of a live capture, or its removal, and still have bytes
    that were accepted then.
    """
    if not entry.is_live or await archive.catalog.is_complete():
        return entry
    removed = await removed_uploads(archive, object_keys.removals_prefix(entry.tenant))
    prefix = object_keys.capture_prefix(entry.tenant, entry.id)
    found = await anext(captures_in(archive, prefix), None)
    if found is None:
        await drop_if_stale(archive, entry)
    else:
        await ensure_entry(archive, found, removed)
    return await archive.catalog.get(entry.tenant, entry.id)


async def _has_moved(archive: Archive, found: CaptureFound, record: Entry) -> bool:
    """Return whether the objects of an entry are gone, and others of its capture are there.

    An older copy of the catalog may come from a time when a live capture had no object yet.
    """
    names = {upload.name for upload in found.uploads if upload.segments}
    if not names or record.upload in names:
        return False
    return await is_gone(archive, record) if record.segments else record.is_live


async def _replace_moved(
    archive: Archive, found: CaptureFound, record: Entry, removed: frozenset[str]
) -> bool:
    """Replace an entry whose objects are gone by that of the capture's present objects.

    Return False if they give none: then the end of the rebuild drops the entry.
    """
    entry = await entry_of(archive, found, removed)
    if entry is None or entry.is_expired(archive.clock()):
        return False
    await drop_entry(archive, record)
    return isinstance(await restore_entry(archive, replace(entry, **record.reading), Quota()), Entry)


async def with_all_segments(
    archive: Archive, found: CaptureFound, record: Entry, removed: frozenset[str] = frozenset()
) -> Entry:
    """Return the entry of a live capture with all segments of its objects.

    A catalog that went back to an older state knows fewer. Since then the capture may have ended, and been
    copied to other objects that are to take the place of these.
    """
    listed = next((each.count for each in found.uploads if each.name == record.upload), 0)
    if listed <= len(record.segments):
        return record
    stored = await entry_of(archive, found, removed)
    if stored is None or stored.created != record.created or stored.size < record.size:
        return record
    if stored.upload != record.upload and stored.is_live:
        return record
    replaced = await archive.catalog.replace(record, replace(stored, **record.reading))
    await archive.catalog.schedule(record.tenant, record.id, archive.clock())
    return record if replaced is None else replaced


async def restore_entry(archive: Archive, entry: Entry, quota: Quota) -> Entry | Tombstone | None:
    """Commit the entry of a whole upload. Return None if the upload was withdrawn meanwhile.

    The storing process may be about to withdraw a young upload: it deletes the objects first, then the entry.
    So after the commit this looks for the objects again, and one of the two processes drops the entry. Raises
    what `Catalog.commit` raises.
    """
    committed = await archive.catalog.commit(entry, quota)
    if entry.is_live:
        await archive.catalog.schedule(entry.tenant, entry.id, archive.clock())
    if not isinstance(committed, Entry) or committed.upload != entry.upload or not is_young(archive, entry):
        return committed
    try:
        await archive.index_of(entry, len(entry.segments) - 1)
    except CaptureDamaged:
        await drop_entry(archive, entry)
        return None
    return committed


def is_young(archive: Archive, entry: Entry) -> bool:
    return entry.created > archive.clock() - YOUNG_SECONDS
