"""The connections of one event loop. All clients of the loop share them, whatever their keys.

The key is a header of each request, so any connection can carry it. All clients use the system's TLS
configuration; a client with another one would need connections of its own.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Final, Self

import aiohttp
from aiohttp.client_proto import ResponseHandler

from overspill.execution import forks
from overspill.transfer import closing

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from contextlib import AbstractAsyncContextManager

MAX_CALLS: Final = 32
"""Requests to one service at the same time.

Downloads, which their reader may hold up, and waits, which the service holds up, do not count.
"""


class Connector(aiohttp.TCPConnector):
    """Makes the connections of the event loop that runs here, as many as are asked for.

    A connection that is given up before all of a request was sent is broken off. asyncio would close it once
    all that waits was sent. A service that hangs takes nothing: the socket and those bytes would stay as long
    as it hangs, and whoever closes the client would wait for them.
    """

    def __init__(self) -> None:
        super().__init__(limit=0)
        self._factory = partial(_Protocol, loop=self._loop)  # type: ignore[assignment]  # of a subclass


class _Protocol(ResponseHandler):
    def close(self) -> None:
        """Close the connection, and wait for nothing."""
        if self.transport is not None and self.transport.get_write_buffer_size():
            self.abort()
        else:
            super().close()


class Connections:
    """The connections of `loop`. A user joins with `of`, and leaves with `leave` or `drop`."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self.loop = loop
        self.connector: Connector = Connector()
        self.process: int = os.getpid()
        self.users: int = 0
        self._limits: dict[str, asyncio.Semaphore] = {}

    @classmethod
    def of(cls, loop: AbstractEventLoop) -> Self:
        """Return the connections of `loop`, which runs here, and count one user more."""
        with _all.lock:
            found = _all.of_loops.get(loop)
            if found is None or found.connector.closed or found.process != os.getpid():
                found = _all.of_loops[loop] = cls(loop)
            found.users += 1
        return found  # type: ignore[return-value]  # of this very class

    def slot(self, url: str, *, is_wait: bool) -> AbstractAsyncContextManager[None]:
        """Return the slot to hold during a request to the service at `url`. Waits need none."""
        return nullcontext() if is_wait else self._limits.setdefault(url, asyncio.Semaphore(MAX_CALLS))

    async def leave(self) -> None:
        """Count one user less, in any loop. The last one closes the connections."""
        if self._is_last():
            await closing.close(self.connector, self.loop)

    def drop(self) -> None:
        """Do the same as `leave`, without an event loop and without waiting: for the garbage collector."""
        if self.process != os.getpid() or self._is_last():
            closing.drop(self.connector, self.loop, self.process)

    def _is_last(self) -> bool:
        with _all.lock:
            self.users -= 1
            if self.users == 0 and _all.of_loops.get(self.loop) is self:
                del _all.of_loops[self.loop]
            return self.users == 0


class _AllConnections:
    """The connections of all event loops of this process."""

    def __init__(self) -> None:
        self.reset_after_fork()
        forks.register(self)

    def reset_after_fork(self) -> None:
        self.lock = threading.RLock()
        self.of_loops: weakref.WeakKeyDictionary[AbstractEventLoop, Connections] = weakref.WeakKeyDictionary()


_all: Final = _AllConnections()
