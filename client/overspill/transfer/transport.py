"""HTTP to one service: deadlines, retries, and problems turned into exceptions.

It knows nothing of captures. Redirects are never followed: the key is for one host only.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import weakref
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.request import getproxies, proxy_bypass

import aiohttp
import msgspec
from yarl import URL

from overspill import wire
from overspill.errors import OverspillError, ProtocolError, Unreachable, error_for
from overspill.execution import threads
from overspill.transfer import retry
from overspill.transfer.connections import Connections

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping

    from overspill.transfer.address import Address
    from overspill.transfer.request import Body, Request

T = TypeVar("T")

MAX_ERROR: Final = 64 * 1024
"""Bytes of an error's body that are read."""
MAX_ANSWER: Final = 64 * 1024 * 1024
"""Bytes of an answer that is read as a whole. A page of a listing is the longest."""
_PIECE: Final = 64 * 1024
"""Bytes of a body in memory that are sent at a go where somebody watches its progress."""
READ_BUFFER: Final = 256 * 1024
_NOT_CONNECTED: Final = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
_OK: Final = range(200, 300)
_REDIRECT: Final = range(300, 400)


class Deadline:
    """When a call ends at the latest; every piece of a body that goes out moves it."""

    def __init__(self, seconds: float, timeout: asyncio.Timeout) -> None:
        self._seconds = seconds
        self._timeout = timeout
        self._is_over = False

    def extend(self) -> None:
        """Begin the seconds anew, unless they are over."""
        if not self._is_over and not self._timeout.expired():
            self._timeout.reschedule(asyncio.get_running_loop().time() + self._seconds)

    def leaves(self, seconds: float) -> bool:
        """Return whether more than `seconds` are left."""
        when = self._timeout.when()
        return when is not None and asyncio.get_running_loop().time() + seconds < when

    def end(self) -> None:
        """Let the deadline stay where it is from now on."""
        self._is_over = True


class Transport:
    """Bound to the event loop that first uses it; one that finds that loop closed starts afresh."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._connections: Connections | None = None
        self._session: aiohttp.ClientSession | None = None
        self._open: weakref.WeakSet[aiohttp.ClientResponse] = weakref.WeakSet()
        self._dropped: weakref.finalize[..., Transport] | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop that it is bound to; None where there is no connection yet."""
        return None if self._connections is None else self._connections.loop

    async def call(self, request: Request) -> bytes:
        """The body of the answer. Raises a `ProblemError`, `Unreachable` or `ProtocolError`."""
        return await self._persist(request, self._answer)

    async def open(self, request: Request) -> aiohttp.ClientResponse:
        """A good answer whose body is still to come; the caller closes it."""
        response = await self._persist(request, self._respond)
        self._open.add(response)
        return response

    async def read(self, response: aiohttp.ClientResponse) -> bytes:
        """What has arrived of the body; empty at its end. Raises `Unreachable` where it breaks or stalls."""
        try:
            async with asyncio.timeout(self.address.timeout):
                return await response.content.readany()
        except TimeoutError as error:
            raise Unreachable(f"{self.address.url} sent nothing for {self.address.timeout:g} s") from error
        except aiohttp.ClientError as error:
            raise Unreachable(f"{self.address.url} broke off its answer: {_reason(error)}") from error

    async def close(self) -> None:
        """End what is still open, and leave the connections to the other clients of the event loop."""
        session, self._session = self._session, None
        connections, self._connections = self._connections, None
        if self._dropped is not None:
            self._dropped.detach()
        if session is not None and connections is not None:
            session.detach()
            _close_all(self._open, connections.loop)
            await connections.leave()

    async def _persist(self, request: Request, attempt: Callable[[Request, Deadline], Awaitable[T]]) -> T:
        was_sent = False
        async with self._deadline(request) as deadline:
            for number in itertools.count(1):
                try:
                    return await attempt(request, deadline)
                except OverspillError as error:
                    was_sent = was_sent or not isinstance(error, Unreachable) or error.was_sent
                    if isinstance(error, Unreachable):
                        error.was_sent = was_sent
                    wait = retry.wait_before(number, error)
                    if wait is None or not request.repeatable or number > self.address.retries:
                        raise
                    if not deadline.leaves(wait):
                        raise
                await asyncio.sleep(wait)
        raise AssertionError("unreachable")

    @asynccontextmanager
    async def _deadline(self, request: Request) -> AsyncIterator[Deadline]:
        seconds = self.address.timeout
        timeout = asyncio.timeout(seconds)
        deadline = Deadline(seconds, timeout)
        try:
            async with timeout:
                try:
                    yield deadline
                finally:
                    deadline.end()
        except TimeoutError as error:
            if not timeout.expired():  # the caller's own, from reading what is to be captured
                raise
            what = f"{request.method} {request.path}"
            raise Unreachable(f"{self.address.url} gave {what} no answer within {seconds:g} s") from error

    async def _answer(self, request: Request, deadline: Deadline) -> bytes:
        connections, _ = await self._bound()
        async with connections.limit(self.address.url):
            response = await self._respond(request, deadline)
            try:
                answer = await self._read_up_to(response, MAX_ANSWER)
            finally:
                response.close()  # which keeps the connection where all of the answer has been read
        if len(answer) > MAX_ANSWER:
            raise ProtocolError(f"{self.address.url} answered with more than {MAX_ANSWER} bytes")
        return answer

    async def _respond(self, request: Request, deadline: Deadline) -> aiohttp.ClientResponse:
        outgoing = None if request.body is None else _Outgoing(request.body, deadline)
        try:
            response = await self._send(request, outgoing)
        except aiohttp.ClientError as error:
            if outgoing is not None and outgoing.failure is not None:
                raise outgoing.failure from None
            failure = Unreachable(f"{self.address.url} cannot be reached: {_reason(error)}")
            failure.was_sent = not isinstance(error, _NOT_CONNECTED)
            raise failure from error
        if response.status in _OK:
            return response
        try:
            raise await self._failure(response)
        finally:
            response.close()

    async def _send(self, request: Request, outgoing: _Outgoing | None) -> aiohttp.ClientResponse:
        headers = {"Accept-Encoding": "identity", **request.headers}
        if request.body is not None and request.body.encoding:
            headers["Content-Encoding"] = request.body.encoding
        if request.body is not None and request.body.length is not None:
            headers["Content-Length"] = str(request.body.length)
        whole = None if request.body is None or outgoing is None else outgoing.at_once
        _, session = await self._bound()
        return await session.request(
            request.method,
            URL(self.address.url + request.path, encoded=True).with_query(request.query or None),
            data=outgoing if whole is None else whole,
            headers=headers,
            allow_redirects=False,
        )

    async def _bound(self) -> tuple[Connections, aiohttp.ClientSession]:
        loop = asyncio.get_running_loop()
        if self._connections is not None and self._connections.loop is not loop:
            if not self._connections.loop.is_closed():
                raise RuntimeError(
                    "this Client is in use by another event loop; make one per loop, or use SyncClient"
                )
            await self.close()
        if self._connections is None or self._session is None:
            self._connections = Connections.of(loop)
            self._session = self._new_session(self._connections.connector)
            self._dropped = weakref.finalize(self, _drop, self._connections, self._session)
        return self._connections, self._session

    def _new_session(self, connector: aiohttp.BaseConnector) -> aiohttp.ClientSession:
        headers = {"User-Agent": "overspill"}
        if self.address.key:
            headers["Authorization"] = f"Bearer {self.address.key}"
        return aiohttp.ClientSession(
            connector=connector,
            connector_owner=False,
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self.address.connect_timeout),
            auto_decompress=False,
            skip_auto_headers={"Content-Type"},
            read_bufsize=READ_BUFFER,
            cookie_jar=aiohttp.DummyCookieJar(),
            proxy=_proxy(self.address),
        )

    async def _read_up_to(self, response: aiohttp.ClientResponse, limit: int) -> bytes:
        """The body; one that is longer than `limit` comes cut, a little above it."""
        body = bytearray()
        while len(body) <= limit and (piece := await self.read(response)):
            body += piece
        return bytes(body)

    async def _failure(self, response: aiohttp.ClientResponse) -> OverspillError:
        if response.status in _REDIRECT:
            target = response.headers.get("Location", "nowhere")
            return ProtocolError(
                f"{self.address.url} redirects to {target}, and redirects are not followed: if that is the "
                "service, set OVERSPILL_URL to its address"
            )
        try:
            body = await self._read_up_to(response, MAX_ERROR)
        except Unreachable:
            body = b""  # the status alone says enough
        return error_for(_problem(response, body))


def _close_all(responses: Iterable[aiohttp.ClientResponse], loop: asyncio.AbstractEventLoop) -> None:
    """Close responses of `loop`, whichever loop runs here."""
    for response in list(responses):
        if loop.is_running():
            loop.call_soon_threadsafe(response.close)
        elif not loop.is_closed():
            response.close()


def _drop(connections: Connections, session: aiohttp.ClientSession) -> None:
    session.detach()
    connections.drop()


class _Outgoing:
    """One attempt's way through a body. aiohttp hides what fails in it, so it is kept in `failure`."""

    def __init__(self, body: Body, deadline: Deadline) -> None:
        self._body = body
        self._deadline = deadline
        self.failure: Exception | None = None

    @property
    def at_once(self) -> bytes | None:
        """Return the body if it is sent in one piece."""
        whole = self._body.whole
        is_watched = self._body.on_sent is not None and whole is not None and len(whole) > _PIECE
        return None if is_watched else whole

    async def _pieces(self) -> AsyncIterator[bytes | memoryview]:
        if self._body.whole is not None:
            view = memoryview(self._body.whole)
            for start in range(0, len(view), _PIECE):
                yield view[start : start + _PIECE]
            return
        pieces = self._body.pieces()
        while (piece := await threads.run_blocking(next, pieces, None)) is not None:
            yield piece

    async def __aiter__(self) -> AsyncIterator[bytes | memoryview]:
        try:
            async for piece in self._pieces():
                yield piece
                self._deadline.extend()
                if self._body.on_sent is not None:
                    self._body.on_sent(len(piece))
        except Exception as error:
            self.failure = error
            raise


def _problem(response: aiohttp.ClientResponse, body: bytes) -> wire.Problem:
    """The problem in an error's body; one made from the status where something else answered."""
    request_id = response.headers.get(wire.Header.REQUEST_ID, "")
    try:
        problem = msgspec.json.decode(body, type=wire.Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return wire.Problem(
            type="about:blank",
            title=response.reason or "",
            status=response.status,
            code="",
            detail=f"the answer is HTTP {response.status} {response.reason} without a problem body",
            instance=request_id,
            retry_after=_retry_after(response.headers),
        )
    return msgspec.structs.replace(
        problem,
        status=response.status,
        instance=problem.instance or request_id,
        retry_after=problem.retry_after or _retry_after(response.headers),
    )


def _retry_after(headers: Mapping[str, str]) -> int | None:
    """Seconds, where the field gives seconds; its form as a date is passed over."""
    value = headers.get("Retry-After", "")
    return int(value) if value.isascii() and value.isdigit() else None


def _proxy(address: Address) -> str | None:
    """The proxy of the environment (`https_proxy`, `no_proxy`, …), never for this machine itself."""
    url = URL(address.url)
    if address.is_near or proxy_bypass(url.host or ""):
        return None
    return getproxies().get(url.scheme)


def _reason(error: Exception) -> str:
    """In a few words: aiohttp's own repeat the address and tell of its settings."""
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return "connecting takes too long"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "it closed the connection"
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, OSError) and cause.errno is not None:
        text = cause.strerror or ""
        is_asyncios = text.startswith("Connect call failed")
        return os.strerror(cause.errno).lower() if is_asyncios or not text else text
    return str(error) or type(error).__name__
