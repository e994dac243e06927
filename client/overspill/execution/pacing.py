"""Bounds how many outputs one iteration of an event loop begins with, so that a burst does not block it.

All tasks that are created together take their first step in the same iteration of the loop. After the first
few, each waits for a later iteration, so the loop's other work comes in between.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from typing import TYPE_CHECKING, Final

from overspill.execution.waiting import in_trio

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

_MOST_EACH_ITERATION: Final = 16


class _Pace:
    """How many outputs may still begin in this iteration of one event loop, and which ones wait."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop: weakref.ref[AbstractEventLoop] = weakref.ref(loop)
        self._left = _MOST_EACH_ITERATION
        self._waiting: deque[Future[None]] = deque()

    def may_begin(self) -> bool:
        if self._left == _MOST_EACH_ITERATION:
            self._schedule()
        self._left -= 1
        return self._left >= 0

    async def wait(self) -> None:
        loop = self._loop()
        assert loop is not None
        waiting = loop.create_future()
        self._waiting.append(waiting)
        await waiting

    def _schedule(self) -> None:
        loop = self._loop()
        if loop is not None:
            loop.call_soon(self._begin_next)

    def _begin_next(self) -> None:
        self._left = _MOST_EACH_ITERATION
        while self._waiting and self._left:
            waiting = self._waiting.popleft()
            if not waiting.done():  # it was cancelled
                self._left -= 1
                waiting.set_result(None)
        if self._left < _MOST_EACH_ITERATION:
            self._schedule()


_of_loops: Final[weakref.WeakKeyDictionary[AbstractEventLoop, _Pace]] = weakref.WeakKeyDictionary()


async def wait_to_begin() -> None:
    """Wait for an iteration of the event loop in which few others begin. Under trio, return at once."""
    if in_trio():
        return
    loop = asyncio.get_running_loop()
    pace = _of_loops.get(loop)
    if pace is None:
        pace = _of_loops[loop] = _Pace(loop)
    if not pace.may_begin():
        await pace.wait()
