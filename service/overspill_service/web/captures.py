"""Routes that look up, list, extend and remove captures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from overspill import wire
from overspill.wire import Header, Path, Scope

from overspill_service.catalog.records import Query
from overspill_service.web.instants import seconds_of
from overspill_service.web.registry import Route

if TYPE_CHECKING:
    from aiohttp import web

    from overspill_service.web.context import RequestContext


LISTING_SIZE: Final = 4 * 2**20
"""Bytes of memory for a page of a listing: a MiB of entries as stored, as structs and as JSON."""


async def get(context: RequestContext[wire.RefQuery]) -> web.Response:
    entry = await context.entry()
    return context.json(entry.to_wire(), headers=entry_headers(entry.to_wire()))


async def find(context: RequestContext[wire.ListQuery]) -> web.Response:
    query = context.query
    selected = Query(
        session=query.session,
        call_id=query.call_id,
        tool=query.tool,
        state=query.state,
        since=None if query.since is None else seconds_of(query.since),
        until=None if query.until is None else seconds_of(query.until),
    )
    async with context.service.archive.memory.reads.shares(LISTING_SIZE):
        return context.json(await context.captures.find(selected, limit=query.limit, cursor=query.cursor))


async def patch(context: RequestContext[wire.RefQuery]) -> web.Response:
    """Change the TTL. A shorter one needs the scope `delete`, as a removal does."""
    may_shorten = Scope.DELETE in context.principal.scopes
    async with context.body(wire.Amendment) as amendment:
        entry = await context.captures.set_ttl(await context.entry(), amendment.ttl, may_shorten=may_shorten)
    return context.json(context.shown(entry), headers=entry_headers(context.shown(entry)))


async def delete(context: RequestContext[wire.RefQuery]) -> web.Response:
    query = context.query
    removed = await context.captures.delete(context.ref, query.session, any_session=query.any_session)
    return context.json(removed)


async def delete_session(context: RequestContext[wire.NoQuery]) -> web.Response:
    return context.json(await context.captures.delete_session(context.request.match_info["session"]))


async def usage(context: RequestContext[wire.NoQuery]) -> web.Response:
    return context.json(await context.captures.usage())


def entry_headers(entry: wire.Entry) -> dict[str, str]:
    """Return the headers that tell a HEAD request about a capture."""
    return {
        Header.SHA256: entry.sha256,
        Header.SIZE: str(entry.size),
        Header.STATE: entry.state.value,
        Header.EXPIRES: entry.expires.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


_ENTRY: Final = {200: wire.Entry}

ROUTES: Final = (
    Route(
        method="GET",
        path=Path.CAPTURE,
        scope=Scope.READ,
        is_of_session=True,
        handler=get,
        summary="Return what is known of a capture.",
        query=wire.RefQuery,
        answers=_ENTRY,
    ),
    Route(
        method="PATCH",
        path=Path.CAPTURE,
        scope=Scope.WRITE,
        is_of_session=True,
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
        handler=delete,
        summary="Remove a capture.",
        query=wire.RefQuery,
        answers={200: wire.Removed},
    ),
    Route(
        method="GET",
        path=Path.CAPTURES,
        scope=Scope.READ,
        is_of_session=True,
        handler=find,
        summary="List captures, newest first.",
        query=wire.ListQuery,
        answers={200: wire.Listing},
    ),
    Route(
        method="DELETE",
        path=Path.SESSION,
        scope=Scope.DELETE,
        is_of_session=True,
        handler=delete_session,
        summary="Remove every capture of a session.",
        answers={200: wire.Removed},
    ),
    Route(
        method="GET",
        path=Path.USAGE,
        scope=Scope.READ,
        handler=usage,
        summary="The tenant's stored totals and limits.",
        answers={200: wire.Usage},
    ),
)
