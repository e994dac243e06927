"""One connection of a client, which reports to the `Connections` of its process."""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import Protocol, cast

from overspill_service.resources.peers import network_of
from overspill_service.resources.request_heads import HeadCount


class Counts(Protocol):
    """Gets the events of each connection."""

    def opened(self, connection: ClientConnection) -> None: ...

    def received(self, connection: ClientConnection, data: bytes) -> bool:
        """Return whether the request may go on."""

    def closed(self, connection: ClientConnection) -> None: ...


class Activity(Enum):
    """The activity of a connection."""

    NEW = "new"
    """Its first request has not come yet."""
    BUSY = "busy"
    """One of its requests is being answered."""
    IDLE = "idle"
    """One of its requests was answered."""


class ClientConnection(asyncio.Protocol):
    """Wraps the protocol `inner` of a connection, and reports to `connections`."""

    transport: asyncio.Transport

    def __init__(self, inner: asyncio.Protocol, connections: Counts, peer: str) -> None:
        """`peer`: the address at the other end. The system forgets it as soon as the client has gone."""
        self._inner, self._connections, self.peer = inner, connections, peer
        self.address = network_of(peer)
        self.head = HeadCount()
        self.activity = Activity.NEW
        self.is_reserved = False
        self.is_refused = False
        """Whether nothing more is received from it. It is closed after the answer that is being sent."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._connections.opened(self)
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._connections.received(self, data):
            self._inner.data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.closed(self)
        self._inner.connection_lost(exc)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()
