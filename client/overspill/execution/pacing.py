"""How many outputs one turn of an event loop begins with, so that thousands at once do not hold it up.

All tasks that are created together take their first step in the same turn of the loop. Those that come after
the first few wait for the next turns, and what else the loop has to do comes in between.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from typing import TYPE_CHECKING, Final

from overspill.execution.waiting import in_trio

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

_MOST_A_TURN: Final = 16


class _Pace:
    """That of one event loop."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop: weakref.ref[AbstractEventLoop] = weakref.ref(loop)
        self._left = _MOST_A_TURN
        self._waiting: deque[Future[None]] = deque()

    def may_begin(self) -> bool:
        if self._left == _MOST_A_TURN:
            self._come_again()
        self._left -= 1
        return self._left >= 0

    async def turn(self) -> None:
        loop = self._loop()
        assert loop is not None
        waiting = loop.create_future()
        self._waiting.append(waiting)
        await waiting

    def _come_again(self) -> None:
        loop = self._loop()
        if loop is not None:
            loop.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._left = _MOST_A_TURN
        while self._waiting and self._left:
            waiting = self._waiting.popleft()
            if not waiting.done():  # it was cancelled
                self._left -= 1
                waiting.set_result(None)
        if self._left < _MOST_A_TURN:
            self._come_again()


_of_loops: Final[weakref.WeakKeyDictionary[AbstractEventLoop, _Pace]] = weakref.WeakKeyDictionary()


async def turn() -> None:
    """Wait for a turn of the event loop in which few others begin. Under trio, go on at once."""
    if in_trio():
        return
    loop = asyncio.get_running_loop()
    pace = _of_loops.get(loop)
    if pace is None:
        pace = _of_loops[loop] = _Pace(loop)
    if not pace.may_begin():
        await pace.turn()
