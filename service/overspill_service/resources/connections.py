"""Connections of clients: accepted while there are descriptors, with a few kept for health checks.

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
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from overspill_service.resources.blocked_addresses import BlockedAddresses
from overspill_service.resources.client_connection import Activity, ClientConnection
from overspill_service.resources.connection_limit import RESERVED_CONNECTIONS
from overspill_service.resources.peers import address_of, network_of
from overspill_service.resources.request_heads import (
    MAX_FIELDS_BYTES,
    SHORT_HEAD_BYTES,
    RequestHeads,
)
from overspill_service.resources.tasks import run_to_completion

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Awaitable, Callable

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


class Body(Protocol):
    """The body of a request."""

    def on_eof(self, callback: Callable[[], None]) -> None:
        """Call `callback` once all of it has come: at once if it has."""


class Refusals(NamedTuple):
    """The answers, as bytes, to connections that are not served."""

    crowded: bytes = b""
    large_head: bytes = b""
    large_field: bytes = b""


class Connections:
    """The client connections of one process. Belongs to one event loop."""

    def __init__(
        self,
        limit: int = sys.maxsize - RESERVED_CONNECTIONS,
        refusals: Refusals | None = None,
        is_proxy: Callable[[str], bool] = lambda _: False,
        on_large_head: Callable[[], None] = lambda: None,
    ) -> None:
        """`is_proxy`: may all clients come from an address? `on_large_head` is called for each such head."""
        self.limit, self._refusals, self._is_proxy = limit, refusals or Refusals(), is_proxy
        self._on_large_head = on_large_head
        self.share = (limit + 1) // 2 if limit >= MIN_SHARED else limit
        """The most connections of one address."""
        self._addresses: Counter[str] = Counter()
        self._heads = RequestHeads()
        self._blocked = BlockedAddresses()
        self._open: dict[asyncio.BaseTransport, ClientConnection] = {}
        """The one that has been idle for longest comes first."""
        self._count = 0
        self._has_room = asyncio.Event()
        self._has_room.set()

    @property
    def is_full(self) -> bool:
        return self._count >= self.limit

    def is_reserved(self, transport: asyncio.BaseTransport | None) -> bool:
        """Return whether the connection is reserved for health checks."""
        connection = self._open.get(transport) if transport is not None else None
        return connection is not None and connection.is_reserved

    def peer(self, transport: asyncio.BaseTransport | None) -> str | None:
        """Return the address at the other end of a connection. None for one that is not accepted here."""
        connection = self._open.get(transport) if transport is not None else None
        return None if connection is None else connection.peer

    def begin(self, transport: asyncio.BaseTransport | None, *, has_body: bool) -> None:
        """Note that a request is being answered. `end` notes the end of that."""
        connection = self._open.get(transport) if transport is not None else None
        if connection is not None:
            connection.activity = Activity.BUSY
            self._expect_head(connection, comes_now=not has_body)

    def end(self, transport: asyncio.BaseTransport | None, body: Body | None) -> bool:
        """Note the end of the answer. Return whether the connection may stay open behind it.

        `body` is the request's, if it has one: it may not have come yet.
        """
        connection = self._open.pop(transport, None) if transport is not None else None
        if connection is None or transport is None:
            return True
        self._open[transport] = connection
        connection.activity = Activity.IDLE
        if body is not None:
            body.on_eof(partial(self._expect_head, connection, comes_now=True))
        return not connection.is_refused

    def received(self, connection: ClientConnection, data: bytes) -> bool:
        """Count the bytes that came, if they belong to a head. Return whether the request may go on.

        Refuse a head with a field that is too long, or with too long fields. If all heads together are too
        long, refuse the longest.
        """
        head, transport = connection.head, connection.transport
        if connection.is_refused:
            return False
        is_coming = head.take(data)
        if head.has_long_field:
            return self._refuse_head(connection, self._refusals.large_field)
        if not is_coming:
            if head.size > SHORT_HEAD_BYTES:
                self._heads.forget(transport)
            return True
        if head.fields > MAX_FIELDS_BYTES:
            return self._refuse_head(connection, self._refusals.large_head)
        longest = self._heads.note(transport, head.size)
        if longest is not None:
            self._heads.forget(longest)
            self._refuse(self._open[longest], self._refusals.crowded)
        return True

    def _refuse_head(self, connection: ClientConnection, answer: bytes) -> bool:
        """Refuse a head, and note the offence of its address. Return that the request may not go on.

        The answer to an earlier request that is being sent is finished.
        """
        connection.is_refused = True
        if connection.activity is not Activity.BUSY:
            self._refuse(connection, answer)
        self._on_large_head()
        if not self._is_proxy(connection.peer):
            self._blocked.note_offence(connection.address)
        return False

    def _expect_head(self, connection: ClientConnection, *, comes_now: bool) -> None:
        if connection.head.size > SHORT_HEAD_BYTES:
            self._heads.forget(connection.transport)
        if comes_now:
            connection.head.begin()
        else:
            connection.head.ignore()

    def _refuse(self, connection: ClientConnection, answer: bytes) -> None:
        """Close a connection. Say why if it has no whole request yet."""
        if connection.activity is Activity.BUSY:
            connection.transport.abort()
        else:
            connection.transport.write(answer)
            connection.transport.close()

    async def accept(
        self,
        listener: socket.socket,
        serve: Callable[[], asyncio.Protocol],
        refused: Callable[[OSError], None],
        tls: Callable[[], ssl.SSLContext | None] = lambda: None,
    ) -> None:
        """Accept connections while there is room, until cancelled. `serve` makes the protocol of each.

        `refused` is called when the system accepts none, `tls` for each connection. At the end whoever has
        connected already is accepted too: the system would reset their connections.
        """
        listener.setblocking(False)
        handshakes: set[asyncio.Task[None]] = set()
        begin = partial(self._begin, serve, tls, handshakes)
        try:
            await self._accept(listener, begin, refused)
        finally:
            with suppress(OSError):  # nobody waits
                while self._has_room.is_set():
                    await begin(*listener.accept())
            if handshakes:
                await asyncio.wait(handshakes, timeout=HANDSHAKE_GRACE)
            for each in handshakes:
                each.cancel()

    async def _accept(
        self,
        listener: socket.socket,
        begin: Callable[[socket.socket, object], Awaitable[None]],
        refused: Callable[[OSError], None],
    ) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._has_room.wait()
            try:
                accepted, peername = await loop.sock_accept(listener)
            except ConnectionError:  # the client has gone already
                continue
            except OSError as error:
                refused(error)
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            await begin(accepted, peername)

    async def _begin(
        self,
        serve: Callable[[], asyncio.Protocol],
        tls: Callable[[], ssl.SSLContext | None],
        handshakes: set[asyncio.Task[None]],
        accepted: socket.socket,
        peername: object,
    ) -> None:
        """Begin to serve a connection, unless its address is blocked."""
        peer = address_of(peername)
        if self._blocked and network_of(peer) in self._blocked:
            accepted.close()
            return
        self._enter()
        connecting = self._connect(accepted, lambda: ClientConnection(serve(), self, peer), context := tls())
        if context is None:
            await run_to_completion(connecting)  # its request may have come already: it is answered
        else:  # nobody else waits while a client shakes hands
            task = asyncio.create_task(connecting)
            handshakes.add(task)
            task.add_done_callback(handshakes.discard)

    async def _connect(
        self, accepted: socket.socket, make: Callable[[], ClientConnection], context: ssl.SSLContext | None
    ) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                make,
                accepted,
                ssl=context,
                ssl_handshake_timeout=HANDSHAKE_SECONDS if context else None,
            )
        except OSError:  # the client has gone already, or speaks no TLS
            accepted.close()
            self._leave()

    def opened(self, connection: ClientConnection) -> None:
        """Count a new connection. `_enter` has made room for it."""
        address = connection.address
        self._addresses[address] += 1
        self._open[connection.transport] = connection
        share = self.limit if self._is_proxy(connection.peer) else self.share
        is_greedy = self._addresses[address] > share
        if self._count > self.limit or is_greedy:  # for health checks, and only for a moment
            connection.is_reserved = True
            asyncio.get_running_loop().call_later(RESERVED_SECONDS, self._expire, connection.transport)
            self._close_idle(address if is_greedy else None)
        if self._addresses[address] > share + RESERVED_CONNECTIONS:
            self._refuse(connection, self._refusals.crowded)

    def closed(self, connection: ClientConnection) -> None:
        self._heads.forget(connection.transport)
        del self._open[connection.transport]
        self._forget_address(connection.address)
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
        for transport, each in self._open.items():
            if each.activity is Activity.IDLE and address in (None, each.address):
                transport.close()
                return

    def _expire(self, transport: asyncio.BaseTransport) -> None:
        if self.is_reserved(transport):
            transport.close()
