"""Bounds how many outputs are on their way to one service, or one disk, at once. All others wait fairly.

An output that waits costs its own memory and a few small objects. It is encoded, hashed, compressed and sent
once it has a slot. So a burst of any size takes the memory and the connections of a few outputs. The objects
are few because the garbage collector stops the agent's event loop while it looks at those of all outputs.
"""

from __future__ import annotations

import asyncio
import sys
import weakref
from functools import partial
from typing import TYPE_CHECKING, Final

from overspill.execution.fair_queue import FairQueue
from overspill.text import quantities

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future
    from collections.abc import Callable, Hashable

MOST: Final = 24
"""Outputs on their way at the same time."""
MOST_BYTES: Final = 64 * 1024 * 1024
"""Their bytes together; one that is larger goes alone."""
MOST_LIVE: Final = 8
"""Pieces of streams that go on, on their way at the same time."""
QUEUE_SECONDS: Final = 60.0
"""Seconds that an output waits for a slot, if the spool can keep it instead."""


class Overfull(Exception):
    """An output gets no slot. The message says why, in words for a notice."""


class Slots:
    """The slots of one service or disk: `most` outputs with `most_bytes` together. For the loop thread alone.

    At most `most_waiting` bytes wait for a slot.
    """

    def __init__(self, most: int = MOST, most_bytes: int = MOST_BYTES, *, most_waiting: int) -> None:
        self._most, self._most_bytes, self._most_waiting = most, most_bytes, most_waiting
        self._taken = 0
        self._taken_bytes = 0
        self._queue: FairQueue[tuple[Future[None], int]] = FairQueue()

    @property
    def waiting(self) -> int:
        """How many outputs wait."""
        return len(self._queue)

    async def take(self, flow: Hashable, size: int, seconds: float | None) -> Callable[[], None]:
        """Take a slot for an output of `size` bytes, and return what releases it.

        Waits `seconds` at most, or for ever if None. Raises `Overfull` after that time, and at once if too
        many bytes wait already.
        """
        if not self._queue and self._fits(size):
            self._hold(size)
            return partial(self._release, size)
        if self._queue.size + size > self._most_waiting:
            raise Overfull(f"{quantities.readable_size(self._queue.size)} of outputs wait already")
        loop = asyncio.get_running_loop()
        granted: Future[None] = loop.create_future()
        queued = self._queue.push((granted, size), flow, size)
        timer = None if seconds is None else loop.call_later(seconds, _refuse, granted, seconds)
        try:
            await granted
        except BaseException:
            self._queue.remove(queued)
            if granted.done() and not granted.cancelled() and granted.exception() is None:
                self._release(size)  # the slot came as the caller was cancelled
            raise
        finally:
            if timer is not None:
                timer.cancel()
        return partial(self._release, size)

    def _release(self, size: int) -> None:
        self._taken -= 1
        self._taken_bytes -= size
        self._hand_out()

    def _fits(self, size: int) -> bool:
        is_room = self._taken < self._most and self._taken_bytes + size <= self._most_bytes
        return is_room or not self._taken

    def _hold(self, size: int) -> None:
        self._taken += 1
        self._taken_bytes += size

    def _hand_out(self) -> None:
        """Give the free slots to the outputs that are first in the queue."""
        while self._queue:
            granted, size = self._queue.first()
            if not self._fits(size):
                return
            self._queue.pop()
            if not granted.done():
                self._hold(size)
                granted.set_result(None)


def _refuse(granted: Future[None], seconds: float) -> None:
    if not granted.done():
        granted.set_exception(Overfull(f"the outputs before it took more than {seconds:g} s"))


_of_loops: Final[weakref.WeakKeyDictionary[AbstractEventLoop, weakref.WeakValueDictionary[str, Slots]]] = (
    weakref.WeakKeyDictionary()
)


def slots_of(target: str, most_waiting: int, most: int = MOST) -> Slots:
    """Return the slots that all guards of this process share, for a service or a folder that is in use."""
    slots = _of_loops.setdefault(asyncio.get_running_loop(), weakref.WeakValueDictionary())
    return slots.setdefault(target, Slots(most, most_waiting=most_waiting))


def live_slots_of(url: str) -> Slots:
    """Return those for pieces of streams that go on: they do not keep the outputs that have ended waiting."""
    return slots_of(f"live {url}", sys.maxsize, MOST_LIVE)
