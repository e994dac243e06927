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

CONCURRENCY: Final = 16
"""Looks of one process."""
BURST: Final = 200
"""Fruitless looks that a tenant has at once in one process."""
RATE: Final = 20.0
"""Fruitless looks that a tenant gains a second, up to `BURST`."""


class LookupLimits:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._slots = asyncio.Semaphore(CONCURRENCY)
        self._pending: WeakValueDictionary[tuple[str, str], PendingLookups] = WeakValueDictionary()
        self._buckets: dict[str, TokenBucket] = {}

    async def find(
        self, tenant: str, capture: str, lookup: Callable[[], Awaitable[T | None]], *, is_limited: bool = True
    ) -> T | None:
        """What `lookup` finds; None also where another request's look has found nothing since this one came.

        Looks for one id happen one after the other. Raises `TooManyRequests` where the tenant has found
        nothing too often, unless it is not `is_limited`.
        """
        pending = self._pending.setdefault((tenant, capture), PendingLookups())
        started_before = pending.started
        async with pending.lock:
            if pending.last_miss > started_before:
                return None
            pending.started += 1
            found = await self._run(tenant, lookup, is_limited=is_limited)
            if found is None:
                pending.last_miss = pending.started
            return found

    async def _run(
        self, tenant: str, lookup: Callable[[], Awaitable[T | None]], *, is_limited: bool
    ) -> T | None:
        bucket = self._buckets.setdefault(tenant, TokenBucket(self._clock))
        if is_limited:
            bucket.check()  # do not wait for a place only to be refused there
        async with self._slots:
            if is_limited:
                bucket.take()
            found = await lookup()
        if is_limited and found is not None:
            bucket.put_back()
        return found


class PendingLookups:
    """The looks for one id, for as long as somebody waits for one."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.started = self.last_miss = 0
        """How many have begun; which of them was the last that found nothing."""


class TokenBucket:
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

    def put_back(self) -> None:
        self._tokens += 1
