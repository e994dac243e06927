"""Threads for scans, shared fairly among tenants: greps and summaries, which may read a whole capture.

place    a scan waits for one of a few places, and a tenant holds at most half of them
batch    its work comes in batches of a few frames, which tenants share fairly
CPU      a limit says how many seconds of CPU time a tenant has each minute
"""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from overspill_service.resources.fair_places import FairPlaces
from overspill_service.resources.fair_threads import FairThreads, Tenant, TenantThreads

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from overspill_service.resources.tenant_mix import TenantMix

MAX_PLACES: Final = 16
"""Scans of one process that run at once, at most."""
SCAN_BYTES: Final = 16 * 2**20
"""Bytes of memory that a scan of a large capture takes, about."""

T = TypeVar("T")


def scan_places(memory: int) -> int:
    """Return how many scans run at once, so that they hold about a quarter of `memory` bytes at most."""
    return max(2, min(MAX_PLACES, memory // 4 // SCAN_BYTES))


class ScanThreads(FairThreads):
    """The threads and places of one process. Belongs to one event loop."""

    def __init__(
        self,
        places: int,
        *,
        mix: TenantMix | None = None,
        note: Callable[[str, float, float], None] = lambda *_: None,
        clock: Callable[[], float] = time.monotonic,
        threads: int | None = None,
    ) -> None:
        super().__init__("scan", mix=mix, note=note, clock=clock, threads=threads)
        self.places = FairPlaces(places, "greps and summaries")

    @asynccontextmanager
    async def scan(self, name: str, cpu_limit: int) -> AsyncIterator[Scan]:
        """Hold a place for one scan of the tenant `name`. Work that is left at the end of the block stops.

        `cpu_limit` is in seconds a minute, 0 for none. Raises `CpuTimeUsed`, `TooManyRequests`.
        """
        tenant = self._tenant(name)
        tenant.require_cpu(cpu_limit, self._clock())
        async with self.places.hold(name):
            scan = Scan(self, tenant)
            try:
                yield scan
            finally:
                scan.is_over = True

    def spenders(self, now: float) -> list[Tenant]:
        """Return the tenants that come near their limit of CPU time, or have used some lately; most first."""
        found = [each for each in self._tenants.values() if each.counts(now)]
        return sorted(found, key=lambda each: -each.spent)


class Scan(TenantThreads):
    """One scan's use of the threads."""

    def __init__(self, scans: ScanThreads, tenant: Tenant) -> None:
        super().__init__(scans, tenant)
        self.is_over = False
        """Whether the client has its answer or is gone. Work in a thread looks at it after each part."""

    async def run_locking(self, work: Callable[[], T]) -> T:
        """Return the result of work that holds the interpreter's lock, so that nothing else runs meanwhile.

        The tenant's next such work begins `PAUSES` times as long after it.
        """
        await self._tenant.locking.acquire()
        batch = self._threads.start(self._tenant, work, self._tenant.locking)
        found: T = await batch.result
        return found
