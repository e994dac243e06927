"""Bounds on looking in the object store for what the catalog does not know.

A look costs a listing. So a flood of ids that never were must not become a flood of listings: few looks run
at once, those of one tenant that find nothing are limited in rate, and what was not found is not looked for
again within seconds. What is found costs nothing of the rate.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, TypeVar
from weakref import WeakValueDictionary

from overspill_service.errors import TooManyRequests

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

AT_ONCE: Final = 16
"""Looks of one process."""
BURST: Final = 200
"""Fruitless looks that a tenant has at once in one process."""
RATE: Final = 20.0
"""Fruitless looks that a tenant gains a second, up to `BURST`."""
ABSENT_SECONDS: Final = 5.0
"""For how long what was not found is taken to be absent."""
MOST_ABSENT: Final = 10_000
"""Absent ids that are remembered, over all tenants."""


class Misses:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._places = asyncio.Semaphore(AT_ONCE)
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        self._absent: OrderedDict[tuple[str, str], float] = OrderedDict()
        self._budgets: dict[str, Budget] = {}

    async def find(
        self, tenant: str, capture: str, look: Callable[[], Awaitable[T | None]], *, is_limited: bool = True
    ) -> T | None:
        """What `look` finds; None without a look where there was nothing a moment ago.

        Looks for one id happen one after the other, and the first that finds nothing answers all. Raises
        `TooManyRequests` where the tenant has found nothing too often, unless it is not `is_limited`.
        """
        name = tenant, capture
        lock = self._locks.setdefault(name, asyncio.Lock())
        async with lock:
            if self._is_absent(name):
                return None
            found = await self._looked(tenant, look, is_limited=is_limited)
            if found is None:
                self._remember(name)
            return found

    async def _looked(
        self, tenant: str, look: Callable[[], Awaitable[T | None]], *, is_limited: bool
    ) -> T | None:
        budget = self._budgets.setdefault(tenant, Budget(self._clock))
        if is_limited:
            budget.check()  # do not wait for a place only to be refused there
        async with self._places:
            if is_limited:
                budget.take()
            found = await look()
        if is_limited and found is not None:
            budget.give_back()
        return found

    def _is_absent(self, name: tuple[str, str]) -> bool:
        return self._absent.get(name, self._clock()) > self._clock()

    def _remember(self, name: tuple[str, str]) -> None:
        self._absent[name] = self._clock() + ABSENT_SECONDS
        self._absent.move_to_end(name)
        if len(self._absent) > MOST_ABSENT:
            self._absent.popitem(last=False)


class Budget:
    """A token bucket: `BURST` tokens, `RATE` more a second."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._tokens, self._at = float(BURST), clock()

    def check(self) -> None:
        """Raise `TooManyRequests` where there is no token."""
        now = self._clock()
        self._tokens, self._at = min(BURST, self._tokens + RATE * (now - self._at)), now
        if self._tokens < 1:
            raise TooManyRequests("look-ups of captures that are not there", BURST)

    def take(self) -> None:
        self.check()
        self._tokens -= 1

    def give_back(self) -> None:
        self._tokens += 1
