"""The lifetime of a capture: its expiry, and holds, which end only when somebody releases them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from overspill_service.archive import retention
from overspill_service.archive.recovery.expiries import with_known_expiry
from overspill_service.catalog.records import HELD_UNTIL
from overspill_service.errors import CatalogRefuses, Forbidden, Held
from overspill_service.resources.tasks import run_to_completion
from overspill_service.store_format import object_keys

if TYPE_CHECKING:
    from overspill_service.archive.archive import Archive
    from overspill_service.archive.captures import Captures
    from overspill_service.catalog.records import Entry


async def set_ttl(captures: Captures, entry: Entry, ttl: int, *, may_shorten: bool) -> Entry:
    """Make a capture expire `ttl` seconds from now.

    Raises `InvalidParameter`, `Held`, and `Forbidden` if that is sooner than now and it may not be
    shortened.
    """
    require_free(entry)
    expires = retention.expiry(captures.archive.clock(), ttl, captures.tenant.limits)
    if expires < entry.expires and not may_shorten:
        raise Forbidden("a shorter life removes the capture sooner: that needs the scope delete")
    changed = await extend(captures, entry, expires)
    require_free(changed)  # it was put on hold meanwhile, or the catalog had missed that
    return changed


async def extend(captures: Captures, entry: Entry, expires: float) -> Entry:
    """Change the expiry, first in the object store, then in the catalog. Raises what `get` raises.

    The catalog accepts the change only if no other change came first. A later change has a higher
    revision. So the object store and the catalog agree on which change is the last. A capture that is
    put on hold meanwhile stays so.
    """
    return await run_to_completion(_set_expiry(captures, entry, expires))


async def hold(captures: Captures, entry: Entry) -> Entry:
    """Put a capture on hold. Until it is released, it does not expire and cannot be deleted.

    The hold is an expiry in the object store, so it outlives the loss of the catalog. Raises what `get`
    raises.
    """
    return await extend(captures, entry, HELD_UNTIL)


async def release(captures: Captures, entry: Entry) -> Entry:
    """End a capture's hold. It then lives for the default TTL. Raises what `get` raises."""
    expires = retention.expiry(captures.archive.clock(), None, captures.tenant.limits)
    return await run_to_completion(_set_expiry(captures, entry, expires, releases=True))


async def marked(archive: Archive, entry: Entry, expires: float) -> Entry:
    """Return a new entry, not yet in the catalog, with a later expiry. Write its expiry marker too."""
    marker = _new_marker(archive, entry, expires)
    await archive.store.put(marker, [object_keys.MARKER])
    if entry.marker is not None:
        await archive.store.delete([entry.marker])
    return replace(entry, expires=expires, marker=marker)


async def _set_expiry(captures: Captures, entry: Entry, expires: float, *, releases: bool = False) -> Entry:
    entry = await with_known_expiry(captures.archive, entry)
    while entry.is_held == releases:
        marker = _new_marker(captures.archive, entry, expires)
        # The marker first: if the catalog is lost after its answer, a rebuild still finds the new expiry.
        await captures.archive.store.put(marker, [object_keys.MARKER])
        try:
            stored = await captures.archive.catalog.amend(entry, expires=expires, marker=marker)
        except CatalogRefuses:
            await captures.archive.store.delete([marker])
            raise
        if stored is not None and stored.marker == marker:
            if entry.marker is not None:
                await captures.archive.store.delete([entry.marker])
            return stored
        await captures.archive.store.delete([marker])
        entry = stored or await captures.get(entry.id)
    return entry


def _new_marker(archive: Archive, entry: Entry, expires: float) -> str:
    """Return a marker key with a revision above all earlier ones, lost ones included."""
    now = int(archive.clock() * object_keys.MICROSECONDS)
    revision = max(object_keys.revision_of(entry.marker) + 1, now)
    return object_keys.marker_key(entry.tenant, entry.id, entry.upload, expires, revision)


def require_free(entry: Entry) -> None:
    """Raise `Held` if the capture is on hold."""
    if entry.is_held:
        raise held_error(entry)


def held_error(entry: Entry) -> Held:
    return Held(f"{entry.id} is on hold: a key with the scope admin can release it")
