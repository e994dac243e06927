"""Storing, looking up, listing, extending and removing captures."""

from __future__ import annotations

import asyncio
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from aiohttp import ClientError, hdrs, web
from aiohttp.http_exceptions import HttpProcessingError
from overspill import wire
from overspill.wire import Header, Path, Scope

from overspill_service import storing
from overspill_service.catalog import Query
from overspill_service.errors import (
    Absent,
    BadRequest,
    CaptureTooLarge,
    IncompleteBody,
    TooManyRequests,
)
from overspill_service.storing import Body
from overspill_service.web.conditions import are_given, is_not_modified
from overspill_service.web.facts import digest_of, facts_of
from overspill_service.web.fields import listed
from overspill_service.web.negotiation import body_coding
from overspill_service.web.registry import Route

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import datetime

    from overspill_service.catalog import Entry
    from overspill_service.web.call import Call

QUEUE_SECONDS: Final = 5.0
"""How long an upload waits for its turn before it is sent away."""


async def put(call: Call[wire.NoQuery]) -> web.Response:
    """Store the body under the id; 201 where it is new, 200 where it was there already."""
    request, service = call.request, call.service
    limit = call.principal.tenant.limits.max_capture_size
    if hdrs.CONTENT_RANGE in request.headers:
        raise BadRequest("a capture is stored whole: leave Content-Range out (RFC 9110, section 14.4)")
    encoding = body_coding(listed(request.headers, hdrs.CONTENT_ENCODING))
    if encoding is None and (request.content_length or 0) > limit:
        raise CaptureTooLarge(limit)
    facts = facts_of(request.headers)
    await _require_preconditions(call)
    body = Body(_chunks(request, service.settings.idle_timeout), encoding, digest_of(request.headers))
    await _take_turn(call)
    try:
        with service.metrics.uploads.track_inprogress():
            entry, is_new = await storing.put(call.captures, call.ref, facts, body)
    finally:
        service.uploads.release()
    service.metrics.capture(entry, is_new=is_new)
    return call.json(entry.public(), status=201 if is_new else 200, headers=entry_headers(entry))


async def get(call: Call[wire.RefQuery]) -> web.Response:
    entry = await call.entry()
    return call.json(entry.public(), headers=entry_headers(entry))


async def find(call: Call[wire.ListQuery]) -> web.Response:
    query = call.query
    selected = Query(
        session=query.session,
        call_id=query.call_id,
        tool=query.tool,
        state=query.state,
        since=_instant(query.since),
        until=_instant(query.until),
    )
    return call.json(await call.captures.find(selected, limit=query.limit, cursor=query.cursor))


async def patch(call: Call[wire.RefQuery]) -> web.Response:
    amendment = await call.body(wire.Amendment)
    entry = await call.captures.set_ttl(call.ref, amendment.ttl, call.query.session)
    return call.json(entry.public(), headers=entry_headers(entry))


async def delete(call: Call[wire.RefQuery]) -> web.Response:
    return call.json(await call.captures.delete(call.ref, call.query.session))


async def delete_session(call: Call[wire.NoQuery]) -> web.Response:
    return call.json(await call.captures.delete_session(call.request.match_info["session"]))


async def usage(call: Call[wire.NoQuery]) -> web.Response:
    return call.json(await call.captures.usage())


def _instant(when: datetime | None) -> float | None:
    """Seconds since the epoch; a time without a zone is UTC, whatever the zone of this machine."""
    if when is None:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def entry_headers(entry: Entry) -> dict[str, str]:
    """What a HEAD request learns of a capture."""
    public = entry.public()
    return {
        Header.SHA256: public.sha256,
        Header.SIZE: str(public.size),
        Header.STATE: public.state.value,
        Header.EXPIRES: public.expires.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


async def _require_preconditions(call: Call[Any]) -> None:
    """Evaluate the preconditions of an upload by whether the capture exists. Raises `PreconditionFailed`."""
    if not are_given(call.request.headers):
        return
    try:
        await call.entry()
    except Absent:
        exists = False
    else:
        exists = True
    is_not_modified(call.request.headers, call.request.method, None, exists=exists)


async def _take_turn(call: Call[Any]) -> None:
    """Wait for one of the places for uploads; the caller gives it back."""
    try:
        async with asyncio.timeout(QUEUE_SECONDS):
            await call.service.uploads.acquire()
    except TimeoutError as error:
        raise TooManyRequests("uploads", call.service.settings.max_uploads) from error


async def _chunks(request: web.Request, idle: float) -> AsyncIterator[bytes]:
    """The body as it arrives. Raises `IncompleteBody` where it stops, breaks off or is malformed."""
    try:
        while True:
            async with asyncio.timeout(idle):
                chunk = await request.content.readany()
            if not chunk:
                return
            yield chunk
    except TimeoutError as error:
        raise IncompleteBody(
            f"no byte of the body came for {idle:g} s; nothing was stored: send it again"
        ) from error
    except (ClientError, ConnectionError, web.RequestPayloadError, HttpProcessingError) as error:
        raise IncompleteBody(f"the body broke off ({error}); nothing was stored: send it again") from error


_ENTRY: Final = {200: wire.Entry}

ROUTES: Final = (
    Route(
        method="PUT",
        path=Path.CAPTURE,
        scope=Scope.WRITE,
        handler=put,
        summary=(
            "Store the body, the whole output, under its capture id. Safe to repeat. "
            f"Headers `{Header.LABEL}*` label it."
        ),
        headers={
            Header.SESSION: "The conversation or run.",
            Header.CALL_ID: "The tool-call id.",
            Header.TOOL: "The tool's name.",
            Header.STATUS: "How the tool ended, as its caller words it.",
            Header.TTL: "Retention in seconds.",
            Header.REPR_DIGEST: "sha-256=:BASE64: of the content (RFC 9530).",
            "Content-Encoding": "zstd or gzip.",
            "Content-Type": "The content's media type.",
        },
        body="application/octet-stream",
        answers={200: wire.Entry, 201: wire.Entry},
        is_negotiated=True,
    ),
    Route(
        method="GET",
        path=Path.CAPTURE,
        scope=Scope.READ,
        handler=get,
        summary="What is known of a capture.",
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
