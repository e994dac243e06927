"""Routes that follow a capture as it grows, and wait for something in it."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing, nullcontext
from typing import TYPE_CHECKING, Any, Final

from aiohttp import hdrs, web
from overspill import wire
from overspill.wire import Path, Scope

from overspill_service.archive.growing import as_stored
from overspill_service.archive.inspection import compiled
from overspill_service.catalog.records import instant
from overspill_service.errors import HeadersTooLarge, InvalidHeader, InvalidParameter, ServiceError
from overspill_service.live.positions import offset_of_line
from overspill_service.live.timeline import unpack
from overspill_service.live.waiting import Wait
from overspill_service.web.content import UNTRUSTED
from overspill_service.web.exchange import EXCHANGE
from overspill_service.web.header_fields import MAX_LASTING_HEAD_BYTES, single_field, whole_number
from overspill_service.web.registry import capture_read

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from overspill.reading.patterns import Pattern

    from overspill_service.catalog.records import Entry
    from overspill_service.web.context import RequestContext

LAST_EVENT_ID: Final = "Last-Event-ID"
SMALL_PROGRAM: Final = 256
"""Instructions of a pattern of which thousands fit into memory."""
CHECK_SECONDS: Final = 4.0
"""Seconds for which an open answer goes on without checking whether its key is still valid."""
UNTIMED_BYTES: Final = 32 * 1024
"""Bytes for which an empty transport has room: its own limit is at least 64 KiB."""
HEADERS: Final = {
    "Content-Security-Policy": UNTRUSTED["Content-Security-Policy"],
    hdrs.CACHE_CONTROL: "no-store, no-transform",
    "X-Accel-Buffering": "no",  # nginx would hold events back
}


async def follow(context: RequestContext[wire.FollowQuery]) -> web.StreamResponse:
    """Stream a capture as server-sent events, until it has ended."""
    service, tenant = context.service, context.principal.tenant.name
    _require_short_head(context)
    view = await context.entry()
    offset, entry = await _start(context, view), as_stored(view)
    del view
    context.release()  # who follows holds nothing of it
    response = web.StreamResponse(headers=HEADERS)
    response.content_type = wire.FOLLOW_TYPE
    if context.request.method == "HEAD":
        await response.prepare(context.request)
        return response
    async with service.places.followers.hold(tenant):
        await response.prepare(context.request)
        if context.request.transport is not None:  # an answer before it on the connection has left no buffer
            context.request.transport.set_write_buffer_limits()
        with service.metrics.live.follower():
            await _send(context, response, service.streams.follow(entry, offset), entry)
    return response


async def _send(
    context: RequestContext[Any],
    response: web.StreamResponse,
    follower: AsyncGenerator[bytes, None],
    entry: Entry,
) -> None:
    """Send events as they come, and count them."""
    sent, tenant, transport = 0, context.principal.tenant.name, context.request.transport
    try:
        async with aclosing(follower) as events:
            async for event in _while_allowed(context, events):
                await _write(context, response, event)
                sent += len(event)
                context.note_reader(entry)
    finally:
        if transport is not None:
            context.service.unsent.forget(tenant, transport)
        context.count_read(entry, "follow", sent)


async def _write(context: RequestContext[Any], response: web.StreamResponse, event: bytes) -> None:
    """Write an event. Raises `TimeoutError` if the client takes nothing for too long."""
    transport = context.request.transport
    if transport is not None and not transport.get_write_buffer_size() and len(event) <= UNTIMED_BYTES:
        await response.write(event)  # the transport takes it at once, so it needs no timer
    else:
        async with asyncio.timeout(context.service.settings.write_timeout):
            if transport is not None:
                context.service.unsent.note(context.principal.tenant.name, transport, len(event))
            await response.write(event)
    if transport is not None:
        context.service.unsent.note(context.principal.tenant.name, transport)


async def _while_allowed(context: RequestContext[Any], events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield events until the request's key is revoked or has expired.

    A client that connects again learns why.
    """
    checked = time.monotonic()
    async for event in events:
        if time.monotonic() - checked > CHECK_SECONDS:
            try:
                await context.require_still(Scope.READ)
            except ServiceError:
                return
            checked = time.monotonic()
        yield event


async def _start(context: RequestContext[wire.FollowQuery], entry: Entry) -> int:
    """Return the offset to begin at. Raises `InvalidParameter`, `InvalidHeader`."""
    query, last = context.query, single_field(context.request.headers, LAST_EVENT_ID)
    if last:
        offset = whole_number(last)
        if offset is None:
            raise InvalidHeader(f"{LAST_EVENT_ID} must be the id of an event: the offset behind it")
        # A catalog that lost accepted bytes gets them again. If it has not, the end says where it is.
        return offset if entry.is_live else min(offset, entry.size)
    if query.offset is None and query.lines is not None:
        reader = await context.service.archive.reader(entry)
        return await offset_of_line(reader, entry.lines - query.lines + 1)
    offset = query.offset or 0
    if offset > entry.size:
        raise InvalidParameter(f"offset {offset} is beyond the {entry.size} bytes that there are")
    return offset


async def wait(context: RequestContext[wire.WaitQuery]) -> web.Response:
    """Answer once a line matches, `lines` lines are new, the capture has ended, or the time is over."""
    query, service = context.query, context.service
    _require_short_head(context)
    pattern = None if query.pattern is None else await _compiled(context, query.pattern)
    waiting = Wait(
        service.archive,
        query,
        service.caps.within(query.max_bytes),
        source=context,
        scan=context.scan,
        pattern=pattern,
        scan_seconds=service.settings.scan_seconds,
    )
    tenant = context.principal.tenant.name
    async with _pattern_place(context, pattern), service.places.followers.hold(tenant):
        with service.metrics.live.wait() as end:
            answer, entry = await waiting.run(service.streams)
            end.reason = answer.reason
    await context.require_still(Scope.READ)
    context.count_read(entry, "wait", len(answer.content.encode()))
    return context.json(answer)


def _pattern_place(
    context: RequestContext[Any], pattern: Pattern | None
) -> AbstractAsyncContextManager[None]:
    """Return a place for a wait whose pattern takes much memory as long as it lasts."""
    if pattern is None or pattern.program_size <= SMALL_PROGRAM:
        return nullcontext()
    return context.service.places.patterns.hold(context.principal.tenant.name)


def _require_short_head(context: RequestContext[Any]) -> None:
    """Raise `HeadersTooLarge` for a head that takes much memory as long as the request lasts."""
    size = context.request[EXCHANGE].head_size
    if size > MAX_LASTING_HEAD_BYTES:
        raise HeadersTooLarge(size, MAX_LASTING_HEAD_BYTES)


async def timeline(context: RequestContext[wire.RefQuery]) -> web.Response:
    entry = await context.entry()
    marks = await context.service.archive.cpu.run(_marks, entry.marks)
    answer = wire.Timeline(id=entry.id, state=entry.state, size=entry.size, marks=marks)
    return context.json(answer)


def _marks(packed: bytes) -> list[wire.Mark]:
    return [wire.Mark(time=instant(each.moment / 1000), offset=each.offset) for each in unpack(packed)]


async def _compiled(context: RequestContext[wire.WaitQuery], pattern: str) -> Pattern:
    query = context.query
    async with context.scan() as scan:
        grep_query = wire.GrepQuery(pattern=pattern, fixed=query.fixed, ignore_case=query.ignore_case)
        return await compiled(grep_query, scan)


ROUTES: Final = (
    capture_read(
        path=Path.FOLLOW,
        handler=follow,
        query=wire.FollowQuery,
        summary="Stream a growing capture as server-sent events. The last event, `end`, says how it ended.",
        headers={LAST_EVENT_ID: "The id of the last event that came: the stream goes on behind it."},
        answers={200: wire.FOLLOW_TYPE},
        is_negotiated=True,
    ),
    capture_read(
        path=Path.WAIT,
        handler=wait,
        query=wire.WaitQuery,
        summary=("Wait until a line matches, enough new lines exist, the capture ends, or the time is over."),
        answers={200: wire.Waited},
        is_negotiated=True,
    ),
    capture_read(
        path=Path.TIMELINE,
        handler=timeline,
        query=wire.RefQuery,
        summary="Return when the bytes of a live capture came. Works after the capture's end too.",
        answers={200: wire.Timeline},
        is_negotiated=True,
    ),
)
