"""Bounds how many outputs one iteration of an event loop begins with, so that a burst does not block it.

All tasks that are created together take their first step in the same iteration of the loop. There each only
joins a queue, and the next iterations begin with a few each. So the loop's other work comes in between, and
no worker thread takes the interpreter's lock from the loop before all have joined.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from typing import TYPE_CHECKING, Final

from overspill.execution.waiting import in_trio

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

_MAX_EACH_ITERATION: Final = 16


class _Pace:
    """The outputs that wait to begin on one event loop."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop: weakref.ref[AbstractEventLoop] = weakref.ref(loop)
        self._waiting: deque[Future[None]] = deque()

    async def wait(self) -> None:
        loop = self._loop()
        assert loop is not None
        waiting = loop.create_future()
        self._waiting.append(waiting)
        if len(self._waiting) == 1:
            loop.call_soon(self._begin_next, loop)
        await waiting

    def _begin_next(self, loop: AbstractEventLoop) -> None:
        left = _MAX_EACH_ITERATION
        while self._waiting and left:
            waiting = self._waiting.popleft()
            if not waiting.done():  # it was cancelled
                left -= 1
                waiting.set_result(None)
        if self._waiting:
            loop.call_soon(self._begin_next, loop)


_of_loops: Final[weakref.WeakKeyDictionary[AbstractEventLoop, _Pace]] = weakref.WeakKeyDictionary()


async def wait_to_begin() -> None:
    """Wait for a later iteration of the event loop, in which few others begin. Under trio, return at once."""
    if in_trio():
        return
    loop = asyncio.get_running_loop()
    pace = _of_loops.get(loop)
    if pace is None:
        pace = _of_loops[loop] = _Pace(loop)
    await pace.wait()
