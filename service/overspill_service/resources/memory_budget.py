"""The memory that reads and uploads of one process share, so that no number of them exhausts it.

A request begins when the least that it needs is free, and holds that to its end. So a request that has begun
never waits for memory. While at least half of the budget is free it may take more: a read to prefetch, an
upload for larger segments.

There are three queues, served in this order: small uploads, reads, large uploads. Each has a guaranteed part
of the budget. So a small upload passes large ones that wait, and a read that an upload depends on never waits
for uploads.

    guaranteed        of each queue a tenant may have half
    the rest          of all queues together a tenant may have half

So one tenant leaves as much to others as it can take. In a queue, the waiting tenant that holds the least of
it comes first.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
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
        self.buffers = MemoryQueue(self, "live capture", 0)
        """Accepted bytes of live captures, for those who read or end one. They may wait for `reads` later."""
        self._queues = self.small, self.reads, self.large, self.buffers
        self.missing = sum(queue.missing for queue in self._queues)
        """Guaranteed bytes that their queues do not hold now."""
        self._unguaranteed = size - self.missing
        for queue in self._queues:
            queue.largest_grant = size - sum(other.guaranteed for other in self._queues if other is not queue)

    def queue_for(self, minimum: int) -> MemoryQueue:
        """Return the queue for an upload that needs this much memory."""
        return self.small if minimum <= SMALL_UPLOAD_BYTES else self.large

    def available_to(self, queue: MemoryQueue) -> int:
        """Return the bytes that a queue may take now: all free ones that others are not guaranteed."""
        return self.free - (self.missing - queue.missing)

    def is_allowed(self, queue: MemoryQueue, tenant: str, amount: int) -> bool:
        """Return whether a tenant may hold this many bytes more of a queue, however many are free.

        A tenant that holds nothing of the queue may make any request: otherwise a large one would wait
        without end.
        """
        if not queue.held_by[tenant]:
            return True
        beyond = sum(each.beyond(tenant) for each in self._queues) - queue.beyond(tenant)
        return beyond + queue.beyond(tenant, amount) <= self._unguaranteed // 2

    def try_take(self, queue: MemoryQueue, tenant: str, amount: int) -> bool:
        """Take more than the least, if nobody waits and half of the budget stays free."""
        if self.has_waiting or self.free - amount < self.size // 2:
            return False
        if not self.is_allowed(queue, tenant, amount):
            return False
        self.take(queue, tenant, amount)
        return True

    def take(self, queue: MemoryQueue, tenant: str, amount: int) -> None:
        self.free -= amount
        self._hold(queue, tenant, amount)

    def give_back(self, queue: MemoryQueue, tenant: str, amount: int) -> None:
        """Give bytes back, and grant them to requests that wait."""
        self._hold(queue, tenant, -amount)
        self.free += amount
        self.grant_waiting()

    def grant_waiting(self) -> None:
        if self.has_waiting:
            for each in self._queues:
                each.grant_waiting()

    def _hold(self, queue: MemoryQueue, tenant: str, amount: int) -> None:
        self.missing -= queue.missing
        queue.note(tenant, amount)
        queue.missing = max(0, queue.guaranteed - queue.held)
        self.missing += queue.missing

    @property
    def has_waiting(self) -> bool:
        """Whether any request waits."""
        return any(queue.waiting for queue in self._queues)


class MemoryQueue:
    """Requests of one kind, a tenant's in their order. `guaranteed` bytes are for them alone."""

    def __init__(
        self, budget: MemoryBudget, name: str, guaranteed: int, max_waiting: int | None = None
    ) -> None:
        """`max_waiting`: of all tenants. One tenant may have half of them."""
        self._budget, self._name, self.guaranteed, self._max_waiting = budget, name, guaranteed, max_waiting
        self.held = 0
        self.held_by: Counter[str] = Counter()
        self.missing = guaranteed
        """Guaranteed bytes that the queue does not hold now. No other queue may take them."""
        self.largest_grant = budget.size
        """The most bytes that one request may hold while it is alone."""
        self._count = 0
        self.waiting: dict[str, deque[tuple[int, asyncio.Future[None]]]] = {}
        """By tenant. None of them is empty."""

    def shares(self, tenant: str, *minimums: int) -> Holding:
        """Wait for memory, and hold it as shares of at least this size, in an `async with` block.

        A request larger than the budget gets all of it. Raises `Overloaded` after `QUEUE_SECONDS`, or at once
        if too many requests wait.
        """
        return Holding(self, tenant, minimums)

    def beyond(self, tenant: str, more: int = 0) -> int:
        """Return the bytes that a tenant would hold with `more`, beyond its half of what is guaranteed."""
        return max(0, self.held_by[tenant] + more - self.guaranteed // 2)

    def note(self, tenant: str, amount: int) -> None:
        """Count bytes that a tenant takes, or gives back."""
        self.held += amount
        self.held_by[tenant] += amount
        if not self.held_by[tenant]:
            del self.held_by[tenant]

    def try_take(self, tenant: str, amount: int) -> bool:
        return self._budget.try_take(self, tenant, amount)

    def give_back(self, tenant: str, amount: int) -> None:
        self._budget.give_back(self, tenant, amount)

    def grant_waiting(self) -> None:
        """Let the first waiting requests begin, as many as there is memory for."""
        while (tenant := self._next_tenant()) is not None:
            amount, granted = self.waiting[tenant][0]
            if not granted.done():
                if amount > self._budget.available_to(self):
                    return
                self._budget.take(self, tenant, amount)
                granted.set_result(None)
            self._remove(tenant, amount, granted)

    def _next_tenant(self) -> str | None:
        """Return the tenant that holds the least, of those that wait for others and not for themselves."""
        ready = [
            tenant
            for tenant, queue in self.waiting.items()
            if queue[0][1].done() or self._budget.is_allowed(self, tenant, queue[0][0])
        ]
        return min(ready, key=self.held_by.__getitem__, default=None)

    def try_begin(self, tenant: str, amount: int) -> bool:
        """Take the least that a request needs, if nobody waits and there is so much."""
        if self.waiting or amount > self._budget.available_to(self):
            return False
        if not self._budget.is_allowed(self, tenant, amount):
            return False
        self._budget.take(self, tenant, amount)
        return True

    async def wait_for(self, tenant: str, amount: int) -> None:
        """Wait for the least that a request needs. Raises `Overloaded`."""
        self._require_room(tenant)
        granted = asyncio.get_running_loop().create_future()
        self.waiting.setdefault(tenant, deque()).append((amount, granted))
        self._count += 1
        self.grant_waiting()  # those before it may wait for what they hold themselves
        try:
            async with asyncio.timeout(QUEUE_SECONDS):
                await granted
        except BaseException as error:
            self._leave(tenant, amount, granted)
            if isinstance(error, TimeoutError):
                raise Overloaded(
                    f"no memory for one more {self._name} came free within {QUEUE_SECONDS:g} s", RETRY_SECONDS
                ) from error
            raise

    def _require_room(self, tenant: str) -> None:
        """Raise `Overloaded` if too many wait."""
        limit = self._max_waiting
        if limit is None:
            return
        own = len(self.waiting.get(tenant, ()))
        if self._count >= limit or own >= (limit + 1) // 2:
            raise Overloaded(f"{max(own, self._count)} {self._name}s wait for memory already", RETRY_SECONDS)

    def _leave(self, tenant: str, amount: int, granted: asyncio.Future[None]) -> None:
        """Leave the queue. Give back memory that was granted at the same moment."""
        if (amount, granted) in self.waiting.get(tenant, ()):
            self._remove(tenant, amount, granted)
            self._budget.grant_waiting()  # a smaller request may have waited behind this one
        elif not granted.cancelled():
            self.give_back(tenant, amount)

    def _remove(self, tenant: str, amount: int, granted: asyncio.Future[None]) -> None:
        self.waiting[tenant].remove((amount, granted))
        self._count -= 1
        if not self.waiting[tenant]:
            del self.waiting[tenant]


class Holding:
    """The memory of one request, within a block."""

    def __init__(self, queue: MemoryQueue, tenant: str, minimums: Sequence[int]) -> None:
        self._queue, self._tenant = queue, tenant
        self._shares = [MemoryShare(queue, tenant, each) for each in minimums]
        # Else a request larger than the budget would wait for ever.
        self._amount = min(sum(minimums), queue.largest_grant)

    async def __aenter__(self) -> Sequence[MemoryShare]:
        if not self._queue.try_begin(self._tenant, self._amount):
            await self._queue.wait_for(self._tenant, self._amount)
        return self._shares

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for share in self._shares:
            share.close()
        self._queue.give_back(self._tenant, self._amount)


class MemoryShare:
    """The memory that a request holds for one purpose: `minimum` bytes always, more if there is plenty."""

    def __init__(self, queue: MemoryQueue, tenant: str, minimum: int) -> None:
        self._queue, self._tenant, self.minimum = queue, tenant, minimum
        self._used = self._extra = 0

    def try_use(self, amount: int) -> bool:
        """Account for bytes that will be held. Return False if they are too many now.

        Up to `minimum` bytes are never too many.
        """
        missing = self._used + amount - self.minimum - self._extra
        if missing > 0:
            if not self._queue.try_take(self._tenant, missing):
                return False
            self._extra += missing
        self._used += amount
        return True

    def release(self, amount: int) -> None:
        """Account for bytes that are no longer held."""
        self._used -= amount
        spare = self._extra - max(self._used - self.minimum, 0)
        if spare > 0:
            self._extra -= spare
            self._queue.give_back(self._tenant, spare)

    def close(self) -> None:
        """Give back what is held beyond the first `minimum`."""
        if self._extra:
            self._queue.give_back(self._tenant, self._extra)
        self._used = self._extra = 0
