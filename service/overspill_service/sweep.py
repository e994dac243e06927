"""The periodic job that removes what nobody can read any more: expired captures and orphans.

Any number of replicas may run it at once: removing an entry succeeds for one of them only, leases keep
them from doing the same work, and deleting an object twice does no harm.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from overspill import wire

from overspill_service import object_keys
from overspill_service.captures import Captures
from overspill_service.catalog import Entry
from overspill_service.rebuild import adopt, captures_in

if TYPE_CHECKING:
    from overspill_service.archive import Archive
    from overspill_service.rebuild import CaptureFound
    from overspill_service.tenants import Tenant

PAGE: Final = 200
"""Expired captures removed between two looks at the catalog."""

log = logging.getLogger(__name__)


async def sweep_expired(archive: Archive, tenant: Tenant) -> wire.Removed:
    """Remove the tenant's expired captures: entries first, then objects."""
    captures = Captures(archive, tenant)
    count = stored_size = 0
    while entries := await archive.catalog.expired(tenant.name, now=archive.clock(), limit=PAGE):
        for entry in entries:
            removed = await captures.bury(entry, "expired")
            count, stored_size = count + removed.captures, stored_size + removed.stored_size
    return wire.Removed(captures=count, stored_size=stored_size)


async def sweep_orphans(archive: Archive, *, age: float) -> int:
    """Go through all objects; delete those that no entry will ever need, adopt those that lack theirs.

    An upload younger than `age` seconds is let alone: it may still be on its way. Nothing is touched while
    the catalog is incomplete. Returns how many objects were deleted.
    """
    if not await archive.catalog.is_complete():
        return 0
    deleted = 0
    async for found in captures_in(archive, object_keys.ROOT):
        deleted += await _sweep_capture(archive, found, archive.clock() - age)
    return deleted


async def _sweep_capture(archive: Archive, found: CaptureFound, before: float) -> int:
    old = [upload for upload in found.uploads if upload.modified < before]
    if not old:
        return 0
    known = await archive.catalog.get(found.tenant, found.capture)
    if known is None and not await archive.catalog.is_complete():  # lost since: it knows nothing now
        return 0
    if known is None and await adopt(archive, found):
        log.warning("gave %s of tenant %s its lost entry back", found.capture, found.tenant)
        known = await archive.catalog.get(found.tenant, found.capture)
    kept = frozenset(known.keys if isinstance(known, Entry) else ())
    keys = [each.key for upload in old for each in upload.objects if each.key not in kept]
    await archive.store.delete(keys)
    return len(keys)
