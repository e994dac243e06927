"""The memory that reads and uploads of one process share, so that no number of them exhausts it.

A request begins when the least that it needs is free, and holds that to its end. So a request that has begun
never waits for memory. While at least half of the budget is free it may take more: a read to prefetch, an
upload for larger segments.

There are three queues, served in this order: small uploads, reads, large uploads. Each has a guaranteed part
of the budget. So a small upload passes large ones that wait, and a read that an upload depends on never waits
for uploads.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

from overspill_service.errors import Overloaded

if TYPE_CHECKING:
    from collections.abc import Sequence

QUEUE_SECONDS: Final = 5.0
"""How long a request waits for memory before it is refused."""
RETRY_SECONDS: Final = 2
"""After how many seconds a refused request may try again."""
SMALL_UPLOAD_BYTES: Final = 2**20
"""An upload that needs at most this many bytes is a small one."""
WAITING_BYTES: Final = 256 * 1024
"""The most bytes of its body that an upload holds while it waits."""
WAITING_FRACTION: Final = 8
"""Waiting uploads of one queue may hold at most 1/8 of the budget. More are refused at once."""


class MemoryBudget:
    """`size` bytes to share. Belongs to one event loop."""

    def __init__(self, size: int) -> None:
        self.size = self.free = size
        largest_grant = max(1, size // WAITING_FRACTION // WAITING_BYTES)
        self.small = MemoryQueue(self, "small upload", size // 16, largest_grant)
        self.reads = MemoryQueue(self, "read", size // 4)
        self.large = MemoryQueue(self, "upload", size // 4, largest_grant)
        self._queues = self.small, self.reads, self.large
        self.missing = sum(queue.missing for queue in self._queues)
        """Guaranteed bytes that their queues do not hold now."""
        for queue in self._queues:
            queue.largest_grant = size - sum(other.guaranteed for other in self._queues if other is not queue)

    def queue_for(self, least: int) -> MemoryQueue:
        """Return the queue for an upload that needs so many bytes."""
        return self.small if least <= SMALL_UPLOAD_BYTES else self.large

    def available_to(self, queue: MemoryQueue) -> int:
        """Return the bytes that a queue may take now: all free ones that others are not guaranteed."""
        return self.free - (self.missing - queue.missing)

    def try_take(self, queue: MemoryQueue, amount: int) -> bool:
        """Take more than the least, if nobody waits and half of the budget stays free."""
        if self.has_waiting or self.free - amount < self.size // 2:
            return False
        self.take(queue, amount)
        return True

    def take(self, queue: MemoryQueue, amount: int) -> None:
        self.free -= amount
        self._hold(queue, amount)

    def give_back(self, queue: MemoryQueue, amount: int) -> None:
        """Give bytes back, and grant them to requests that wait."""
        self._hold(queue, -amount)
        self.free += amount
        if self.has_waiting:
            for each in self._queues:
                each.grant_waiting()

    def _hold(self, queue: MemoryQueue, amount: int) -> None:
        self.missing -= queue.missing
        queue.held += amount
        queue.missing = max(0, queue.guaranteed - queue.held)
        self.missing += queue.missing

    @property
    def has_waiting(self) -> bool:
        """Whether any request waits."""
        return bool(self.small.waiting or self.reads.waiting or self.large.waiting)


class MemoryQueue:
    """Requests of one kind, first come, first served. `guaranteed` bytes are for them alone."""

    def __init__(
        self, budget: MemoryBudget, name: str, guaranteed: int, max_waiting: int | None = None
    ) -> None:
        self._budget, self._name, self.guaranteed, self._max_waiting = budget, name, guaranteed, max_waiting
        self.held = 0
        self.missing = guaranteed
        """Guaranteed bytes that the queue does not hold now. No other queue may take them."""
        self.largest_grant = budget.size
        """The most bytes that one request may hold while it is alone."""
        self.waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    def shares(self, *least: int) -> Holding:
        """Wait for memory, and hold it as shares of at least so many bytes each, in an `async with` block.

        A request larger than the budget gets all of it. Raises `Overloaded` after `QUEUE_SECONDS`, or at once
        if too many requests wait.
        """
        return Holding(self, least)

    def try_take(self, amount: int) -> bool:
        return self._budget.try_take(self, amount)

    def give_back(self, amount: int) -> None:
        self._budget.give_back(self, amount)

    def grant_waiting(self) -> None:
        """Let the first waiting requests begin, as many as there is memory for."""
        while self.waiting and self.waiting[0][0] <= self._budget.available_to(self):
            wanted, turn = self.waiting.popleft()
            if not turn.done():
                self._budget.take(self, wanted)
                turn.set_result(None)

    def try_begin(self, amount: int) -> bool:
        """Take the least that a request needs, if nobody waits and there is so much."""
        if self.waiting or amount > self._budget.available_to(self):
            return False
        self._budget.take(self, amount)
        return True

    async def wait_for(self, amount: int) -> None:
        """Wait for the least that a request needs. Raises `Overloaded`."""
        if self._max_waiting is not None and len(self.waiting) >= self._max_waiting:
            raise Overloaded(f"{len(self.waiting)} {self._name}s wait for memory already", RETRY_SECONDS)
        turn = asyncio.get_running_loop().create_future()
        self.waiting.append((amount, turn))
        try:
            async with asyncio.timeout(QUEUE_SECONDS):
                await turn
        except BaseException as error:
            self._leave(amount, turn)
            if isinstance(error, TimeoutError):
                raise Overloaded(
                    f"no memory for one more {self._name} came free within {QUEUE_SECONDS:g} s", RETRY_SECONDS
                ) from error
            raise

    def _leave(self, amount: int, turn: asyncio.Future[None]) -> None:
        """Leave the queue. Give back memory that was granted at the same moment."""
        if (amount, turn) in self.waiting:
            self.waiting.remove((amount, turn))
            self.give_back(0)  # a smaller request may have waited behind this one
        elif not turn.cancelled():
            self.give_back(amount)


class Holding:
    """The memory of one request, within a block."""

    def __init__(self, queue: MemoryQueue, least: Sequence[int]) -> None:
        self._queue, self._shares = queue, [MemoryShare(queue, each) for each in least]
        # Else a request larger than the budget would wait for ever.
        self._amount = min(sum(least), queue.largest_grant)

    async def __aenter__(self) -> Sequence[MemoryShare]:
        if not self._queue.try_begin(self._amount):
            await self._queue.wait_for(self._amount)
        return self._shares

    async def __aexit__(self, *_: object) -> None:
        for share in self._shares:
            share.close()
        self._queue.give_back(self._amount)


class MemoryShare:
    """The memory that a request holds for one purpose: `least` bytes always, more if there is plenty."""

    def __init__(self, queue: MemoryQueue, least: int) -> None:
        self._queue, self.least = queue, least
        self._used = self._extra = 0

    def try_use(self, amount: int) -> bool:
        """Account for bytes that will be held. Return False if they are too many now.

        Up to `least` bytes are never too many.
        """
        missing = self._used + amount - self.least - self._extra
        if missing > 0:
            if not self._queue.try_take(missing):
                return False
            self._extra += missing
        self._used += amount
        return True

    def release(self, amount: int) -> None:
        """Account for bytes that are no longer held."""
        self._used -= amount
        spare = self._extra - max(self._used - self.least, 0)
        if spare > 0:
            self._extra -= spare
            self._queue.give_back(spare)

    def close(self) -> None:
        """Give back what is held beyond `least`."""
        if self._extra:
            self._queue.give_back(self._extra)
        self._used = self._extra = 0
