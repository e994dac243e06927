"""Places for requests of one kind, shared among tenants: none holds more than its share."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from overspill_service.errors import TooManyRequests

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

WAIT_SECONDS: Final = 5.0
"""How long a request waits for a place before it is refused."""
ANSWER_BYTES: Final = 2 * 2**20
"""Bytes of memory that a long answer to a slow client holds, about: a frame, stored and decoded."""

PATTERN_BYTES: Final = 256 * 1024
"""Bytes of memory that a large compiled pattern holds, with what it remembers of its searches."""

MAX_FOLLOWERS: Final = 10_000
"""Requests of one process that follow captures or wait for them."""


def answer_places(memory: int) -> int:
    """Return how many long answers go out at once, so that they hold about half of `memory` bytes at most."""
    return max(2, memory // 2 // ANSWER_BYTES)


def pattern_places(memory: int) -> int:
    """Return how many large patterns may be waited for, which hold about an eighth of `memory` bytes."""
    return max(2, memory // 8 // PATTERN_BYTES)


class FairPlaces:
    """`total` places, of which a tenant holds at most `share`. Belongs to one event loop.

    A free place goes to the waiting tenant that holds the fewest, and of its requests to the first.
    """

    def __init__(
        self, total: int, label: str, share: int = 0, *, wait_seconds: float | None = WAIT_SECONDS
    ) -> None:
        """`label` names the kind of requests in a refusal. Without a `share` it is half of them.

        With `wait_seconds` None, a request waits as long as its caller does.
        """
        self.total = self.free = total
        self._label, self.wait_seconds = label, wait_seconds
        self.share = share or (total + 1) // 2
        """The most places of one tenant."""
        self._held: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def hold(self, tenant: str) -> AsyncIterator[None]:
        """Hold a place within the block. Raises `TooManyRequests` if there is none for `wait_seconds`."""
        await self._take(tenant)
        try:
            yield
        finally:
            self._give_back(tenant)

    async def _take(self, tenant: str) -> None:
        if self.free and self._held[tenant] < self.share:  # then no other request could have the place
            self._grant(tenant)
            return
        granted = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant, deque()).append(granted)
        try:
            async with asyncio.timeout(self.wait_seconds):
                await granted
        except (TimeoutError, asyncio.CancelledError) as error:
            self._leave(tenant, granted)
            if isinstance(error, TimeoutError):
                is_greedy = self._held[tenant] >= self.share
                raise TooManyRequests(self._label, self.share if is_greedy else self.total) from error
            raise

    def _leave(self, tenant: str, granted: asyncio.Future[None]) -> None:
        """Leave the queue. Give back a place that was granted at the same moment."""
        if granted.done() and not granted.cancelled():
            self._give_back(tenant)
        elif granted in self._waiting.get(tenant, ()):  # else a place that came free has passed it over
            self._waiting[tenant].remove(granted)
            self._forget_idle(tenant)

    def _grant(self, tenant: str) -> None:
        self.free -= 1
        self._held[tenant] += 1

    def _give_back(self, tenant: str) -> None:
        self.free += 1
        self._held[tenant] -= 1
        while self.free and (ready := [each for each in self._waiting if self._held[each] < self.share]):
            chosen = min(ready, key=self._held.__getitem__)
            granted = self._waiting[chosen].popleft()
            self._forget_idle(chosen)
            if not granted.done():
                self._grant(chosen)
                granted.set_result(None)
        self._forget_idle(tenant)

    def _forget_idle(self, tenant: str) -> None:
        if not self._waiting.get(tenant):
            self._waiting.pop(tenant, None)
        if not self._held[tenant]:
            del self._held[tenant]


@dataclass
class Places:
    """The places of one process for the requests that last or hold much memory."""

    uploads: FairPlaces
    answers: FairPlaces
    """For long answers."""
    followers: FairPlaces
    patterns: FairPlaces
    """For waits whose pattern takes much memory."""

    @classmethod
    def of(cls, max_uploads: int, memory: int) -> Places:
        """Return as many places as `memory` bytes allow."""
        return cls(
            FairPlaces(max_uploads, "uploads"),
            FairPlaces(answer_places(memory), "long answers"),
            FairPlaces(MAX_FOLLOWERS, "followers and waits"),
            FairPlaces(pattern_places(memory), "waits for a large pattern"),
        )
