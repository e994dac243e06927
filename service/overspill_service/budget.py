"""Memory that the reads of one process share, so that no number of slow readers exhausts it.

A read begins once the least that it needs is free, and holds that until it ends: what has begun never
waits. While at least half of all is free, it may take more, to fetch and decode ahead.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from overspill_service.errors import DeadlineExceeded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

QUEUE_SECONDS: Final = 5.0
"""How long a read waits for memory before it is sent away."""


class Budget:
    """`size` bytes to share. Belongs to one event loop."""

    def __init__(self, size: int) -> None:
        self.size = self.free = size
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def shares(self, *least: int) -> AsyncIterator[Sequence[Share]]:
        """Shares of at least so many bytes each, for one read. A read larger than all has all.

        Waits in line for them. Raises `DeadlineExceeded` after `QUEUE_SECONDS`.
        """
        amount = min(sum(least), self.size)
        await self._wait_for(amount)
        shares = [Share(self, each) for each in least]
        try:
            yield shares
        finally:
            for share in shares:
                share.close()
            self.give(amount)

    def try_take(self, amount: int) -> bool:
        """Take more than the least, where half is left for those who have nothing yet."""
        if self._waiting or self.free - amount < self.size // 2:
            return False
        self.free -= amount
        return True

    def give(self, amount: int) -> None:
        """Give bytes back; the first in line have them next."""
        self.free += amount
        while self._waiting and self._waiting[0][0] <= self.free:
            wanted, turn = self._waiting.popleft()
            if not turn.done():
                self.free -= wanted
                turn.set_result(None)

    async def _wait_for(self, amount: int) -> None:
        if not self._waiting and amount <= self.free:
            self.free -= amount
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((amount, turn))
        try:
            async with asyncio.timeout(QUEUE_SECONDS):
                await turn
        except BaseException as error:
            self._give_up(amount, turn)
            if isinstance(error, TimeoutError):
                raise DeadlineExceeded(
                    f"no memory for one more read came free within {QUEUE_SECONDS:g} s; ask again"
                ) from error
            raise

    def _give_up(self, amount: int, turn: asyncio.Future[None]) -> None:
        """Leave the line; give back what was granted in the same moment."""
        if (amount, turn) in self._waiting:
            self._waiting.remove((amount, turn))
            self.give(0)  # to whom the one that left stood in the way
        elif not turn.cancelled():
            self.give(amount)


class Share:
    """What a read holds of one kind: `least` bytes without asking, more where there is plenty."""

    def __init__(self, budget: Budget, least: int) -> None:
        self._budget, self._least = budget, least
        self._used = self._extra = 0

    def try_use(self, amount: int) -> bool:
        """Account for bytes about to be held; false where they are too many now.

        The first bytes that are held are never too many, up to `least`.
        """
        missing = self._used + amount - self._least - self._extra
        if missing > 0:
            if not self._budget.try_take(missing):
                return False
            self._extra += missing
        self._used += amount
        return True

    def release(self, amount: int) -> None:
        """Account for bytes that are no longer held."""
        self._used -= amount
        spare = self._extra - max(self._used - self._least, 0)
        if spare > 0:
            self._extra -= spare
            self._budget.give(spare)

    def close(self) -> None:
        """Give back what is held beyond `least`."""
        self._budget.give(self._extra)
        self._used = self._extra = 0
