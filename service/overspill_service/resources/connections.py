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

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

RESERVED_CONNECTIONS: Final = 8
"""Connections beyond the most, for health checks."""
RESERVED_SECONDS: Final = 5.0
"""How long one of these may take."""
PAUSE_SECONDS: Final = 0.2
"""How long nothing is accepted after the system refused to."""
MIN_CONNECTIONS: Final = 4
FEW_CONNECTIONS: Final = 1000
"""Connections below which an operator is told at the start."""
UNKNOWN_LIMIT: Final = 1024

log = logging.getLogger("overspill_service.start")


def connection_limit() -> int:
    """How many connections of clients leave as many descriptors again to the back ends and to files.

    The soft limit of this process is raised to its hard one first.
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
    if sys.platform != "darwin" and soft != hard:  # macOS names a hard limit that it does not grant
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
    """The connections of one process. Belongs to one event loop."""

    def __init__(self, limit: int = sys.maxsize - RESERVED_CONNECTIONS) -> None:
        self.limit = limit
        self._open: dict[asyncio.BaseTransport, bool] = {}
        """Whether each is idle after a request, the longest idle first."""
        self._reserved: set[asyncio.BaseTransport] = set()
        self._count = 0
        self._has_room = asyncio.Event()
        self._has_room.set()

    @property
    def is_full(self) -> bool:
        return self._count >= self.limit

    def is_reserved(self, transport: asyncio.BaseTransport | None) -> bool:
        """Whether the connection is one of those for health checks alone."""
        return transport in self._reserved

    @contextmanager
    def busy(self, transport: asyncio.BaseTransport | None) -> Iterator[None]:
        """While a request of the connection is answered."""
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
    ) -> None:
        """Until cancelled: accept connections while there is room, and have `serve` make a protocol for each.

        `refused` is told when the system accepts none.
        """
        loop = asyncio.get_running_loop()
        listener.setblocking(False)
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
            try:
                await loop.connect_accepted_socket(lambda: CountedProtocol(serve(), self), accepted)
            except OSError:  # the client has gone already
                accepted.close()
                self._leave()

    def opened(self, transport: asyncio.BaseTransport) -> None:
        """Count a connection in; `_enter` has made room for it."""
        self._open[transport] = False
        if self._count > self.limit:
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
        vars(self)["data_received"] = inner.data_received  # costs no call more for each piece

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
