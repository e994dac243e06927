"""Captures as one tenant sees them: look up, list, count."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec.structs import replace
from overspill import wire

from overspill_service.archive.recovery.entries import record_of, recover
from overspill_service.archive.recovery.expiries import with_confirmed_expiry
from overspill_service.archive.recovery.rebuild import compared, is_young, restore_entry
from overspill_service.catalog.quotas import Quota
from overspill_service.catalog.records import Entry, Query, Tombstone, instant
from overspill_service.errors import (
    CatalogIncomplete,
    CatalogUnavailable,
    Deleted,
    Expired,
    Forbidden,
    InvalidId,
    NotFound,
    QuotaExceeded,
)
from overspill_service.resources.tasks import in_batches
from overspill_service.store_format import object_keys
from overspill_service.telemetry.logs import fields

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from overspill_service.archive.archive import Archive
    from overspill_service.tenants.directory import SessionBound, Tenant

T = TypeVar("T")

INCOMPLETE: Final = (
    "the catalog is being rebuilt from the object store; ask by capture id, or again in a moment"
)

log = logging.getLogger(__name__)


class Captures:
    """The captures of one tenant. No method can reach another tenant's.

    With `bound`, captures of other sessions answer as if they had never existed.
    """

    def __init__(self, archive: Archive, tenant: Tenant, bound: SessionBound | None = None) -> None:
        self.archive, self.tenant, self.bound = archive, tenant, bound
        self._catalog = archive.catalog

    async def get(self, ref: str, session: str | None = None, *, any_session: bool = False) -> Entry:
        """Return the entry of a capture id, or the newest of `call:{tool-call id}`.

        A tool call is looked up in `session`: without one in the session that the key is bound to, else among
        the captures without a session; with `any_session` in all. Raises `NotFound`, `Expired`, `Deleted`,
        `InvalidId`. Raises `TooManyRequests` if the tenant asked for too many ids that do not exist. Raises
        `CatalogIncomplete` for a tool call while the catalog is incomplete.
        """
        if (call_id := call_id_of(ref)) is not None:
            return await self._find_call(call_id, self._session_of_call(session, any_session=any_session))
        match found := await self._current(ref):
            case Entry() if found.is_expired(self.archive.clock()):
                raise Expired(ref, instant(found.expires))
            case Entry() if session in (None, found.session):
                return found
            case Tombstone(reason="expired"):
                raise Expired(ref, instant(found.at))
            case Tombstone():
                raise Deleted(f"{ref} was deleted at {instant(found.at):%Y-%m-%dT%H:%M:%SZ}")
        raise no_capture(ref)

    async def _current(self, capture: str) -> Entry | Tombstone | None:
        found = await self.own(capture)
        return await with_confirmed_expiry(self.archive, found) if isinstance(found, Entry) else found

    @property
    def quota(self) -> Quota:
        limits = self.tenant.limits
        return Quota(
            captures=limits.max_captures,
            size=limits.max_content_size,
            stored_size=limits.max_stored_size,
            metadata=limits.max_metadata_size,
            is_exact=limits.are_exact,
        )

    async def look_up(self, capture: str, *, is_limited: bool = True) -> Entry | Tombstone | None:
        """Return the entry or tombstone of a capture id, expired or not.

        If the catalog has no entry, or may be too old for a live one, this asks the object store. Raises
        `InvalidId`. With `is_limited`, raises `TooManyRequests` after too many ids that do not exist.
        """
        check_id(capture)
        found = await record_of(self.archive, self.tenant.name, capture)
        if isinstance(found, Entry):
            found = await compared(self.archive, found)
        if found is not None:
            return found
        return await self.archive.lookups.find(
            self.tenant.name, capture, lambda: self._recover(capture), is_limited=is_limited
        )

    async def own(self, capture: str) -> Entry | Tombstone | None:
        """Return the entry or tombstone of a capture id if the key may know of it, expired or not.

        A capture that the key may not know of takes as long as one that does not exist. Raises what `look_up`
        raises.
        """
        found = await self.look_up(capture)
        if found is None or self.allows(found):
            return found
        await self._look_for_nothing(capture)
        return None

    async def _look_for_nothing(self, capture: str) -> None:
        """Take as long, and as many look-ups, as for a capture that does not exist."""
        nothing = object_keys.provisional_id()
        await self.archive.lookups.find(self.tenant.name, capture, lambda: self._recover(nothing))

    async def is_lost(self, capture: str, upload: str) -> bool:
        """Return whether a missing object was lost. It was if its upload is the current one, so not removed.

        Raises what `get` raises, and `CatalogIncomplete` if the catalog may be older than a removal.
        """
        entry, is_complete = await self.with_completeness(lambda: self.get(capture))
        if entry.upload == upload and not is_complete:
            raise CatalogIncomplete(INCOMPLETE)
        return entry.upload == upload

    async def find(
        self, query: Query, *, limit: int, cursor: str | None, shown: Callable[[Entry], Awaitable[wire.Entry]]
    ) -> wire.Listing:
        """Return a page of captures that have not expired, newest first. `shown` shows a live one.

        Raises `Forbidden` if the key is bound to sessions, and none is named.
        """
        session = self._own_session() if query.session is None else query.session
        if not self.allows_session(session):
            return wire.Listing(captures=[], cursor=None, incomplete=not await self._catalog.is_complete())
        query = replace(query, session=session)
        (entries, following), is_complete = await self.with_completeness(
            lambda: self._catalog.find(
                self.tenant.name, query, now=self.archive.clock(), limit=limit, cursor=cursor
            )
        )
        live = [entry for entry in entries if entry.is_live]
        views = dict(zip([entry.id for entry in live], await in_batches(shown, live), strict=True))
        return wire.Listing(
            captures=[views.get(entry.id) or entry.to_wire() for entry in entries],
            cursor=following,
            incomplete=not is_complete,
        )

    async def largest(self, limit: int) -> wire.Listing:
        """Return the largest captures that have not expired.

        Raises `Forbidden` if the key is bound to sessions.
        """
        if self.bound is not None:
            raise Forbidden(f"the key is bound to {self.bound}, and this is about all sessions")
        entries, is_complete = await self.with_completeness(
            lambda: self._catalog.largest(self.tenant.name, now=self.archive.clock(), limit=limit)
        )
        return wire.Listing(captures=[entry.to_wire() for entry in entries], incomplete=not is_complete)

    def require_own(self, session: str) -> None:
        """Raise `Forbidden` if the key is bound to other sessions than this one."""
        if not self.allows_session(session):
            raise Forbidden(f"the key is bound to {self.bound}: send that as {wire.Header.SESSION}")

    def _own_session(self) -> str | None:
        """Return the session that the key is bound to, None for a key of all. Raises `Forbidden`."""
        if self.bound is not None and self.bound.is_prefix:
            raise Forbidden(f"the key is bound to {self.bound}: name one with session=")
        return None if self.bound is None else self.bound.session

    def _session_of_call(self, session: str | None, *, any_session: bool) -> str | None:
        """Return the session in which a tool call is looked up, None for all."""
        if session is not None:
            return session
        own = self._own_session()
        return own if own is not None or any_session else ""

    def allows_session(self, session: str | None) -> bool:
        return self.bound is None or (session is not None and self.bound.allows(session))

    def allows(self, found: Entry | Tombstone) -> bool:
        """Return whether the key may know of it. A tombstone does not have its session."""
        return self.bound is None or (isinstance(found, Entry) and self.bound.allows(found.session))

    async def usage(self) -> wire.Usage:
        totals, is_complete = await self.with_completeness(lambda: self._catalog.totals(self.tenant.name))
        limits = self.tenant.limits
        return wire.Usage(
            tenant=self.tenant.name,
            captures=totals.captures,
            size=totals.size,
            stored_size=totals.stored_size,
            oldest=None if totals.oldest is None else instant(totals.oldest),
            max_capture_size=limits.max_capture_size,
            max_stored_size=limits.max_stored_size,
            max_content_size=limits.max_content_size,
            metadata_size=totals.metadata,
            max_metadata_size=limits.max_metadata_size,
            max_captures=limits.max_captures,
            default_ttl=limits.default_ttl,
            max_ttl=limits.max_ttl,
            incomplete=not is_complete,
        )

    async def _find_call(self, call_id: str, session: str | None) -> Entry:
        """Return the newest capture of a tool call.

        Raises `CatalogIncomplete`: only a complete catalog knows.
        """
        query = Query(call_id=call_id, session=session)
        if not self.allows_session(session):
            raise _no_call(call_id, session)
        (entries, _), is_complete = await self.with_completeness(
            lambda: self._catalog.find(self.tenant.name, query, now=self.archive.clock(), limit=1)
        )
        if not is_complete:
            raise CatalogIncomplete(INCOMPLETE)
        if not entries:
            raise _no_call(call_id, session)
        return entries[0]

    async def _recover(self, capture: str) -> Entry | Tombstone | None:
        """Return the capture as its objects describe it, and put its entry back into the catalog."""
        found = await self._catalog.get(self.tenant.name, capture)
        if found is not None:  # another request has just recovered it
            return found
        entry = await recover(self.archive, self.tenant.name, capture)
        if entry is None or entry.is_expired(self.archive.clock()):
            return entry
        counts_against_quota = is_young(self.archive, entry) and await self._catalog.is_complete()
        try:
            restored = await restore_entry(
                self.archive, entry, self.quota if counts_against_quota else Quota()
            )
        except (QuotaExceeded, CatalogIncomplete, CatalogUnavailable) as error:
            details = fields(tenant=self.tenant.name, capture=capture, cause=str(error))
            log.info("a capture is read without an entry", extra=details)
            return entry
        log.info("gave a capture its lost entry back", extra=fields(tenant=self.tenant.name, capture=capture))
        return restored

    async def with_completeness(self, lookup: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """Return what `lookup` finds, and whether the catalog was complete before and after it.

        One check is not enough: a rebuild may end, or entries may be lost, during the lookup.
        """
        was_complete = await self._catalog.is_complete()
        found = await lookup()
        return found, was_complete and await self._catalog.is_complete()


def no_capture(capture: str) -> NotFound:
    return NotFound(f"there is no capture {capture}; GET {wire.Path.CAPTURES} lists those that there are")


def _no_call(call_id: str, session: str | None) -> NotFound:
    where = {None: "", "": " without a session"}.get(session, " in this session")
    advice = "; name its session with session=, or say any_session=true" if session == "" else ""
    return NotFound(
        f"no capture of the tool call {call_id[:100]!r} is stored{where}: "
        f"it never was, it has expired or was deleted{advice}"
    )


def call_id_of(ref: str) -> str | None:
    """Return the tool-call id of a `call:` reference, or None. Raises `InvalidId` if the id is empty."""
    try:
        return wire.call_id_of(ref)
    except ValueError as error:
        raise InvalidId(str(error)) from error


def check_id(capture: str) -> None:
    """Raise `InvalidId` if the text cannot be a capture id."""
    if not wire.CAPTURE_ID.fullmatch(capture):
        raise InvalidId(
            f"{capture[:100]!r} is not a capture id: cap_ and 20 characters of a-z and 2-7, "
            f"as the notice gives it, or {wire.CALL_PREFIX} and a tool-call id"
        )
