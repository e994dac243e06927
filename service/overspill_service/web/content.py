"""The bytes of a capture: all or a range of them, decoded or as stored zstd frames (RFC 9110)."""

from __future__ import annotations

from contextlib import aclosing, nullcontext
from typing import TYPE_CHECKING, Final

from aiohttp import HttpVersion11, hdrs, web
from overspill import wire
from overspill.wire import ByteRange, ContentRange, Header, Path

from overspill_service.archive import moved
from overspill_service.errors import RangeNotSatisfiable
from overspill_service.web.captures import entry_headers
from overspill_service.web.conditions import allows_range, is_not_modified
from overspill_service.web.header_fields import list_field
from overspill_service.web.negotiation import ZSTD, choose_coding
from overspill_service.web.registry import capture_read
from overspill_service.web.streaming import send

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from contextlib import AbstractAsyncContextManager

    from overspill_service.archive.frame_reader import Reader
    from overspill_service.catalog.records import Entry
    from overspill_service.web.context import RequestContext

UNTRUSTED: Final = {
    "Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
    hdrs.CONTENT_DISPOSITION: "attachment",
    hdrs.CACHE_CONTROL: "no-store, no-transform",
    hdrs.ACCEPT_RANGES: "bytes",
    hdrs.VARY: hdrs.ACCEPT_ENCODING,
}
"""Captured bytes are untrusted: a browser must run no scripts in them, and no cache may change them."""

SHORT_ANSWER_BYTES: Final = 256 * 1024
"""An answer of up to this many bytes mostly fits into its connection's buffers, so it needs no place."""


async def content(context: RequestContext[wire.RefQuery]) -> web.StreamResponse:
    """Answer with the bytes: 206 for a range, 304 if the client has them already."""
    entry = await context.entry()
    request, fields = context.request, context.request.headers
    requested = _range(request, entry)
    coding = choose_coding(list_field(fields, hdrs.ACCEPT_ENCODING), is_range=requested is not None)
    as_stored = coding == ZSTD
    headers = {**UNTRUSTED, **entry_headers(entry.to_wire()), hdrs.ETAG: etag(entry, as_stored=as_stored)}
    if is_not_modified(fields, request.method, headers[hdrs.ETAG]):
        return web.Response(status=304, headers=headers)
    part = None if requested is None or as_stored else _resolve(requested, entry)
    headers[hdrs.CONTENT_TYPE] = entry.content_type
    reader = await context.service.archive.reader(entry)
    if as_stored:
        return await _send_stored(context, reader, headers)
    return await _send_decoded(context, reader, headers, part)


def etag(entry: Entry, *, as_stored: bool) -> str:
    """Return the strong validator of a representation: the content's digest, and a suffix for zstd.

    A live capture has no digest yet, so its upload and its present size are used.
    """
    name = f"{entry.upload}-{entry.size}" if entry.is_live else entry.sha256.hex()
    return f'"{name}{"-zstd" if as_stored else ""}"'


def _range(request: web.Request, entry: Entry) -> ByteRange | None:
    """Return the range that a GET asks for, None for everything. A range is of the decoded content."""
    field = list_field(request.headers, hdrs.RANGE)
    if field is None or request.method != "GET":
        return None
    return ByteRange.parse(field) if allows_range(request.headers, etag(entry, as_stored=False)) else None


def _resolve(byte_range: ByteRange, entry: Entry) -> ContentRange:
    """Return the range within the content. Raises `RangeNotSatisfiable` if it has no byte."""
    resolved = byte_range.resolve(entry.size)
    if resolved is None:
        raise RangeNotSatisfiable(entry.size)
    return resolved


async def _send_stored(
    context: RequestContext[wire.RefQuery], reader: Reader, headers: dict[str, str]
) -> web.StreamResponse:
    """Send the stored frames as they are: the client decodes them.

    If the capture may be moved meanwhile, their number of bytes is not known: the answer comes in chunks.
    """
    headers[hdrs.CONTENT_ENCODING] = "zstd"
    length = reader.frames.stored_start(len(reader.frames))
    is_exact = context.request.version < HttpVersion11 or not moved.may_move(reader.entry)
    pieces = across_frames(moved.stored_frames(context.service.archive, reader))
    return await _send(context, reader.entry, 200, headers, length, pieces, is_exact=is_exact)


async def across_frames(
    blocks: AsyncGenerator[bytes, None],
) -> AsyncGenerator[bytes | memoryview, None]:
    """Yield blocks of frames in pieces of which none but the last ends where a frame does.

    A client may get each piece by itself, and httpx fails at what follows if a frame ended with the last one.
    """
    last_byte = b""
    async with aclosing(blocks):
        async for block in blocks:
            yield last_byte + block[:1]
            yield memoryview(block)[1:-1]
            last_byte = block[-1:]
    yield last_byte


async def _send_decoded(
    context: RequestContext[wire.RefQuery],
    reader: Reader,
    headers: dict[str, str],
    requested: ContentRange | None,
) -> web.StreamResponse:
    if not reader.entry.is_live:
        headers[Header.REPR_DIGEST] = wire.encode_digest(reader.entry.sha256)
    span = requested or ContentRange(0, reader.entry.size, reader.entry.size)
    if requested is not None:
        headers[hdrs.CONTENT_RANGE] = str(requested)
    pieces = moved.content(context.service.archive, reader, span.start, span.stop)
    return await _send(context, reader.entry, 200 if requested is None else 206, headers, len(span), pieces)


async def _send(
    context: RequestContext[wire.RefQuery],
    entry: Entry,
    status: int,
    headers: dict[str, str],
    length: int,
    pieces: AsyncGenerator[bytes | memoryview, None],
    *,
    is_exact: bool = True,
) -> web.StreamResponse:
    """Send `pieces`. They have `length` bytes in all, or about that many if `is_exact` is false."""
    response, announced = web.StreamResponse(status=status, headers=headers), length if is_exact else None
    async with aclosing(pieces):
        if context.request.method == "HEAD":
            response.content_length = announced
            await response.prepare(context.request)
            return response
        try:
            async with _long_answer_slot(context, length):
                await send(
                    context.request, response, pieces, announced, context.service.settings.write_timeout
                )
        finally:
            if response.prepared:
                context.count_read(entry, "content", length)
    return response


def _long_answer_slot(
    context: RequestContext[wire.RefQuery], length: int
) -> AbstractAsyncContextManager[None]:
    """Return a place for a long answer, whose client may be slow. Raises `TooManyRequests`."""
    if length <= SHORT_ANSWER_BYTES:
        return nullcontext()
    return context.service.places.answers.hold(context.principal.tenant.name)


ROUTES: Final = (
    capture_read(
        path=Path.CONTENT,
        handler=content,
        summary="Return the bytes of a capture, or one range. A client that accepts zstd gets stored frames.",
        query=wire.RefQuery,
        headers={
            hdrs.RANGE: "One range of bytes.",
            hdrs.IF_RANGE: "Answer with the range only if this is the validator.",
            hdrs.IF_MATCH: "Answer 412 if the content has none of these validators.",
            hdrs.IF_NONE_MATCH: "Answer 304 if the content has one of these validators.",
            hdrs.ACCEPT_ENCODING: "zstd gives the stored frames undecoded.",
        },
        answers={200: "*/*", 206: "*/*", 304: None},  # the type of the content
        is_negotiated=True,
    ),
)
