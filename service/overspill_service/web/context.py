"""The context of a handler: the request, and everything that its route declares, parsed and checked."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec
from aiohttp import hdrs, web
from overspill import wire
from overspill.wire import Scope

from overspill_service.archive.captures import Captures
from overspill_service.archive.growing import as_stored
from overspill_service.errors import (
    BodyTooLarge,
    CatalogUnavailable,
    CredentialsUnavailable,
    InvalidBody,
    StoreUnavailable,
    Unauthorized,
    UnsupportedMediaType,
)
from overspill_service.telemetry import logs
from overspill_service.web.body_patience import body_chunks
from overspill_service.web.exchange import EXCHANGE
from overspill_service.web.header_fields import list_field
from overspill_service.web.negotiation import prefers_text
from overspill_service.web.validation_text import body_text

if TYPE_CHECKING:
    from asyncio import Transport
    from collections.abc import AsyncIterator, Iterator
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    from overspill.wire import Text

    from overspill_service.catalog.records import Entry
    from overspill_service.live.buffer_memory import BufferMemory
    from overspill_service.resources.memory_budget import Holding
    from overspill_service.resources.scans import Scan
    from overspill_service.tenants.directory import Principal
    from overspill_service.web.service import Service

Q_co = TypeVar("Q_co", covariant=True)
B = TypeVar("B")
A = TypeVar("A", wire.Text, wire.Summary)
POSITION_PARAMETERS = frozenset({"lines", "start", "end", "offset", "cursor"})
"""Parameters that say where a read begins and ends. Every answer's `next` replaces them."""
JSON_TYPES = frozenset({"application/json", "application/merge-patch+json"})
FETCH_SITE = "Sec-Fetch-Site"
"""A header of browsers alone: scripts cannot set it, and agents do not."""
MAX_BODY = 1024 * 1024
"""Bytes of a JSON body, at most."""
BODY_COPIES = 2
"""The copies of a JSON body in memory: as bytes and as a struct."""


@dataclass(frozen=True, slots=True)
class RequestContext(Generic[Q_co]):
    """One authorised request. `query` is an instance of the route's query struct."""

    request: web.Request
    service: Service
    principal: Principal
    query: Q_co
    buffers: BufferMemory
    """For accepted bytes of the capture, if it is live."""

    @property
    def captures(self) -> Captures:
        """The captures of the caller's tenant, and no others."""
        return Captures(self.service.archive, self.principal.tenant, self.principal.session)

    @property
    def ref(self) -> str:
        return self.request.match_info["ref"]

    async def entry(self) -> Entry:
        """Return the capture that the path names. A live one has all bytes that are accepted now."""
        return await self.as_of_now(await self.captured())

    async def as_of_now(self, entry: Entry) -> Entry:
        """Return an entry; a live one with all accepted bytes. Raises `Overloaded`."""
        return await self.service.live_views.of(entry, self.buffers)

    def release(self) -> bool:
        """Give back the memory of the last `entry`.

        Return whether it had any; then it must not be used again.
        """
        return self.buffers.close()

    async def captured(self) -> Entry:
        """Return the capture that the path names, as the catalog has it."""
        entry = await self.captures.get(
            self.ref,
            getattr(self.query, "session", None),
            any_session=getattr(self.query, "any_session", False),
        )
        logs.bind_fields(capture=entry.id)
        return entry

    def shown(self, entry: Entry) -> wire.Entry:
        """Return the entry as the key may see it.

        Without the scope `read` it has only what the sender knows.
        """
        whole = entry.to_wire()
        if Scope.READ in self.principal.scopes:
            return whole
        return wire.Entry(
            id=whole.id,
            state=whole.state,
            size=0,
            stored_size=0,
            lines=0,
            sha256="",
            content_type="",
            kind="",
            tool="",
            session="",
            call_id="",
            status="",
            labels={},
            created=whole.created,
            expires=whole.expires,
        )

    async def require_still(self, scope: Scope) -> None:
        """Check again whether the request's key may do this, before an answer shows newer content.

        Raises `Unauthorized`, `Forbidden`, `RateExceeded`, and `CatalogIncomplete` for a key that an
        incomplete catalog does not know. Nothing new comes while the back ends do not answer, so nothing is
        raised then.
        """
        with suppress(CatalogUnavailable, StoreUnavailable, CredentialsUnavailable):
            address = self.request[EXCHANGE].address
            principal = await self.service.authenticator.principal(self.request, address)
            principal.require(scope)
            if (principal.tenant.name, principal.session) != (
                self.principal.tenant.name,
                self.principal.session,
            ):
                raise Unauthorized("the key stands for something else by now")

    def scan(self) -> AbstractAsyncContextManager[Scan]:
        """Return the block of a scan of the caller's tenant. Raises `CpuTimeUsed`, `TooManyRequests`."""
        tenant = self.principal.tenant
        return self.service.scans.scan(tenant.name, tenant.limits.max_scan_cpu)

    def read_memory(self, size: int) -> Holding:
        """Return the memory of a read of the caller's tenant. Raises `Overloaded`."""
        return self.service.archive.memory.reads.shares(self.principal.tenant.name, size)

    def paused_reading(self) -> AbstractContextManager[None]:
        """Stop reading the body within the block, so that a request that waits holds little memory."""
        return paused_reading(self.request.transport)

    @asynccontextmanager
    async def body(self, kind: type[B]) -> AsyncIterator[B]:
        """Read the JSON body as a struct, and hold its memory until the block ends.

        Raises `UnsupportedMediaType`, `InvalidBody`, `BodyTooLarge`, `IncompleteBody`, `Overloaded`.
        """
        if self.request.content_type not in JSON_TYPES:  # a page of any site may post other types
            raise UnsupportedMediaType(
                f"this path takes JSON: send Content-Type: application/json, not {self.request.content_type}"
            )
        length = self.request.content_length or MAX_BODY
        if length > MAX_BODY:
            raise BodyTooLarge(MAX_BODY)
        size = BODY_COPIES * length
        shares = self.service.archive.memory.queue_for(size).shares(self.principal.tenant.name, size)
        async with AsyncExitStack() as stack:
            with self.paused_reading():
                await stack.enter_async_context(shares)
            yield await self._body(kind)

    async def _body(self, kind: type[B]) -> B:
        data = bytearray()
        async for piece in body_chunks(self.request, self.service.settings):
            data += piece
            if len(data) > MAX_BODY:
                raise BodyTooLarge(MAX_BODY)
        try:
            return msgspec.json.decode(bytes(data), type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InvalidBody(
                f"the body is not the JSON that this path takes: {body_text(error, kind)}"
            ) from error

    def json(
        self, answer: object, *, status: int = 200, headers: dict[str, str] | None = None
    ) -> web.Response:
        return web.Response(
            body=msgspec.json.encode(answer), status=status, content_type="application/json", headers=headers
        )

    def count_read(self, entry: Entry, mode: str, size: int) -> None:
        """Count a read whose answer has `size` bytes. What a person reads in a browser is not a read-back."""
        self.note_reader(entry)
        if FETCH_SITE not in self.request.headers:
            now = self.service.archive.clock()
            self.service.metrics.read(as_stored(entry), mode, size, now, self.principal.name)

    def note_reader(self, entry: Entry) -> None:
        """Note who reads the capture."""
        on_page, now = FETCH_SITE in self.request.headers, self.service.archive.clock()
        self.service.reader_notes.note(entry, self.principal, now, on_page=on_page)

    def text(self, entry: Entry, answer: Text) -> web.Response:
        """Answer a bounded read: JSON, or only the text for a client that asks for text/plain."""
        self.count_read(entry, answer.mode, len(answer.content.encode()))
        answer = with_state(entry, answer)
        if prefers_text(list_field(self.request.headers, hdrs.ACCEPT) or ""):
            note = answer.note if isinstance(answer.note, str) else ""
            text = f"{answer.content}\n[{note}]\n" if note else answer.content
            return web.Response(text=text, content_type="text/plain", charset="utf-8")
        return self.json(self._with_whole_next(answer))

    def _with_whole_next(self, answer: Text) -> Text:
        """Return the answer with a complete next query: that of this request, except for its position."""
        if answer.next is None:
            return answer
        kept = {name: value for name, value in self.request.query.items() if name not in POSITION_PARAMETERS}
        return msgspec.structs.replace(answer, next=kept | answer.next)


def with_state(entry: Entry, answer: A) -> A:
    """Return the answer with the state of an incomplete capture, and a note on its missing bytes."""
    if entry.state is wire.State.COMPLETE:
        return answer
    answer = msgspec.structs.replace(answer, state=entry.state)
    last = answer.end_line if isinstance(answer, wire.Text) else entry.lines
    if entry.state is wire.State.LIVE or last < entry.lines:
        return answer
    end = f"The output ends here, at byte {entry.size}: its producer did not say that this is all of it."
    note = end if entry.gap is None else f"{end} {entry.gap}"
    return msgspec.structs.replace(answer, note=note)


@contextmanager
def paused_reading(transport: Transport | None) -> Iterator[None]:
    """Stop reading from a client within the block. `transport` is None once it is gone."""
    if transport is not None:
        transport.pause_reading()
    try:
        yield
    finally:
        if transport is not None:
            transport.resume_reading()
