"""Sends requests to one service over HTTP, with deadlines and retries; raises its problems as exceptions.

This module knows nothing of captures. It never follows a redirect: the key is for one host only.
"""

from __future__ import annotations

import asyncio
import weakref
from contextlib import closing
from typing import TYPE_CHECKING, Final
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from overspill.errors import ClientClosed, OverspillError, ProtocolError, Unreachable
from overspill.transfer import failures
from overspill.transfer.attempts import attempts_of
from overspill.transfer.closing import CLOSED
from overspill.transfer.connections import Connections
from overspill.transfer.key import own_key, warn_of_expiry
from overspill.transfer.outgoing import Outgoing
from overspill.transfer.request_span import requesting
from overspill.wire import Header

if TYPE_CHECKING:
    from collections.abc import Iterable

    from overspill.transfer.address import Address
    from overspill.transfer.attempts import Attempts
    from overspill.transfer.request import Request

MAX_ERROR: Final = 64 * 1024
"""Bytes of an error's body that are read."""
MAX_ANSWER: Final = 64 * 1024 * 1024
"""Bytes of an answer that is read as a whole. A page of a listing is the longest."""
READ_BUFFER: Final = 256 * 1024
_OK: Final = range(200, 300)
_REDIRECT: Final = range(300, 400)


class Transport:
    """The connection to one service. It belongs to the event loop that first uses it.

    Once that loop is closed, another may use it. Raises `RuntimeError` in a second loop before that.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self._connections: Connections | None = None
        self._session: aiohttp.ClientSession | None = None
        self._open: weakref.WeakSet[aiohttp.ClientResponse] = weakref.WeakSet()
        self._dropped: weakref.finalize[..., Transport] | None = None
        self._is_closed = False
        self.answered: float | None = None
        """When the service last answered a request with success, in the event loop's time."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop that it belongs to, or None if it was not used yet."""
        return None if self._connections is None else self._connections.loop

    async def call(self, request: Request) -> bytes:
        """Send a request, and return the body of the answer.

        Raises `ProblemError` for an error that the service answers, `Unreachable` if there is no answer in
        time, and `ProtocolError` for an answer that makes no sense.
        """
        async with attempts_of(request, self.address) as attempts:
            while True:
                try:
                    connections, _ = await self._bound()
                    async with connections.slot(self.address.url, is_wait=request.answer_seconds > 0):
                        return await self._read_whole(await self._respond(request, attempts))
                except OverspillError as error:
                    await attempts.wait_after(error)

    async def open(self, request: Request) -> aiohttp.ClientResponse:
        """Send a request, and return an answer whose body is still to come. The caller closes it.

        Raises as `call` does.
        """
        async with attempts_of(request, self.address) as attempts:
            while True:
                try:
                    response = await self._respond(request, attempts)
                except OverspillError as error:
                    await attempts.wait_after(error)
                else:
                    self._open.add(response)
                    return response

    async def read(self, response: aiohttp.ClientResponse) -> bytes:
        """Return the bytes of the body that have arrived, none at its end.

        Raises `Unreachable` if the connection breaks, or brings nothing for the client's timeout.
        """
        try:
            async with asyncio.timeout(self.address.timeout):
                return await response.content.readany()
        except TimeoutError as error:
            raise Unreachable(f"{self.address.url} sent nothing for {self.address.timeout:g} s") from error
        except aiohttp.ClientError as error:
            raise Unreachable(f"{self.address.url} broke off its answer: {failures.reason(error)}") from error

    async def close(self) -> None:
        """End the requests that are open. The connections stay if other clients of the loop use them.

        A request that would be sent from then on, also after a failure, raises `ClientClosed`.
        """
        self._is_closed = True
        await self._leave()

    async def _leave(self) -> None:
        session, self._session = self._session, None
        connections, self._connections = self._connections, None
        if self._dropped is not None:
            self._dropped.detach()
        if session is not None and connections is not None:
            session.detach()
            _close_all(self._open, connections.loop)
            await connections.leave()

    async def _read_whole(self, response: aiohttp.ClientResponse) -> bytes:
        try:
            answer = await self._read_up_to(response, MAX_ANSWER)
        finally:
            response.close()  # the connection stays open if all of the answer was read
        if len(answer) > MAX_ANSWER:
            raise ProtocolError(f"{self.address.url} answered with more than {MAX_ANSWER} bytes")
        return answer

    async def _respond(self, request: Request, attempts: Attempts) -> aiohttp.ClientResponse:
        """Send a request once. Return an answer of status 2xx, whose body is still to come."""
        is_local, body = self.address.is_local, request.body
        outgoing = None if body is None else Outgoing(body, attempts, is_local=is_local)
        whole = None if outgoing is None else outgoing.single_piece
        headers = _headers(request)
        if key := own_key(self.address):
            headers["Authorization"] = f"Bearer {key}"
        _, session = await self._bound()
        with requesting(request, self.address, headers, attempts.failed) as answered:
            try:
                response = await session.request(
                    request.method,
                    URL(self.address.url + request.path, encoded=True).with_query(request.query or None),
                    data=outgoing if whole is None else whole,
                    headers=headers,
                    allow_redirects=False,
                )
            except aiohttp.ClientError as error:
                if outgoing is not None and outgoing.failure is not None:
                    raise outgoing.failure from None
                raise failures.unreachable(self.address.url, error) from error
            answered(response.status)
        if expires := response.headers.get(Header.KEY_EXPIRES):
            warn_of_expiry(self.address.url, expires)
        if response.status in _OK:
            self.answered = asyncio.get_running_loop().time()
            return response
        with closing(response):
            raise await self._failure(response)

    async def _bound(self) -> tuple[Connections, aiohttp.ClientSession]:
        if self._is_closed:
            raise ClientClosed(CLOSED)
        loop = asyncio.get_running_loop()
        if self._connections is not None and self._connections.loop is not loop:
            if not self._connections.loop.is_closed():
                raise RuntimeError(
                    "this Client is in use by another event loop; make one per loop, or use SyncClient"
                )
            await self._leave()
        if self._connections is None or self._session is None:
            self._connections = Connections.of(loop)
            self._session = self._new_session(self._connections.connector)
            self._dropped = weakref.finalize(self, _drop, self._connections, self._session)
        return self._connections, self._session

    def _new_session(self, connector: aiohttp.BaseConnector) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=connector,
            connector_owner=False,
            headers={"User-Agent": "overspill"},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self.address.connect_timeout),
            auto_decompress=False,
            skip_auto_headers={"Content-Type"},
            read_bufsize=READ_BUFFER,
            cookie_jar=aiohttp.DummyCookieJar(),
            proxy=_proxy(self.address),
        )

    async def _read_up_to(self, response: aiohttp.ClientResponse, limit: int) -> bytes:
        """Return the body. Stop reading a little after `limit` bytes."""
        body = bytearray()
        while len(body) <= limit and not response.content.at_eof():
            body += await self.read(response)
        return bytes(body)

    async def _failure(self, response: aiohttp.ClientResponse) -> OverspillError:
        if response.status in _REDIRECT:
            return failures.redirected(self.address.url, response)
        try:
            body = await self._read_up_to(response, MAX_ERROR)
        except Unreachable:
            body = b""  # the status alone says enough
        return failures.refused(response, body)


def _headers(request: Request) -> dict[str, str]:
    headers = {"Accept-Encoding": "identity", **request.headers}
    if request.body is not None and request.body.encoding:
        headers["Content-Encoding"] = request.body.encoding
    if request.body is not None and request.body.length is not None:
        headers["Content-Length"] = str(request.body.length)
    return headers


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


def _proxy(address: Address) -> str | None:
    """Return the proxy that the environment names (`https_proxy`, `no_proxy`, …); none for this machine."""
    url = URL(address.url)
    if address.is_local or proxy_bypass(url.host or ""):
        return None
    return getproxies().get(url.scheme)
