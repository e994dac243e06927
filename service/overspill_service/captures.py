"""Captures as one tenant sees them: look up, list, extend, remove."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from overspill import wire

from overspill_service import object_keys, retention
from overspill_service.catalog import Entry, Query, Quota, Tombstone, instant
from overspill_service.errors import CatalogIncomplete, Deleted, Expired, InvalidId, NotFound
from overspill_service.rebuild import recover
from overspill_service.removal import erase, finish_removals

if TYPE_CHECKING:
    from overspill_service.archive import Archive
    from overspill_service.tenants import Tenant

MARKER: Final = bytes.fromhex("5d2a4d1800000000")
"""What an expiry marker holds: an empty skippable frame. Its key says everything."""
PAGE: Final = 200
"""Captures of a session that are removed together."""
MICROSECONDS: Final = 10**6


class Captures:
    """The captures of one tenant; no method can reach another's."""

    def __init__(self, archive: Archive, tenant: Tenant) -> None:
        self.archive, self.tenant = archive, tenant
        self._catalog = archive.catalog

    async def get(self, ref: str, session: str | None = None) -> Entry:
        """The entry of a capture id or of `call:{tool-call id}` (the newest; `session` narrows).

        Raises `NotFound`, `Expired`, `Deleted`, `InvalidId`, and `CatalogIncomplete` where the catalog was
        lost and cannot tell yet.
        """
        if (call_id := call_id_of(ref)) is not None:
            return await self._find_call(call_id, session)
        match found := await self.look_up(ref):
            case Entry() if found.is_expired(self.archive.clock()):
                raise Expired(ref, instant(found.expires))
            case Entry() if session in (None, found.session):
                return found
            case Tombstone(reason="expired"):
                raise Expired(ref, instant(found.at))
            case Tombstone():
                raise Deleted(f"{ref} was deleted at {instant(found.at):%Y-%m-%dT%H:%M:%SZ}")
        raise NotFound(f"there is no capture {ref}; GET {wire.Path.CAPTURES} lists those that there are")

    async def look_up(self, capture: str) -> Entry | Tombstone | None:
        """What is known of a capture id, expired or not; out of the object store while the catalog is lost.

        Raises `InvalidId`.
        """
        check_id(capture)
        found = await self._catalog.get(self.tenant.name, capture)
        return await self._recover(capture) if found is None else found

    async def is_lost(self, capture: str, upload: str) -> bool:
        """Whether an upload whose object is missing is still the one to read: then nobody removed it.

        Raises what `get` raises, and `CatalogIncomplete` where the catalog may be older than a removal.
        """
        if (await self.get(capture)).upload != upload:
            return False
        await self._require_complete()
        return True

    async def find(self, query: Query, *, limit: int, cursor: str | None) -> wire.Listing:
        """A page of unexpired captures, newest first."""
        entries, following = await self._catalog.find(
            self.tenant.name, query, now=self.archive.clock(), limit=limit, cursor=cursor
        )
        incomplete = not await self._catalog.is_complete()
        return wire.Listing(captures=[e.public() for e in entries], cursor=following, incomplete=incomplete)

    async def set_ttl(self, ref: str, ttl: int, session: str | None = None) -> Entry:
        """Let a capture live `ttl` seconds from now. Raises what `get` raises, and `InvalidParameter`."""
        entry = await self.get(ref, session)
        return await self.extend(entry, retention.expiry(self.archive.clock(), ttl, self.tenant.limits))

    async def delete(self, ref: str, session: str | None = None) -> wire.Removed:
        """Remove a capture for good. Raises what `get` raises.

        One that has expired goes at once, not at the next sweep; a removal that was cut short is finished.
        """
        found = await self.look_up(ref) if call_id_of(ref) is None else None
        if isinstance(found, Tombstone):
            await self.archive.store.delete(found.keys)
            return wire.Removed(captures=0, stored_size=0)
        if not isinstance(found, Entry) or session not in (None, found.session):
            found = await self.get(ref, session)
        return await erase(self.archive, self.tenant.name, [found])

    async def delete_session(self, session: str) -> wire.Removed:
        """Remove every capture of a session, expired or not, and finish removals that were cut short.

        Raises `CatalogIncomplete` where the catalog was lost and may not know all of them yet.
        """
        captures = stored_size = 0
        while True:
            entries, _ = await self._catalog.find(self.tenant.name, Query(session=session), now=0, limit=PAGE)
            removed = await erase(self.archive, self.tenant.name, entries)
            captures, stored_size = captures + removed.captures, stored_size + removed.stored_size
            if not entries:
                await finish_removals(self.archive, object_keys.removals_prefix(self.tenant.name))
                await self._require_complete()
                return wire.Removed(captures=captures, stored_size=stored_size)

    async def usage(self) -> wire.Usage:
        totals = await self._catalog.totals(self.tenant.name)
        limits = self.tenant.limits
        return wire.Usage(
            tenant=self.tenant.name,
            captures=totals.captures,
            size=totals.size,
            stored_size=totals.stored_size,
            oldest=None if totals.oldest is None else instant(totals.oldest),
            max_capture_size=limits.max_capture_size,
            max_stored_size=limits.max_stored_size,
            max_captures=limits.max_captures,
            default_ttl=limits.default_ttl,
            max_ttl=limits.max_ttl,
        )

    async def extend(self, entry: Entry, expires: float) -> Entry:
        """Move the expiry, first in the object store, then in the catalog. Raises what `get` raises.

        The catalog takes the change only where no other came first, and a later change always has a higher
        revision: so the object store knows as well as the catalog which one holds.
        """
        while True:
            marker = self._new_marker(entry, expires)
            await self.archive.store.put(marker, [MARKER])
            stored = await self._catalog.amend(entry, expires=expires, marker=marker)
            if stored is not None and stored.marker == marker:
                if entry.marker is not None:
                    await self.archive.store.delete([entry.marker])
                return stored
            await self.archive.store.delete([marker])
            entry = stored or await self.get(entry.id)

    def _new_marker(self, entry: Entry, expires: float) -> str:
        """A key that sorts this change behind all earlier ones, also behind those that the catalog forgot."""
        now = int(self.archive.clock() * MICROSECONDS)
        revision = max(object_keys.revision_of(entry.marker) + 1, now)
        return object_keys.marker_key(entry.tenant, entry.id, entry.upload, expires, revision)

    async def _find_call(self, call_id: str, session: str | None) -> Entry:
        entries, _ = await self._catalog.find(
            self.tenant.name, Query(call_id=call_id, session=session), now=self.archive.clock(), limit=1
        )
        if entries:
            return entries[0]
        await self._require_complete()
        raise NotFound(
            f"no capture of the tool call {call_id[:100]!r} is kept: it never was, expired or was deleted"
        )

    async def _recover(self, capture: str) -> Entry | Tombstone | None:
        """The capture out of the object store, where the catalog was lost and not rebuilt yet."""
        if await self._catalog.is_complete():
            return None
        entry = await recover(self.archive, self.tenant.name, capture)
        if entry is None or entry.is_expired(self.archive.clock()):
            return entry
        return await self._catalog.commit(entry, Quota())

    async def _require_complete(self) -> None:
        if not await self._catalog.is_complete():
            raise CatalogIncomplete(
                "the catalog is being rebuilt from the object store; ask by capture id, or again in a moment"
            )


def call_id_of(ref: str) -> str | None:
    """The tool-call id of a `call:` reference, or None. Raises `InvalidId` where the id is empty."""
    try:
        return wire.call_id_of(ref)
    except ValueError as error:
        raise InvalidId(str(error)) from error


def check_id(capture: str) -> None:
    """Raise `InvalidId` where this cannot be a capture id."""
    if not wire.CAPTURE_ID.fullmatch(capture):
        raise InvalidId(
            f"{capture[:100]!r} is no capture id: cap_ and 20 characters of a-z and 2-7, "
            f"as the notice gives it, or {wire.CALL_PREFIX} and a tool-call id"
        )
