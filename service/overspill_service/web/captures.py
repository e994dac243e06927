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

    from overspill_service.catalog.records import Entry
    from overspill_service.web.context import RequestContext


LISTING_SIZE: Final = 4 * 2**20
"""Bytes of memory for a page of a listing: a MiB of entries as stored, as structs and as JSON."""


async def get(context: RequestContext[wire.RefQuery]) -> web.Response:
    entry = await context.entry()
    return context.json(entry.to_wire(), headers=entry_headers(entry))


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
    async with context.body(wire.Amendment) as amendment:
        entry = await context.captures.set_ttl(context.ref, amendment.ttl, context.query.session)
    return context.json(entry.to_wire(), headers=entry_headers(entry))


async def delete(context: RequestContext[wire.RefQuery]) -> web.Response:
    return context.json(await context.captures.delete(context.ref, context.query.session))


async def delete_session(context: RequestContext[wire.NoQuery]) -> web.Response:
    return context.json(await context.captures.delete_session(context.request.match_info["session"]))


async def usage(context: RequestContext[wire.NoQuery]) -> web.Response:
    return context.json(await context.captures.usage())


def entry_headers(entry: Entry) -> dict[str, str]:
    """Return the headers that tell a HEAD request about a capture."""
    to_wire = entry.to_wire()
    return {
        Header.SHA256: to_wire.sha256,
        Header.SIZE: str(to_wire.size),
        Header.STATE: to_wire.state.value,
        Header.EXPIRES: to_wire.expires.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


_ENTRY: Final = {200: wire.Entry}

ROUTES: Final = (
    Route(
        method="GET",
        path=Path.CAPTURE,
        scope=Scope.READ,
        handler=get,
        summary="Return what is known of a capture.",
        query=wire.RefQuery,
        answers=_ENTRY,
    ),
    Route(
        method="PATCH",
        path=Path.CAPTURE,
        scope=Scope.WRITE,
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
        handler=delete,
        summary="Remove a capture.",
        query=wire.RefQuery,
        answers={200: wire.Removed},
    ),
    Route(
        method="GET",
        path=Path.CAPTURES,
        scope=Scope.READ,
        handler=find,
        summary="List captures, newest first.",
        query=wire.ListQuery,
        answers={200: wire.Listing},
    ),
    Route(
        method="DELETE",
        path=Path.SESSION,
        scope=Scope.DELETE,
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
