"""Memory that reads and uploads of one process share, so that no number of them exhausts it.

A request begins once the least that it needs is free, and holds that until it ends: what has begun never
waits. While at least half of all is free, it may take more: a read to work ahead, an upload for larger
segments.

There are three lines, served in this order: small uploads, reads, large uploads. Each is sure of a part of
all. So a small upload passes by large ones that wait, and a read that an upload needs waits for no upload.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from overspill_service.errors import Overloaded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

QUEUE_SECONDS: Final = 5.0
"""How long a request waits for memory before it is sent away."""
RETRY_SECONDS: Final = 2
"""After how long one that was sent away may ask again."""
SMALL_UPLOAD_BYTES: Final = 2**20
"""An upload that needs no more bytes than this is a small one."""
WAITING_BYTES: Final = 256 * 1024
"""The most bytes of its body that an upload holds while it waits."""
WAITING_FRACTION: Final = 8
"""Uploads that wait hold one part in so many of all at most; more are sent away at once."""


class MemoryBudget:
    """`size` bytes to share. Belongs to one event loop."""

    def __init__(self, size: int) -> None:
        self.size = self.free = size
        largest_grant = max(1, size // WAITING_FRACTION // WAITING_BYTES)
        self.small = MemoryQueue(self, "small upload", size // 16, largest_grant)
        self.reads = MemoryQueue(self, "read", size // 4)
        self.large = MemoryQueue(self, "upload", size // 4, largest_grant)
        self._queues = self.small, self.reads, self.large

    def queue_for(self, least: int) -> MemoryQueue:
        """The line in which an upload waits that needs so many bytes."""
        return self.small if least <= SMALL_UPLOAD_BYTES else self.large

    def largest_grant(self, queue: MemoryQueue) -> int:
        """The bytes that one request of a line may have when no other is there."""
        return self.size - sum(other.guaranteed for other in self._queues if other is not queue)

    def available_to(self, queue: MemoryQueue) -> int:
        """The bytes that a line may take now: all that is free but what the others are sure of."""
        return self.free - sum(other.missing for other in self._queues if other is not queue)

    def try_take(self, queue: MemoryQueue, amount: int) -> bool:
        """Take more than the least, where half is left for those who have nothing yet."""
        if self.has_waiting or self.free - amount < self.size // 2:
            return False
        self.take(queue, amount)
        return True

    def take(self, queue: MemoryQueue, amount: int) -> None:
        self.free -= amount
        queue.held += amount

    def give_back(self, queue: MemoryQueue, amount: int) -> None:
        """Give bytes back; those who wait have them next."""
        queue.held -= amount
        self.free += amount
        if self.has_waiting:
            for each in self._queues:
                each.grant_waiting()

    @property
    def has_waiting(self) -> bool:
        """Whether anybody waits."""
        return any(queue.waiting for queue in self._queues)


class MemoryQueue:
    """Requests of one kind, served in the order in which they came. A line is sure of `guaranteed` bytes."""

    def __init__(
        self, budget: MemoryBudget, name: str, guaranteed: int, max_waiting: int | None = None
    ) -> None:
        self._budget, self._name, self.guaranteed, self._max_waiting = budget, name, guaranteed, max_waiting
        self.held = 0
        self.waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def missing(self) -> int:
        """Bytes that nobody else may take: what this line is sure of and does not hold."""
        return max(0, self.guaranteed - self.held)

    @asynccontextmanager
    async def shares(self, *least: int) -> AsyncIterator[Sequence[MemoryShare]]:
        """Shares of at least so many bytes each, for one request. One larger than all has all.

        Waits in line for them. Raises `Overloaded` after `QUEUE_SECONDS`, or at once where too many wait.
        """
        amount = min(sum(least), self._budget.largest_grant(self))
        await self._wait_for(amount)
        shares = [MemoryShare(self, each) for each in least]
        try:
            yield shares
        finally:
            for share in shares:
                share.close()
            self.give_back(amount)

    def try_take(self, amount: int) -> bool:
        return self._budget.try_take(self, amount)

    def give_back(self, amount: int) -> None:
        self._budget.give_back(self, amount)

    def grant_waiting(self) -> None:
        """Let the first of those who wait begin, as many as there is room for."""
        while self.waiting and self.waiting[0][0] <= self._budget.available_to(self):
            wanted, turn = self.waiting.popleft()
            if not turn.done():
                self._budget.take(self, wanted)
                turn.set_result(None)

    async def _wait_for(self, amount: int) -> None:
        if not self.waiting and amount <= self._budget.available_to(self):
            self._budget.take(self, amount)
            return
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
        """Leave the line; give back what was granted in the same moment."""
        if (amount, turn) in self.waiting:
            self.waiting.remove((amount, turn))
            self.give_back(0)  # to whom the one that left stood in the way
        elif not turn.cancelled():
            self.give_back(amount)


class MemoryShare:
    """What a request holds of one kind: `least` bytes without asking, more where there is plenty."""

    def __init__(self, queue: MemoryQueue, least: int) -> None:
        self._queue, self.least = queue, least
        self._used = self._extra = 0

    def try_use(self, amount: int) -> bool:
        """Account for bytes about to be held; false where they are too many now.

        The first bytes that are held are never too many, up to `least`.
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
        self._queue.give_back(self._extra)
        self._used = self._extra = 0
