"""Bounds how many outputs are on their way to one service, or one disk, at once. All others wait fairly.

An output that waits costs its own memory and a few small objects. It is encoded, hashed, compressed and sent
once it has a slot. So a burst of any size takes the memory and the connections of a few outputs. The objects
are few because the garbage collector stops the agent's event loop while it looks at those of all outputs.
"""

from __future__ import annotations

import asyncio
import sys
import weakref
from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from overspill.execution.fair_queue import FairQueue
from overspill.text import quantities

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future, TimerHandle
    from collections.abc import Callable, Hashable

    from overspill.execution.fair_queue import Queued

MAX_OUTPUTS: Final = 24
"""Outputs on their way at the same time."""
MAX_BYTES: Final = 64 * 1024 * 1024
"""Their bytes together; one that is larger goes alone."""
MAX_LIVE: Final = 8
"""Pieces of growing streams on their way at the same time."""
QUEUE_SECONDS: Final = 60.0
"""Seconds that an output waits for a slot, if the spool can keep it instead."""


class Overfull(Exception):
    """An output gets no slot. The message says why, in words for a notice."""


class Waiter(Protocol):
    """An output's wait for a slot. Its methods raise nothing."""

    def granted(self, release: Callable[[], None]) -> bool:
        """Take the slot, which `release` gives back. Return False if it is not needed any more."""

    def refused(self, reason: str) -> None:
        """Learn that no slot came within `QUEUE_SECONDS`."""


class Slots:
    """The slots of one service or disk: `limit` outputs with `MAX_BYTES` together. For the loop thread alone.

    At most `max_waiting` bytes wait for a slot.
    """

    def __init__(self, limit: int = MAX_OUTPUTS, *, max_waiting: int) -> None:
        self._limit, self._max_waiting = limit, max_waiting
        self._taken = 0
        self._taken_bytes = 0
        self._queue: FairQueue[Waiter] = FairQueue()
        self._deadlines: OrderedDict[Queued[Waiter], float] = OrderedDict()
        """The loop's time at which each output that is not patient gives up, in the order of these times."""
        self._timer: TimerHandle | None = None

    @property
    def waiting(self) -> int:
        """The number of outputs that wait."""
        return len(self._queue)

    def ask(
        self, waiter: Waiter, flow: Hashable, size: int, *, is_patient: bool = False
    ) -> Queued[Waiter] | None:
        """Grant a slot for an output of `size` bytes, now or later. Return its place if it has to wait.

        One that `is_patient` waits without a limit; others wait for `QUEUE_SECONDS`. Raises `Overfull` if too
        many bytes wait already.
        """
        if not self._queue and self._fits(size):
            self._grant(waiter, size)
            return None
        if self._queue.size + size > self._max_waiting:
            raise Overfull(f"{quantities.readable_size(self._queue.size)} of outputs wait already")
        queued = self._queue.push(waiter, flow, size)
        if not is_patient:
            self._set_deadline(queued)
        return queued

    def leave(self, queued: Queued[Waiter]) -> None:
        """Remove a waiting output from the queue, if it is still there."""
        self._queue.remove(queued)
        self._forget_deadline(queued)

    async def take(self, flow: Hashable, size: int) -> Callable[[], None]:
        """Wait for a slot for an output of `size` bytes, and return a function that releases it.

        Raises `Overfull`.
        """
        taker = _Taker()
        queued = self.ask(taker, flow, size, is_patient=True)
        try:
            return await taker.slot
        except BaseException:
            if queued is not None:
                self.leave(queued)
            if taker.slot.done() and not taker.slot.cancelled():
                taker.slot.result()()  # the slot came as the caller was cancelled
            raise

    def _release(self, size: int) -> None:
        self._give_back(size)
        while self._queue and self._fits(self._queue.first().size):  # those that are first in the queue
            queued = self._queue.first()
            waiter = self._queue.pop()
            self._forget_deadline(queued)
            self._grant(waiter, queued.size)

    def _fits(self, size: int) -> bool:
        is_room = self._taken < self._limit and self._taken_bytes + size <= MAX_BYTES
        return is_room or not self._taken

    def _grant(self, waiter: Waiter, size: int) -> None:
        self._taken += 1
        self._taken_bytes += size
        if not waiter.granted(partial(self._release, size)):
            self._give_back(size)

    def _give_back(self, size: int) -> None:
        self._taken -= 1
        self._taken_bytes -= size

    def _set_deadline(self, queued: Queued[Waiter]) -> None:
        loop = asyncio.get_running_loop()
        deadline = self._deadlines[queued] = loop.time() + QUEUE_SECONDS
        if self._timer is None:  # one for all that wait
            self._timer = loop.call_at(deadline, self._refuse_late)

    def _forget_deadline(self, queued: Queued[Waiter]) -> None:
        self._deadlines.pop(queued, None)
        if not self._deadlines and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse_late(self) -> None:
        """Refuse those that have waited too long, and come again when the next one has."""
        loop, self._timer = asyncio.get_running_loop(), None
        while self._deadlines:
            queued, deadline = next(iter(self._deadlines.items()))
            if deadline > loop.time():
                self._timer = loop.call_at(deadline, self._refuse_late)
                return
            waiter = queued.item
            self.leave(queued)
            if waiter is not None:
                waiter.refused(f"the outputs before it took more than {QUEUE_SECONDS:g} s")


class _Taker:
    """A coroutine that waits for a slot."""

    def __init__(self) -> None:
        self.slot: Future[Callable[[], None]] = asyncio.get_running_loop().create_future()

    def granted(self, release: Callable[[], None]) -> bool:
        """Let the coroutine go on, unless it was cancelled."""
        if self.slot.done():
            return False
        self.slot.set_result(release)
        return True

    def refused(self, reason: str) -> None:
        """Never called: it waits without a limit."""


_of_loops: Final[weakref.WeakKeyDictionary[AbstractEventLoop, weakref.WeakValueDictionary[str, Slots]]] = (
    weakref.WeakKeyDictionary()
)


def slots_of(target: str, max_waiting: int, limit: int = MAX_OUTPUTS) -> Slots:
    """Return the slots that all guards of this process share, for a service or a folder that is in use."""
    slots = _of_loops.setdefault(asyncio.get_running_loop(), weakref.WeakValueDictionary())
    return slots.setdefault(target, Slots(limit, max_waiting=max_waiting))


def live_slots_of(url: str) -> Slots:
    """Return the slots for pieces of growing streams. Finished outputs have others, so these do not wait."""
    return slots_of(f"live {url}", sys.maxsize, MAX_LIVE)
