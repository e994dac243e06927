"""A reverse proxy on loopback that fails on command and counts: what stands between a service and its store.

    proxy.script("PUT", refuse(503, "SlowDown"), reset)   # the next two PUTs; those after them pass
    proxy.always("GET", stall)                            # until `proxy.heal()`
    proxy.count("GET"), proxy.received, proxy.sent        # requests; bytes of bodies to and from the server

It passes the `Host` on as it came, so that signatures made for the proxy hold at the server. It runs in
the test's own event loop.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Final

import aiohttp
import pytest
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

    from tests.servers.swift import S3Server

HOP_BY_HOP: Final = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length"})


@dataclass
class Seen:
    """One request: the bytes of its body and of its reply's, and its status; 0 while there is none."""

    method: str
    path: str
    headers: dict[str, str]
    received: int = 0
    sent: int = 0
    status: int = 0


@dataclass
class Exchange:
    """A request that has come in, and the way to the server."""

    request: web.BaseRequest
    forward: Callable[[], Awaitable[web.Response]]

    def abort(self) -> web.Response:
        """Reset the connection; the answer that this returns reaches nobody."""
        assert isinstance(self.request.transport, asyncio.WriteTransport)
        self.request.transport.abort()
        return web.Response()


Fault = Callable[[Exchange], Awaitable[web.Response]]


async def passed(exchange: Exchange) -> web.Response:
    return await exchange.forward()


async def reset(exchange: Exchange) -> web.Response:
    """The connection breaks before the server has seen the request."""
    return exchange.abort()


async def lose_reply(exchange: Exchange) -> web.Response:
    """The server has done what was asked, but its answer never arrives."""
    await exchange.forward()
    return exchange.abort()


async def halve_reply(exchange: Exchange) -> web.Response:
    """The connection breaks in the middle of the reply's body."""
    reply = await exchange.forward()
    body = reply.body
    assert isinstance(body, bytes)
    broken = web.StreamResponse(status=reply.status, headers=reply.headers)
    broken.content_length = len(body)
    await broken.prepare(exchange.request)
    await broken.write(body[: len(body) // 2])
    return exchange.abort()


async def stall(exchange: Exchange) -> web.Response:
    """No answer for as long as the client waits."""
    await asyncio.Event().wait()
    raise AssertionError


def refuse(status: int, code: str = "") -> Fault:
    """An error document as S3 writes it, without asking the server."""

    async def answer(exchange: Exchange) -> web.Response:
        await exchange.request.content.read()
        text = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>injected</Message></Error>'
        return web.Response(status=status, text=text if code else "", content_type="application/xml")

    return answer


def hold(gate: asyncio.Event) -> Fault:
    """Pass the request on once the test opens the gate."""

    async def answer(exchange: Exchange) -> web.Response:
        await gate.wait()
        return await exchange.forward()

    return answer


@dataclass
class FaultyProxy:
    target: str
    url: str = ""
    seen: list[Seen] = field(default_factory=list)
    _scripts: defaultdict[str, deque[Fault]] = field(default_factory=lambda: defaultdict(deque))
    _always: dict[str, Fault] = field(default_factory=dict)
    _arrival: asyncio.Event = field(default_factory=asyncio.Event)

    def script(self, method: str, *faults: Fault) -> None:
        """What happens to the next requests of this method, one fault each."""
        self._scripts[method].extend(faults)

    def always(self, method: str, fault: Fault) -> None:
        """What happens to every request of this method, after its script."""
        self._always[method] = fault

    def heal(self) -> None:
        self._scripts.clear()
        self._always.clear()

    def forget(self) -> None:
        """Count from zero."""
        self.seen.clear()

    def count(self, method: str) -> int:
        return sum(seen.method == method for seen in self.seen)

    async def until(self, count: int) -> None:
        """Wait until so many requests have come in, answered or not."""
        while len(self.seen) < count:
            self._arrival.clear()
            await self._arrival.wait()

    @property
    def received(self) -> int:
        return sum(seen.received for seen in self.seen)

    @property
    def sent(self) -> int:
        return sum(seen.sent for seen in self.seen)

    def enter(self, seen: Seen) -> Fault:
        """Count a request that came in; return what happens to it."""
        self.seen.append(seen)
        self._arrival.set()
        script = self._scripts[seen.method]
        return script.popleft() if script else self._always.get(seen.method, passed)


@asynccontextmanager
async def running(target: str, tls: ssl.SSLContext | None = None) -> AsyncIterator[FaultyProxy]:
    """A proxy in front of the URL `target`, until the block ends; with `tls` it speaks https."""
    proxy = FaultyProxy(target)
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        handler = partial(_handle, proxy, session)
        runner = web.ServerRunner(
            web.Server(handler, handler_cancellation=True, access_log=None, auto_decompress=False),
            shutdown_timeout=0.1,
        )
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        host, port = runner.addresses[0][:2]
        proxy.url = f"{'https' if tls else 'http'}://{host}:{port}"
        try:
            yield proxy
        finally:
            await runner.cleanup()


async def _handle(
    proxy: FaultyProxy, session: aiohttp.ClientSession, request: web.BaseRequest
) -> web.StreamResponse:
    seen = Seen(request.method, request.raw_path, dict(request.headers))
    fault = proxy.enter(seen)
    reply = await fault(Exchange(request, partial(_forward, proxy.target, session, request, seen)))
    seen.status = reply.status
    return reply


async def _forward(
    target: str, session: aiohttp.ClientSession, request: web.BaseRequest, seen: Seen
) -> web.Response:
    body = await request.content.read()
    seen.received += len(body)
    url = URL(target + request.raw_path, encoded=True)
    headers = _end_to_end(request.headers)
    async with session.request(
        request.method, url, headers=headers, data=BytesIO(body), allow_redirects=False
    ) as response:
        content = await response.read()
        seen.sent += len(content)
        return web.Response(status=response.status, headers=_end_to_end(response.headers), body=content)


def _end_to_end(headers: Mapping[str, str]) -> CIMultiDict[str]:
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in HOP_BY_HOP)


@pytest.fixture
async def faulty_s3(s3_server: S3Server) -> AsyncIterator[FaultyProxy]:
    """A proxy in front of the S3 server; `s3_server.url(bucket, endpoint=faulty_s3.url)` leads through."""
    async with running(s3_server.endpoint) as proxy:
        yield proxy
