"""Limits on lookups in the object store of ids that the catalog does not know.

A lookup costs one listing, so a flood of unknown ids must not become a flood of listings. Few lookups run at
once. Requests for the same id share one lookup. Lookups of one tenant that find nothing are limited in rate;
those that find something are not.

A lookup that found nothing is not remembered. Another process may store the capture a moment later, and the
catalog may lose its entry: then only a new lookup finds it.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final, TypeVar
from weakref import WeakValueDictionary

from overspill_service.errors import TooManyRequests
from overspill_service.resources.fair_places import FairPlaces
from overspill_service.resources.token_buckets import TokenBuckets

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

CONCURRENCY: Final = 16
"""Lookups of one process at the same time. A tenant has half of them."""
BURST: Final = 200
"""Lookups without a result that a tenant may make at once, in one process."""
RATE: Final = 20.0
"""Lookups without a result per second that a tenant may make in the long run."""
MAX_TENANTS: Final = 10_000
"""Tenants whose lookups are counted at once."""


class LookupLimits:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._places = FairPlaces(CONCURRENCY, "look-ups", wait_seconds=None)
        self._pending: WeakValueDictionary[tuple[str, str], PendingLookups] = WeakValueDictionary()
        self._buckets = TokenBuckets("look-ups", RATE, BURST, clock, max_keys=MAX_TENANTS)

    async def find(
        self, tenant: str, capture: str, lookup: Callable[[], Awaitable[T | None]], *, is_limited: bool = True
    ) -> T | None:
        """Return what `lookup` finds, or None.

        Lookups of one id run one after the other. A request returns None without a lookup if one that started
        after it found nothing. Raises `TooManyRequests` if `is_limited` and the tenant has found nothing too
        often.
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
        bucket = self._buckets.of(tenant)
        if is_limited:
            _require(bucket.wait())  # do not wait for a place only to be refused then
        async with self._places.hold(tenant):
            if is_limited:
                _require(bucket.take())
            found = await lookup()
        if is_limited and found is not None:
            bucket.put_back()
        return found


def _require(seconds: int) -> None:
    """Raise `TooManyRequests` if there is no token for some seconds."""
    if seconds:
        raise TooManyRequests("look-ups of captures that are not there", BURST, seconds)


class PendingLookups:
    """The lookups of one id, kept while a request waits for one."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.started = self.last_miss = 0
        """How many have started, and which of them was the last without a result."""
