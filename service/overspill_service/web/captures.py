"""Routes that look up, list, extend, hold and remove captures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from overspill import wire
from overspill.wire import Header, Path, Scope

from overspill_service.archive import erasure, lifetimes
from overspill_service.audit.events import Action
from overspill_service.catalog.records import Query
from overspill_service.errors import InvalidParameter
from overspill_service.telemetry import logs
from overspill_service.web.instants import seconds_of
from overspill_service.web.registry import Route, capture_read

if TYPE_CHECKING:
    from aiohttp import web

    from overspill_service.web.context import RequestContext


LISTING_SIZE: Final = 4 * 2**20
"""Bytes of memory for a page of a listing: a MiB of entries as stored, as structs and as JSON."""


async def get(context: RequestContext[wire.RefQuery]) -> web.Response:
    entry = await context.entry()
    return context.json(entry.to_wire(), headers=entry_headers(entry.to_wire()))


async def readers(context: RequestContext[wire.RefQuery]) -> web.Response:
    entry = await context.captured()
    found = await context.service.archive.catalog.readers(entry.tenant, entry.id)
    return context.json(wire.Readers(readers=[each.to_wire() for each in found]))


async def find(context: RequestContext[wire.ListQuery]) -> web.Response:
    query = context.query
    if query.sort is wire.Sort.SIZE:
        return await _largest(context)
    selected = Query(
        session=query.session,
        call_id=query.call_id,
        tool=query.tool,
        state=query.state,
        since=None if query.since is None else seconds_of(query.since),
        until=None if query.until is None else seconds_of(query.until),
    )
    async with context.read_memory(LISTING_SIZE):
        listing = await context.captures.find(
            selected, limit=query.limit, cursor=query.cursor, shown=context.service.live_views.shown
        )
        return context.json(listing)


async def _largest(context: RequestContext[wire.ListQuery]) -> web.Response:
    query = context.query
    if query != wire.ListQuery(sort=query.sort, limit=query.limit):
        raise InvalidParameter("sort=size lists all captures on one page: only limit= goes with it")
    async with context.read_memory(LISTING_SIZE):
        return context.json(await context.captures.largest(query.limit))


async def patch(context: RequestContext[wire.RefQuery]) -> web.Response:
    """Change the TTL. A shorter one needs the scope `delete`, as a removal does."""
    may_shorten = Scope.DELETE in context.principal.scopes
    async with context.body(wire.Amendment) as amendment:
        entry = await lifetimes.set_ttl(
            context.captures, await context.captured(), amendment.ttl, may_shorten=may_shorten
        )
    shown = context.shown(await context.as_of_now(entry))
    return context.json(shown, headers=entry_headers(shown))


async def hold(context: RequestContext[wire.RefQuery]) -> web.Response:
    held = await lifetimes.hold(context.captures, await context.captured())
    return context.json((await context.as_of_now(held)).to_wire())


async def release(context: RequestContext[wire.RefQuery]) -> web.Response:
    released = await lifetimes.release(context.captures, await context.captured())
    return context.json((await context.as_of_now(released)).to_wire())


async def hold_session(context: RequestContext[wire.NoQuery]) -> web.Response:
    held = await erasure.hold_session(context.captures, _session_of(context))
    logs.bind_fields(captures=held.captures)
    return context.json(held)


async def release_session(context: RequestContext[wire.NoQuery]) -> web.Response:
    held = await erasure.release_session(context.captures, _session_of(context))
    logs.bind_fields(captures=held.captures)
    return context.json(held)


async def delete(context: RequestContext[wire.RefQuery]) -> web.Response:
    query = context.query
    removed = await erasure.delete(
        context.captures, context.ref, query.session, any_session=query.any_session
    )
    return await _receipt(context, removed, is_whole=False)


async def delete_session(context: RequestContext[wire.NoQuery]) -> web.Response:
    removed = await erasure.delete_session(context.captures, _session_of(context))
    return await _receipt(context, removed, is_whole=True)


async def erase_tenant(context: RequestContext[wire.TenantQuery]) -> web.Response:
    tenant = context.principal.tenant.name
    if context.query.tenant != tenant:
        raise InvalidParameter(f"all captures of the key's tenant would go: confirm it with tenant={tenant}")
    return await _receipt(context, await erasure.delete_all(context.captures, Query()), is_whole=True)


def _session_of(context: RequestContext[Any]) -> str:
    session: str = context.request.match_info["session"]
    logs.bind_fields(session=session)
    return session


async def _receipt(context: RequestContext[Any], removed: wire.Removed, *, is_whole: bool) -> web.Response:
    """Answer with a receipt: the removed captures, and what remains. The audit log has the figures too."""
    logs.bind_fields(captures=removed.captures, stored_size=removed.stored_size)
    if removed.held:
        logs.bind_fields(held=removed.held)
    service = context.service
    orphan_age = service.settings.orphan_age
    return context.json(
        await erasure.receipt(service.archive, removed, orphan_age=orphan_age, is_whole=is_whole)
    )


async def usage(context: RequestContext[wire.NoQuery]) -> web.Response:
    return context.json(await context.captures.usage())


def entry_headers(entry: wire.Entry) -> dict[str, str]:
    """Return the headers that describe a capture in the answer to HEAD."""
    return {
        Header.SHA256: entry.sha256,
        Header.SIZE: str(entry.size),
        Header.STATE: entry.state.value,
        Header.EXPIRES: entry.expires.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


_ENTRY: Final = {200: wire.Entry}

ROUTES: Final = (
    capture_read(
        path=Path.CAPTURE,
        handler=get,
        summary="Return the entry of a capture: its size, times, tool and labels.",
        query=wire.RefQuery,
        answers=_ENTRY,
    ),
    Route(
        method="GET",
        path=Path.READERS,
        scope=Scope.READ,
        action=Action.CAPTURE_READ,
        handler=readers,
        summary="Return who has read a capture, and when. Refuses keys that are bound to sessions.",
        query=wire.RefQuery,
        answers={200: wire.Readers},
    ),
    Route(
        method="PATCH",
        path=Path.CAPTURE,
        scope=Scope.WRITE,
        is_of_session=True,
        action=Action.CAPTURE_CHANGE,
        handler=patch,
        summary="Give a capture a new TTL, counted from now.",
        query=wire.RefQuery,
        body=wire.Amendment,
        answers=_ENTRY,
    ),
    Route(
        method="DELETE",
        path=Path.CAPTURE,
        scope=Scope.DELETE,
        is_of_session=True,
        action=Action.CAPTURE_DELETE,
        handler=delete,
        summary="Remove a capture. The answer is a receipt.",
        query=wire.RefQuery,
        answers={200: wire.Removed},
    ),
    Route(
        method="GET",
        path=Path.CAPTURES,
        scope=Scope.READ,
        is_of_session=True,
        action=Action.CAPTURE_LIST,
        is_paced=True,
        handler=find,
        summary="List captures, newest first; `sort=size` lists the largest of all.",
        query=wire.ListQuery,
        answers={200: wire.Listing},
    ),
    Route(
        method="PUT",
        path=Path.HOLD,
        scope=Scope.ADMIN,
        action=Action.CAPTURE_HOLD,
        handler=hold,
        summary="Put a capture on hold. It does not expire, and nobody can delete it.",
        query=wire.RefQuery,
        answers=_ENTRY,
    ),
    Route(
        method="DELETE",
        path=Path.HOLD,
        scope=Scope.ADMIN,
        action=Action.CAPTURE_RELEASE,
        handler=release,
        summary="End a capture's hold. It expires after the tenant's default TTL, counted from now.",
        query=wire.RefQuery,
        answers=_ENTRY,
    ),
    Route(
        method="PUT",
        path=Path.SESSION_HOLD,
        scope=Scope.ADMIN,
        action=Action.SESSION_HOLD,
        handler=hold_session,
        summary="Put every capture of a session on hold. Captures stored later are not on hold.",
        answers={200: wire.HoldReceipt},
    ),
    Route(
        method="DELETE",
        path=Path.SESSION_HOLD,
        scope=Scope.ADMIN,
        action=Action.SESSION_RELEASE,
        handler=release_session,
        summary="End the hold of every capture of a session.",
        answers={200: wire.HoldReceipt},
    ),
    Route(
        method="DELETE",
        path=Path.CAPTURES,
        scope=Scope.ADMIN,
        action=Action.TENANT_ERASE,
        handler=erase_tenant,
        summary="Remove every capture of the key's tenant, except those on hold. The tenant's keys stay.",
        query=wire.TenantQuery,
        answers={200: wire.Removed},
    ),
    Route(
        method="DELETE",
        path=Path.SESSION,
        scope=Scope.DELETE,
        is_of_session=True,
        action=Action.SESSION_DELETE,
        handler=delete_session,
        summary="Remove every capture of a session, except those on hold. The answer is a receipt.",
        answers={200: wire.Removed},
    ),
    Route(
        method="GET",
        path=Path.USAGE,
        scope=Scope.READ,
        handler=usage,
        summary="Return the tenant's stored totals and limits.",
        answers={200: wire.Usage},
    ),
)
