"""The body of an append: received, decoded and compared with its checksum, in memory that is counted."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from aiohttp import hdrs
from overspill import wire
from overspill.wire import Header
from overspill.wire.checksums import is_crc32c

from overspill_service.errors import BodyTooLarge, CaptureDamaged, DigestMismatch, InvalidHeader
from overspill_service.store_format.decoding import WINDOW_SIZE, BodyDecoder
from overspill_service.store_format.frames import content_size, decompress
from overspill_service.web.body_patience import body_chunks
from overspill_service.web.header_fields import list_field, single_field
from overspill_service.web.negotiation import body_coding

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from overspill_service.web.context import RequestContext

INLINE_BYTES: Final = 64 * 1024
"""The most content, in bytes, that is decoded on the event loop."""
COPIES: Final = 2
"""The number of copies of an append's content in memory."""
DECODED_BYTES: Final = COPIES * wire.MAX_APPEND + WINDOW_SIZE
"""Memory for a body that may decode to as much as an append may have."""
_SEVERAL: Final = "send the content in several appends"


@asynccontextmanager
async def append_body(context: RequestContext[Any]) -> AsyncIterator[bytes]:
    """Receive the content of an append, and hold memory for it until the block ends.

    Raises `BodyTooLarge`, `DamagedEncoding`, `DigestMismatch`, `Overloaded`, and what reading a body raises.
    """
    coding = body_coding(single_field(context.request.headers, hdrs.CONTENT_ENCODING))
    async with AsyncExitStack() as stack:
        await _hold(
            context, stack, COPIES * min(context.request.content_length or wire.MAX_APPEND, wire.MAX_APPEND)
        )
        data = await _received(context)
        if coding is not None:
            data = await _decoded(context, stack, coding, data)
        _check(context, data)
        try:
            yield data
        finally:
            context.service.body_buffers.keep(data)


async def _hold(context: RequestContext[Any], stack: AsyncExitStack, size: int) -> None:
    """Hold other memory.

    The present memory is given back first, so that no two appends wait for each other.
    """
    await stack.aclose()
    queue = context.service.archive.memory.queue_for(size)
    await stack.enter_async_context(queue.shares(context.principal.tenant.name, size))


async def _received(context: RequestContext[Any]) -> bytes:
    """Return the body as it was sent. Raises `BodyTooLarge`, and what reading a body raises."""
    if (context.request.content_length or 0) > wire.MAX_APPEND:
        raise BodyTooLarge(wire.MAX_APPEND, _SEVERAL)
    content = context.request.content
    has_come = content.is_eof() and content.exception() is None
    data = content.read_nowait() if has_come else await _collected(context)
    if len(data) > wire.MAX_APPEND:
        raise BodyTooLarge(wire.MAX_APPEND, _SEVERAL)
    return data


async def _collected(context: RequestContext[Any]) -> bytes:
    """Receive a body. Stop soon after it has more bytes than an append may have."""
    size = min(context.request.content_length or 0, wire.MAX_APPEND)
    collected = context.service.body_buffers.take(size)  # unlike pieces that are joined, it is in memory once
    async for chunk in body_chunks(context.request, context.service.settings):
        collected.write(chunk)
        if collected.tell() > wire.MAX_APPEND:
            break
    collected.truncate()
    return collected.getvalue()


async def _decoded(context: RequestContext[Any], stack: AsyncExitStack, coding: str, data: bytes) -> bytes:
    """Return the content of an encoded body, with the memory that it takes.

    A single zstd frame that states its size, as our clients send it, surely takes little time and memory if
    it is small. In any other, a few bytes may hold thousands of frames, or 8 MiB of content.
    """
    workers = context.service.archive.upload_workers(context.principal.tenant.name)
    size = content_size(data) if coding == "zstd" else 0
    if INLINE_BYTES < size <= wire.MAX_APPEND:
        await _hold(context, stack, COPIES * size)
        content = await workers.run(_of_one_frame, data, size)
    else:
        content = _of_one_frame(data, INLINE_BYTES) if size > 0 else b""
    if content:
        return content
    await _hold(context, stack, DECODED_BYTES)
    return await workers.run(_of_any, coding, data)


def _of_one_frame(data: bytes, limit: int) -> bytes:
    """Return the content of a single zstd frame of at most `limit` bytes. Empty for any other body."""
    try:
        return decompress(data, limit)
    except CaptureDamaged:
        return b""


def _of_any(coding: str, data: bytes) -> bytes:
    decoder, content = BodyDecoder.of(coding), bytearray()
    for piece in decoder.feed(data):
        content += piece
        if len(content) > wire.MAX_APPEND:
            raise BodyTooLarge(wire.MAX_APPEND, _SEVERAL)
    decoder.finish()
    return bytes(content)


def _check(context: RequestContext[Any], data: bytes) -> None:
    """Compare the content with its checksum, if one was sent. Raises `DigestMismatch`, `InvalidHeader`."""
    field = list_field(context.request.headers, Header.CONTENT_DIGEST)
    if field is None:
        return
    try:
        is_right = is_crc32c(field, data)
    except ValueError as error:
        raise InvalidHeader(str(error)) from error
    if not is_right:
        raise DigestMismatch(
            f"the append does not have the CRC32C of its {Header.CONTENT_DIGEST}; nothing was added: "
            "send it again"
        )
