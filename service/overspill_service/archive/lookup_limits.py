"""Bounds on looking in the object store for what the catalog does not know.

A look costs a listing. So a flood of ids that never were must not become a flood of listings: few looks run
at once, those of one tenant that find nothing are limited in rate, and requests that wait for the same id
share one look. What is found costs nothing of the rate.

That nothing was found is not remembered any longer. The capture may be stored a moment later by another
process, and its entry be lost by the catalog at once: then only a new look finds it.
"""

from __future__ import annotations

import asyncio
import time
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


class Misses:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._places = asyncio.Semaphore(AT_ONCE)
        self._looks: WeakValueDictionary[tuple[str, str], Looks] = WeakValueDictionary()
        self._budgets: dict[str, Budget] = {}

    async def find(
        self, tenant: str, capture: str, look: Callable[[], Awaitable[T | None]], *, is_limited: bool = True
    ) -> T | None:
        """What `look` finds; None also where another request's look has found nothing since this one came.

        Looks for one id happen one after the other. Raises `TooManyRequests` where the tenant has found
        nothing too often, unless it is not `is_limited`.
        """
        looks = self._looks.setdefault((tenant, capture), Looks())
        before = looks.begun
        async with looks.lock:
            if looks.fruitless > before:
                return None
            looks.begun += 1
            found = await self._looked(tenant, look, is_limited=is_limited)
            if found is None:
                looks.fruitless = looks.begun
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


class Looks:
    """The looks for one id, for as long as somebody waits for one."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.begun = self.fruitless = 0
        """How many have begun; which of them was the last that found nothing."""


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
