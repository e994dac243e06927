"""Connections of clients: accepted while descriptors last, with a few kept for health checks.

    up to `limit`                    all requests are served
    `RESERVED_CONNECTIONS` more      health, readiness and metrics only; other requests get 503
    beyond that                      wait in the system's queue, where nobody cuts them off

At the limit the service closes the connection that has been idle for longest, and each other connection
after its next answer.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from overspill_service.resources.tasks import run_to_completion

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable, Iterator

RESERVED_CONNECTIONS: Final = 8
"""Connections beyond the limit, for health checks."""
HANDSHAKE_SECONDS: Final = 10.0
"""How long a client may take for its TLS handshake."""
HANDSHAKE_GRACE: Final = 1.0
"""How long a stop waits for handshakes."""
RESERVED_SECONDS: Final = 5.0
"""How long a reserved connection may stay open."""
PAUSE_SECONDS: Final = 0.2
"""How long nothing is accepted after the system refused a connection."""
MIN_CONNECTIONS: Final = 4
FEW_CONNECTIONS: Final = 1000
"""A limit below this is reported to the operator at the start."""
UNKNOWN_LIMIT: Final = 1024

log = logging.getLogger("overspill_service.start")


def connection_limit() -> int:
    """Return how many client connections leave as many descriptors for the back ends and files.

    First the soft limit of this process is raised to the hard limit.
    """
    limit, used = _raised_limit(), _open_descriptors()
    limit = max(MIN_CONNECTIONS, (limit - used) // 2 - RESERVED_CONNECTIONS)
    if limit < FEW_CONNECTIONS:
        log.warning(
            "at most %d clients are served at once: this process may have %d files open; raise the limit "
            "(ulimit -n, LimitNOFILE=)",
            limit,
            limit,
        )
    return limit


def _raised_limit() -> int:
    try:
        import resource  # noqa: PLC0415  (there is none on Windows)
    except ImportError:
        return UNKNOWN_LIMIT
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if sys.platform != "darwin" and soft != hard:  # macOS reports a hard limit that it does not grant
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            return hard
    return soft


def _open_descriptors() -> int:
    try:
        return sum(1 for _ in Path("/dev/fd").iterdir())
    except OSError:
        return 0


class Connections:
    """The client connections of one process. Belongs to one event loop."""

    def __init__(self, limit: int = sys.maxsize - RESERVED_CONNECTIONS) -> None:
        self.limit = limit
        self._open: dict[asyncio.BaseTransport, bool] = {}
        """Whether each connection is idle after a request. The longest idle one comes first."""
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
    def busy(self, transport: asyncio.BaseTransport | None) -> Iterator[None]:
        """Mark the connection as busy while the block answers a request."""
        if transport in self._open:
            self._open[transport] = False
        try:
            yield
        finally:
            if transport is not None and self._open.pop(transport, None) is not None:
                self._open[transport] = True

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
        self._open[transport] = False
        if self._count > self.limit:  # for health checks, and only for a moment
            self._reserved.add(transport)
            asyncio.get_running_loop().call_later(RESERVED_SECONDS, self._expire, transport)
            self._close_idle()

    def closed(self, transport: asyncio.BaseTransport | None) -> None:
        if transport is not None:
            self._open.pop(transport, None)
            self._reserved.discard(transport)
        self._leave()

    def _enter(self) -> None:
        self._count += 1
        if self._count >= self.limit + RESERVED_CONNECTIONS:
            self._has_room.clear()

    def _leave(self) -> None:
        self._count -= 1
        self._has_room.set()

    def _close_idle(self) -> None:
        idle = next((each for each, is_idle in self._open.items() if is_idle), None)
        if idle is not None:
            idle.close()

    def _expire(self, transport: asyncio.BaseTransport) -> None:
        if transport in self._reserved:
            transport.close()


class CountedProtocol(asyncio.Protocol):
    """A protocol whose connection is counted."""

    def __init__(self, inner: asyncio.Protocol, connections: Connections) -> None:
        self._inner, self._connections = inner, connections
        self._transport: asyncio.BaseTransport | None = None
        vars(self)["data_received"] = (
            inner.data_received
        )  # bound directly: it is called for each piece of data

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._connections.opened(transport)
        self._inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.closed(self._transport)
        self._inner.connection_lost(exc)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()
