"""Remove expired captures and orphaned objects, which nobody can read.

Any number of replicas may sweep at once. Only one of them succeeds in removing an entry, leases prevent
double work, and deleting an object twice does no harm.
"""

from __future__ import annotations

import logging
import math
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from overspill import wire

from overspill_service.archive.recovery.entries import captures_in, record_of
from overspill_service.archive.recovery.expiries import with_confirmed_expiries
from overspill_service.archive.recovery.rebuild import ensure_entry
from overspill_service.archive.removal import (
    delete_objects,
    put_tombstones,
    removal_without_record,
)
from overspill_service.archive.removal_records import removed_uploads
from overspill_service.archive.retention import REMOVAL_MARKER_TTL
from overspill_service.archive.upload_leases import is_active
from overspill_service.catalog.records import Entry, Tombstone
from overspill_service.errors import RecordDamaged, ServiceError
from overspill_service.resources.tasks import fan_out
from overspill_service.store_format import object_keys
from overspill_service.telemetry.logs import fields

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from overspill_service.archive.archive import Archive
    from overspill_service.archive.recovery.entries import CaptureFound
    from overspill_service.archive.removal import PendingRemoval
    from overspill_service.objects import StoredObject

PAGE: Final = 1000
"""Expired captures that are removed together: as many objects as one multi-delete takes."""
CONCURRENT_PAGES: Final = 4
"""Pages whose objects are deleted while the next page is looked up."""
CONCURRENT_TENANTS: Final = 4

log = logging.getLogger(__name__)


class SweepResult(Struct, frozen=True):
    """The result of a sweep of several tenants."""

    removed: wire.Removed
    failed: list[str]
    """The tenants whose sweep failed."""


async def sweep_all(archive: Archive, tenants: Iterable[str]) -> SweepResult:
    """Remove the expired captures of several tenants, some at the same time.

    A failure with one tenant is logged and does not affect the others. Raises `ClockSkewed`.
    """
    await archive.shared_clock.require_agreement()
    await archive.store.make_room()

    async def one(tenant: str) -> wire.Removed | str:
        try:
            return await sweep_expired(archive, tenant)
        except ServiceError as error:
            details = fields(tenant=tenant, code=error.code, cause=str(error))
            log.warning("the sweep of a tenant failed, to be tried again", extra=details)
            return tenant

    results = await fan_out(one, tenants, concurrency=CONCURRENT_TENANTS)
    removed = (each for each in results if not isinstance(each, str))
    return SweepResult(_sum_removed(removed), [each for each in results if isinstance(each, str)])


async def sweep_expired(archive: Archive, tenant: str) -> wire.Removed:
    """Remove a tenant's expired captures: first the entries, then the objects, one request for each page."""
    await archive.shared_clock.require_agreement()
    pages = _replaced_pages(archive, tenant)
    removed = _sum_removed(
        await fan_out(partial(delete_objects, archive), pages, concurrency=CONCURRENT_PAGES)
    )
    if removed.captures:
        size = {"captures": removed.captures, "bytes": removed.stored_size}
        log.info("swept expired captures", extra=fields(tenant=tenant, **size))
    return removed


async def _replaced_pages(archive: Archive, tenant: str) -> AsyncIterator[list[PendingRemoval]]:
    """Yield pages of expired captures whose entries have been replaced by tombstones."""
    while entries := await archive.catalog.expired(tenant, now=archive.clock(), limit=PAGE):
        entries = await with_confirmed_expiries(archive, entries)
        expired = [entry for entry in entries if entry.is_expired(archive.clock())]
        yield await put_tombstones(archive, [*map(removal_without_record, expired)], "expired")


def _sum_removed(removed: Iterable[wire.Removed]) -> wire.Removed:
    parts = list(removed)
    return wire.Removed(
        captures=sum(part.captures for part in parts), stored_size=sum(part.stored_size for part in parts)
    )


class OrphanResult(Struct, frozen=True):
    """The result of a search for orphans."""

    deleted: int = 0
    """The number of deleted objects."""
    size: int = 0
    """Bytes of remaining objects that no capture needs: too young, or of an upload that is still running."""


async def sweep_orphans(archive: Archive, *, age: float) -> OrphanResult:
    """List all objects. Delete those that no entry will need, and restore missing entries.

    The objects of an upload stay if it is younger than `age` seconds, or holds its lease. Nothing is deleted
    while the catalog is incomplete. Markers of removals are deleted when their time is over.
    """
    await archive.shared_clock.require_agreement()
    if not await archive.catalog.is_complete():
        return OrphanResult()
    now = await archive.store_time()
    removed = await removed_uploads(archive)
    deleted = size = 0
    async for found in captures_in(archive, object_keys.ROOT):
        await _sweep_markers(archive, found, now - REMOVAL_MARKER_TTL)
        if not found.uploads:
            continue
        swept = await _sweep_capture(archive, found, now - age, removed)
        deleted, size = deleted + swept.deleted, size + swept.size
    return OrphanResult(deleted, size + await archive.store.sweep_temporary(age))


async def _sweep_markers(archive: Archive, found: CaptureFound, before: float) -> None:
    old = [each.key for each in found.removals.values() if each.modified < before]
    if old:
        await archive.store.delete(old)


async def _sweep_capture(
    archive: Archive, found: CaptureFound, before: float, removed: frozenset[str]
) -> OrphanResult:
    try:
        record = await record_of(archive, found.tenant, found.capture)
    except RecordDamaged:  # its entry may need the objects
        return OrphanResult()
    # Checked again: the catalog may have lost data since the sweep began.
    if record is None and not await archive.catalog.is_complete():
        return OrphanResult()
    if record is None and await ensure_entry(archive, found, removed):
        details = fields(tenant=found.tenant, capture=found.capture)
        log.warning("gave a capture its lost entry back", extra=details)
        record = await archive.catalog.get(found.tenant, found.capture)
    unneeded = {each.key: each.size for each in _unneeded(found, record, math.inf)}
    if not _unneeded(found, record, before):
        return OrphanResult(0, sum(unneeded.values()))
    active = [upload.name for upload in found.uploads if await is_active(archive, upload.name)]
    keys: list[str] = []
    async for fresh in captures_in(archive, object_keys.capture_prefix(found.tenant, found.capture)):
        keys += [  # listed again: an upload that continued meanwhile is not an orphan
            each.key for each in _unneeded(fresh, record, before) if _upload_of(each) not in active
        ]
    await archive.store.delete(keys)
    for key in keys:
        unneeded.pop(key, None)
    return OrphanResult(len(keys), sum(unneeded.values()))


def _unneeded(found: CaptureFound, record: Entry | Tombstone | None, before: float) -> list[StoredObject]:
    """Return the objects that no entry needs, of uploads that have not changed since `before`."""
    needed = frozenset(record.keys if isinstance(record, Entry) else ())
    old = [upload for upload in found.uploads if upload.modified < before]
    return [each for upload in old for each in upload.objects if each.key not in needed]


def _upload_of(stored: StoredObject) -> str:
    key = object_keys.parse(stored.key)
    return "" if key is None else key.upload
