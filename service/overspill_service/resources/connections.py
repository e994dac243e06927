"""Connections of clients: accepted while descriptors last, with a few kept for health checks.

    up to `limit`                    all requests are served
    `RESERVED_CONNECTIONS` more      health, readiness and metrics only; other requests get 503
    beyond that                      wait in the system's queue, where nobody cuts them off

At the limit the service closes the connection that has been idle for longest, and each other connection
after its next answer. One address has half of the connections at most, a few more for health checks, and the
next are answered with 503 at once. Long request heads have a limit of their own.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from contextlib import contextmanager
from ipaddress import IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Final, cast

from overspill_service.resources.connection_limit import RESERVED_CONNECTIONS
from overspill_service.resources.request_heads import HeadCount, RequestHeads
from overspill_service.resources.tasks import run_to_completion

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable, Iterator

HANDSHAKE_SECONDS: Final = 10.0
"""How long a client may take for its TLS handshake."""
HANDSHAKE_GRACE: Final = 1.0
"""How long a stop waits for handshakes."""
RESERVED_SECONDS: Final = 5.0
"""How long a reserved connection may stay open."""
PAUSE_SECONDS: Final = 0.2
"""How long nothing is accepted after the system refused a connection."""
MIN_SHARED: Final = 32
"""A limit below this is not divided among addresses: a single client may need all of it."""


class Connections:
    """The client connections of one process. Belongs to one event loop."""

    def __init__(
        self,
        limit: int = sys.maxsize - RESERVED_CONNECTIONS,
        refusal: bytes = b"",
        is_proxy: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """`refusal`: the answer, as bytes, to a connection that cannot be served.

        `is_proxy`: whether all clients may come from an address.
        """
        self.limit, self._refusal, self._is_proxy = limit, refusal, is_proxy
        self.share = (limit + 1) // 2 if limit >= MIN_SHARED else limit
        """The most connections of one address."""
        self._addresses: Counter[str] = Counter()
        self._heads = RequestHeads()
        self._counts: dict[asyncio.BaseTransport, HeadCount] = {}
        self._open: dict[asyncio.BaseTransport, bool] = {}
        """Whether each connection is idle after a request. The longest idle one comes first."""
        self._busy: set[asyncio.BaseTransport] = set()
        self._reserved: set[asyncio.BaseTransport] = set()
        self._count = 0
        self._has_room = asyncio.Event()
        self._has_room.set()

    @property
    def is_full(self) -> bool:
        return self._count >= self.limit

    def is_reserved(self, transport: asyncio.BaseTransport | None) -> bool:
        """Return whether the connection is reserved for health checks."""
        return transport in self._reserved

    @contextmanager
    def busy(self, transport: asyncio.BaseTransport | None, *, has_body: bool = False) -> Iterator[None]:
        """Mark the connection as busy while the block answers a request."""
        if transport is not None and transport in self._open:
            self._open[transport] = False
            self._busy.add(transport)
            self._expect_head(transport, comes_now=not has_body)
        try:
            yield
        finally:
            if transport is not None and self._open.pop(transport, None) is not None:
                self._open[transport] = True
                self._busy.discard(transport)
                if has_body:
                    self._expect_head(transport, comes_now=True)

    def received(self, transport: asyncio.BaseTransport, data: bytes) -> None:
        """Count what came, if it belongs to a head. The longest head goes if all of them are too long."""
        count = self._counts.get(transport)
        if count is None:
            return
        if not count.take(data):
            self._heads.forget(transport)
        elif (longest := self._heads.note(transport, count.size)) is not None:
            self._heads.forget(longest)
            self._refuse(longest)

    def _expect_head(self, transport: asyncio.BaseTransport, *, comes_now: bool) -> None:
        self._heads.forget(transport)
        self._counts.pop(transport, None)
        if comes_now:
            self._counts[transport] = HeadCount()

    def _refuse(self, transport: asyncio.BaseTransport) -> None:
        """Close a connection. Say why if it has no whole request yet."""
        writable = cast("asyncio.Transport", transport)
        if transport in self._busy:
            writable.abort()
        else:
            writable.write(self._refusal)
            writable.close()

    async def accept(
        self,
        listener: socket.socket,
        serve: Callable[[], asyncio.Protocol],
        refused: Callable[[OSError], None],
        tls: Callable[[], ssl.SSLContext | None] = lambda: None,
    ) -> None:
        """Accept connections while there is room, until cancelled. `serve` makes the protocol of each.

        `refused` is called when the system accepts none, `tls` for each connection.
        """
        listener.setblocking(False)
        handshakes: set[asyncio.Task[None]] = set()
        try:
            await self._accept(listener, serve, refused, tls, handshakes)
        finally:
            if handshakes:
                await asyncio.wait(handshakes, timeout=HANDSHAKE_GRACE)
            for each in handshakes:
                each.cancel()

    async def _accept(
        self,
        listener: socket.socket,
        serve: Callable[[], asyncio.Protocol],
        refused: Callable[[OSError], None],
        tls: Callable[[], ssl.SSLContext | None],
        handshakes: set[asyncio.Task[None]],
    ) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._has_room.wait()
            try:
                accepted, _ = await loop.sock_accept(listener)
            except ConnectionError:  # the client has gone already
                continue
            except OSError as error:
                refused(error)
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            self._enter()
            connecting = self._connect(accepted, serve, context := tls())
            if context is None:
                await run_to_completion(connecting)  # its request may have come already: it is answered
            else:  # nobody else waits while a client shakes hands
                task = loop.create_task(connecting)
                handshakes.add(task)
                task.add_done_callback(handshakes.discard)

    async def _connect(
        self, accepted: socket.socket, serve: Callable[[], asyncio.Protocol], context: ssl.SSLContext | None
    ) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: CountedProtocol(serve(), self),
                accepted,
                ssl=context,
                ssl_handshake_timeout=HANDSHAKE_SECONDS if context else None,
            )
        except OSError:  # the client has gone already, or speaks no TLS
            accepted.close()
            self._leave()

    def opened(self, transport: asyncio.BaseTransport) -> None:
        """Count a new connection. `_enter` has made room for it."""
        address = address_of(transport)
        self._addresses[address] += 1
        self._open[transport] = False
        self._expect_head(transport, comes_now=True)
        share = self.limit if self._is_proxy(peer_of(transport)) else self.share
        is_greedy = self._addresses[address] > share
        if self._count > self.limit or is_greedy:  # for health checks, and only for a moment
            self._reserved.add(transport)
            asyncio.get_running_loop().call_later(RESERVED_SECONDS, self._expire, transport)
            self._close_idle(address if is_greedy else None)
        if self._addresses[address] > share + RESERVED_CONNECTIONS:
            self._refuse(transport)

    def closed(self, transport: asyncio.BaseTransport | None) -> None:
        if transport is not None:
            self._expect_head(transport, comes_now=False)
            self._open.pop(transport, None)
            self._busy.discard(transport)
            self._reserved.discard(transport)
            self._forget_address(address_of(transport))
        self._leave()

    def _forget_address(self, address: str) -> None:
        self._addresses[address] -= 1
        if not self._addresses[address]:
            del self._addresses[address]

    def _enter(self) -> None:
        self._count += 1
        if self._count >= self.limit + RESERVED_CONNECTIONS:
            self._has_room.clear()

    def _leave(self) -> None:
        self._count -= 1
        self._has_room.set()

    def _close_idle(self, address: str | None) -> None:
        """Close the connection that has been idle for longest, of one address or of any."""
        for each, is_idle in self._open.items():
            if is_idle and address in (None, address_of(each)):
                each.close()
                return

    def _expire(self, transport: asyncio.BaseTransport) -> None:
        if transport in self._reserved:
            transport.close()


def peer_of(transport: asyncio.BaseTransport) -> str:
    """Return the address at the other end, an IPv4 address as such. Empty if there is none."""
    peer = transport.get_extra_info("peername")
    if not isinstance(peer, tuple):
        return ""
    address = ip_address(peer[0].partition("%")[0])
    return str((address.ipv4_mapped if isinstance(address, IPv6Address) else None) or address)


def address_of(transport: asyncio.BaseTransport) -> str:
    """Return the address of the client, of IPv6 the network that one machine may have for itself (/64)."""
    peer = peer_of(transport)
    return str(ip_network(f"{peer}/64", strict=False)) if ":" in peer else peer


class CountedProtocol(asyncio.Protocol):
    """A protocol whose connection is counted."""

    def __init__(self, inner: asyncio.Protocol, connections: Connections) -> None:
        self._inner, self._connections = inner, connections
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._connections.opened(transport)
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        self._connections.received(self._transport, data)
        self._inner.data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.closed(self._transport)
        self._inner.connection_lost(exc)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()
