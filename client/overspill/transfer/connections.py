"""The connections of one event loop, which all clients on it share, whatever their keys.

The key is a header of each request, so a connection serves any of them. All clients have one configuration
of TLS, that of the system; one with another would need connections of its own.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from typing import TYPE_CHECKING, Final, Self

import aiohttp

from overspill.execution import forks
from overspill.transfer import closing

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

MOST_CALLS: Final = 32
"""Requests to one service at the same time. Downloads, which their reader may hold up, do not count."""


class Connections:
    """Those of `loop`. Whoever uses them says so with `of`, and leaves with `leave` or `drop`."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self.loop = loop
        self.connector = aiohttp.TCPConnector(limit=0)
        self.process = os.getpid()
        self.users = 0
        self._limits: dict[str, asyncio.Semaphore] = {}

    @classmethod
    def of(cls, loop: AbstractEventLoop) -> Self:
        """Become a user of those of `loop`, which runs here."""
        with _all.lock:
            found = _all.of_loops.get(loop)
            if found is None or found.connector.closed or found.process != os.getpid():
                found = _all.of_loops[loop] = cls(loop)
            found.users += 1
        return found  # type: ignore[return-value]  # of this very class

    def limit(self, url: str) -> asyncio.Semaphore:
        """What to hold while a request to the service at `url` is made."""
        return self._limits.setdefault(url, asyncio.Semaphore(MOST_CALLS))

    async def leave(self) -> None:
        """Be a user no more, in any loop: the last one closes them."""
        if self._is_last():
            await closing.close(self.connector, self.loop)

    def drop(self) -> None:
        """As `leave`, without an event loop and without waiting: the garbage collector may call this."""
        if self.process != os.getpid() or self._is_last():
            closing.drop(self.connector, self.loop, self.process)

    def _is_last(self) -> bool:
        with _all.lock:
            self.users -= 1
            if self.users == 0 and _all.of_loops.get(self.loop) is self:
                del _all.of_loops[self.loop]
            return self.users == 0


class _All:
    """Those of all event loops of this process."""

    def __init__(self) -> None:
        self.reset_after_fork()
        forks.register(self)

    def reset_after_fork(self) -> None:
        self.lock = threading.RLock()
        self.of_loops: weakref.WeakKeyDictionary[AbstractEventLoop, Connections] = weakref.WeakKeyDictionary()


_all: Final = _All()
