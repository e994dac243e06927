"""Routes of the producer of a live capture: begin, append, end.

The fields `Upload-Offset` and `Upload-Complete` are those of draft-ietf-httpbis-resumable-upload-09.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from overspill import wire
from overspill.wire import Header, Path, Scope

from overspill_service.errors import (
    Absent,
    BadRequest,
    CatalogUnavailable,
    Denied,
    InvalidHeader,
    ServiceError,
)
from overspill_service.live.producing import Producer
from overspill_service.live.progress import progress, progress_for
from overspill_service.web.append_bodies import append_body
from overspill_service.web.body_patience import body_chunks
from overspill_service.web.capture_headers import metadata_of
from overspill_service.web.captures import entry_headers
from overspill_service.web.header_fields import single_field, whole_number
from overspill_service.web.registry import Route, capture_read, capture_store
from overspill_service.web.uploads import METADATA_HEADERS, require_preconditions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiohttp import web

    from overspill_service.live.append_queues import QueuedAppend
    from overspill_service.web.context import RequestContext

MAX_PRODUCER: Final = 100


async def begin(context: RequestContext[wire.NoQuery]) -> web.Response:
    """Begin a live capture. Answer 201 if it is new, 200 if this producer has begun it before."""
    async with _telling_progress(context):
        await require_preconditions(context)
        await _require_no_body(context)
        status, is_new = await _producer(context).begin(context.ref, metadata_of(context.request.headers))
    return _answer(context, status, 201 if is_new else 200)


async def _require_no_body(context: RequestContext[Any]) -> None:
    """Raise `BadRequest` for a body. A client that waits to send one is not told to continue."""
    if not context.request.content_length:
        async for _ in body_chunks(context.request, context.service.settings):
            break
        else:
            return
    raise BadRequest("this path takes no body: append the content once the capture has begun")


async def status(context: RequestContext[wire.RefQuery]) -> web.Response:
    return _answer(context, await progress(context.service.archive, await context.captured()))


async def append(context: RequestContext[wire.NoQuery]) -> web.Response:
    """Add the body at the end of a live capture. An empty body is a sign of life."""
    tenant = context.principal.tenant.name
    async with _telling_progress(context):
        offset, producer = _offset(context), _producer(context)
        with context.service.flusher.append_queues.join((tenant, context.ref), offset) as queued:
            appended = await _appended(context, producer, offset, queued)
    context.service.metrics.live.append(tenant, appended.accepted - offset)
    return _answer(context, appended)


async def _appended(
    context: RequestContext[wire.NoQuery], producer: Producer, offset: int, queued: QueuedAppend
) -> wire.LiveStatus:
    """Receive the body, and add it."""
    await queued.until_body()
    async with append_body(context) as data:
        queued.note_body()
        is_last = _is_last(context)
        return await producer.append(context.ref, offset, data, queued, is_last=is_last)


async def complete(context: RequestContext[wire.NoQuery]) -> web.Response:
    """End a live capture. The answer comes once all of it is stored."""
    async with _telling_progress(context):
        producer = _producer(context)
        async with context.body(wire.Completion) as completion:
            entry, is_ended_here = await producer.complete(context.ref, completion)
    shown = entry.to_wire() if is_ended_here else context.shown(entry)
    headers = entry_headers(shown) | _offset_headers(entry.size, entry.size, entry.state)
    return context.json(shown, headers=headers)


@asynccontextmanager
async def _telling_progress(context: RequestContext[Any]) -> AsyncIterator[None]:
    """Add the capture's progress to a refusal in the block, if the caller may know it."""
    try:
        yield
    except (CatalogUnavailable, Absent, Denied):
        raise
    except ServiceError as error:
        word, may_read = context.request.headers.get(Header.PRODUCER), Scope.READ in context.principal.scopes
        with suppress(ServiceError):
            status = await progress_for(context.captures, context.ref, word, may_read=may_read)
            if status is not None:
                error.offset = status.accepted if error.offset is None else error.offset
                error.durable = min(status.durable, error.offset)
        raise


def _producer(context: RequestContext[Any]) -> Producer:
    word = single_field(context.request.headers, Header.PRODUCER) or ""
    if not 1 <= len(word) <= MAX_PRODUCER or not word.isascii():
        raise InvalidHeader(
            f"{Header.PRODUCER} must be a random word of 1 to {MAX_PRODUCER} ASCII characters, the same "
            "for all requests of one producer"
        )
    return Producer(context.captures, context.service.flusher, word)


def _offset(context: RequestContext[Any]) -> int:
    offset = whole_number(single_field(context.request.headers, Header.UPLOAD_OFFSET) or "")
    if offset is None:
        raise InvalidHeader(f"{Header.UPLOAD_OFFSET} must say at which byte the append begins, as a number")
    return offset


def _is_last(context: RequestContext[Any]) -> bool:
    """Return whether nothing follows the append. Raises `InvalidHeader`."""
    field = single_field(context.request.headers, Header.UPLOAD_COMPLETE)
    if field not in (None, "?0", "?1"):
        raise InvalidHeader(f"{Header.UPLOAD_COMPLETE} must be ?1 if nothing follows the append, or ?0")
    return field == "?1"


def _answer(context: RequestContext[Any], answer: wire.LiveStatus, status: int = 200) -> web.Response:
    headers = _offset_headers(answer.accepted, answer.durable, answer.state)
    return context.json(answer, status=status, headers=headers)


def _offset_headers(accepted: int, durable: int, state: wire.State) -> dict[str, str]:
    return {
        Header.UPLOAD_OFFSET: str(accepted),
        Header.DURABLE_OFFSET: str(durable),
        Header.UPLOAD_COMPLETE: "?0" if state is wire.State.LIVE else "?1",
    }


_PRODUCER: Final = {Header.PRODUCER: "A random word of the producer, the same for all its requests."}
_OF_BODIES: Final = frozenset({Header.REPR_DIGEST, "Content-Encoding"})

ROUTES: Final = (
    capture_store(
        method="PUT",
        path=Path.LIVE,
        handler=begin,
        summary="Begin a live capture. Safe to repeat for its producer.",
        headers={name: METADATA_HEADERS[name] for name in METADATA_HEADERS if name not in _OF_BODIES}
        | _PRODUCER,
        answers={200: wire.LiveStatus, 201: wire.LiveStatus},
        is_negotiated=True,
    ),
    capture_read(
        path=Path.LIVE,
        handler=status,
        summary="Return how many bytes of a live capture are accepted, and how many are durable.",
        query=wire.RefQuery,
        answers={200: wire.LiveStatus},
    ),
    Route(
        method="POST",
        path=Path.APPEND,
        scope=Scope.WRITE,
        is_of_session=True,
        handler=append,
        summary=(
            f"Add the body, at most {wire.MAX_APPEND:,} bytes of content, to the end of a live capture. "
            "An empty body says that the producer is alive."
        ),
        headers={
            Header.UPLOAD_OFFSET: "Where the append begins: the number of bytes accepted before it.",
            Header.CONTENT_DIGEST: "crc32c=:BASE64: of the content that is added.",
            "Content-Encoding": "zstd or gzip.",
            Header.UPLOAD_COMPLETE: "?1 if nothing follows: the last word waits for nothing. Else ?0.",
            **_PRODUCER,
        },
        body="application/octet-stream",
        answers={200: wire.LiveStatus},
    ),
    capture_store(
        method="POST",
        path=Path.COMPLETE,
        handler=complete,
        summary="End a live capture, as complete or as given up. The answer comes once all of it is stored.",
        headers=_PRODUCER,
        body=wire.Completion,
        answers={200: wire.Entry},
    ),
)
