"""Routes that store captures: PUT under an id that the sender computed, POST without an id."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import msgspec
from aiohttp import hdrs
from overspill import wire
from overspill.wire import Header, Path

from overspill_service.archive import storing
from overspill_service.archive.storing import UploadBody
from overspill_service.archive.upload_memory import upload_memory
from overspill_service.errors import (
    Absent,
    BadRequest,
    CaptureTooLarge,
)
from overspill_service.telemetry import logs
from overspill_service.web.body_patience import body_chunks
from overspill_service.web.capture_headers import digest_of, metadata_of
from overspill_service.web.captures import entry_headers
from overspill_service.web.conditions import are_given, is_not_modified
from overspill_service.web.header_fields import list_field
from overspill_service.web.negotiation import body_coding
from overspill_service.web.registry import capture_store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiohttp import web

    from overspill_service.archive.upload_memory import UploadMemory
    from overspill_service.catalog.records import Entry
    from overspill_service.web.context import RequestContext


async def put(context: RequestContext[wire.NoQuery]) -> web.Response:
    """Store the body under the id. Answer 201 if the capture is new, 200 if it was already stored."""
    encoding, digest = _body_headers(context)
    metadata = metadata_of(context.request.headers)
    await require_preconditions(context)
    async with _upload_body(context, encoding, digest) as body:
        entry, is_new = await storing.put(
            context.captures, context.ref, metadata, body, context.service.metrics.capture
        )
    return _stored_response(context, entry, digest, is_new=is_new)


async def post(context: RequestContext[wire.NoQuery]) -> web.Response:
    """Store the body under the id of its session, call id and content. `Location` names it."""
    encoding, digest = _body_headers(context)
    metadata = metadata_of(context.request.headers)
    async with _upload_body(context, encoding, digest) as body:
        entry, is_new = await storing.post(context.captures, metadata, body, context.service.metrics.capture)
    location = Path.CAPTURE.format(ref=entry.id)
    return _stored_response(context, entry, digest, is_new=is_new, location=location)


def _body_headers(context: RequestContext[Any]) -> tuple[str | None, bytes | None]:
    """Return the body's encoding and the announced digest. Raises errors about these header fields."""
    request, limit = context.request, context.principal.tenant.limits.max_capture_size
    if hdrs.CONTENT_RANGE in request.headers:
        raise BadRequest("a capture is stored whole: leave Content-Range out (RFC 9110, section 14.4)")
    encoding = body_coding(list_field(request.headers, hdrs.CONTENT_ENCODING))
    if encoding is None and (request.content_length or 0) > limit:
        raise CaptureTooLarge(limit)
    return encoding, digest_of(request.headers)


def _announced_size(context: RequestContext[Any], encoding: str | None) -> int:
    return (context.request.content_length or 0) if encoding is None else 0


def _stored_response(
    context: RequestContext[Any],
    entry: Entry,
    digest: bytes | None,
    *,
    is_new: bool,
    location: str | None = None,
) -> web.Response:
    logs.bind_fields(capture=entry.id, size=entry.size, stored_size=entry.stored_size)
    shown = entry.to_wire() if is_new else context.shown(entry)
    if digest is not None and digest.hex() != shown.sha256:
        shown = msgspec.structs.replace(shown, sent_sha256=digest.hex())
    headers = entry_headers(shown) | ({hdrs.LOCATION: location} if location else {})
    return context.json(shown, status=201 if is_new else 200, headers=headers)


async def require_preconditions(context: RequestContext[Any]) -> None:
    """Evaluate the preconditions of an upload: does the capture exist? Raises `PreconditionFailed`."""
    if not are_given(context.request.headers):
        return
    try:
        await context.entry()
    except Absent:
        exists = False
    else:
        exists = True
    is_not_modified(context.request.headers, context.request.method, None, exists=exists)


@asynccontextmanager
async def _upload_body(
    context: RequestContext[Any], encoding: str | None, digest: bytes | None
) -> AsyncIterator[UploadBody]:
    """Hold a place and the memory for a body. Raises `TooManyRequests`, `Overloaded`."""
    async with _upload_place(context), _body_memory(context, encoding) as memory:
        yield UploadBody(_paced_chunks(context), memory, encoding, digest, _announced_size(context, encoding))


async def _paced_chunks(context: RequestContext[Any]) -> AsyncIterator[bytes]:
    """Yield the body as it arrives, at the pace that leaves time to other tenants."""
    pace, tenant = context.service.body_pace, context.principal.tenant.name
    async for chunk in body_chunks(context.request, context.service.settings):
        yield chunk
        if pause := pace.pause(tenant, len(chunk)):
            await asyncio.sleep(pause)


@asynccontextmanager
async def _body_memory(context: RequestContext[Any], encoding: str | None) -> AsyncIterator[UploadMemory]:
    """Hold the memory that the body needs. Raises `Overloaded` if none comes free in time."""
    budget, length = context.service.archive.memory, context.request.content_length
    tenant = context.principal.tenant.name
    async with AsyncExitStack() as stack:
        with context.paused_reading():
            memory = await stack.enter_async_context(upload_memory(budget, tenant, encoding, length))
        yield memory


@asynccontextmanager
async def _upload_place(context: RequestContext[Any]) -> AsyncIterator[None]:
    """Hold one of the places for uploads. Raises `TooManyRequests` if none is free in time."""
    service = context.service
    async with AsyncExitStack() as stack:
        place = service.places.uploads.hold(context.principal.tenant.name)
        with context.paused_reading():
            await stack.enter_async_context(place)
        with service.metrics.uploads.track_inprogress():
            yield


METADATA_HEADERS: Final = {
    Header.SESSION: "The conversation or run.",
    Header.CALL_ID: "The tool-call id.",
    Header.TOOL: "The tool's name.",
    Header.STATUS: "How the tool ended, as its caller words it.",
    Header.TTL: "Retention in seconds.",
    Header.LABELS: "Labels, as name=value, name=value. Values are percent-encoded, commas in them too.",
    Header.REPR_DIGEST: "sha-256=:BASE64: of the content (RFC 9530).",
    "Content-Encoding": "zstd or gzip.",
    "Content-Type": "The content's media type.",
}


ROUTES: Final = (
    capture_store(
        method="PUT",
        path=Path.CAPTURE,
        handler=put,
        summary=(
            "Store the body, which is the whole output, under its capture id. Safe to repeat. "
            f"Label it with `{Header.LABELS}`, or with a header `{Header.LABEL}*` for each label."
        ),
        headers=METADATA_HEADERS,
        body="application/octet-stream",
        answers={200: wire.Entry, 201: wire.Entry},
        is_negotiated=True,
    ),
    capture_store(
        method="POST",
        path=Path.CAPTURES,
        handler=post,
        summary=(
            "Store the body under a capture id that is computed from session, tool-call id and content. "
            "`Location` and the answer name it. Safe to repeat. Takes the headers of PUT."
        ),
        headers=METADATA_HEADERS,
        body="application/octet-stream",
        answers={200: wire.Entry, 201: wire.Entry},
    ),
)
