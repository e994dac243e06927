"""Notes that this process still has to write to the catalog: statistics, and first reads of captures.

Requests only add notes. The maintenance job writes them every few seconds, so no read waits for a write. A
process that is killed loses the notes that it has not written yet.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill_service.catalog.statistics import FLEET, LATE_SECONDS
from overspill_service.resources.tasks import fan_out

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill_service.catalog import Entries, Statistics
    from overspill_service.catalog.records import Entry
    from overspill_service.catalog.statistics import Cell, Sums

BATCH_MEMORY_SECONDS: Final = 3600.0
CONCURRENCY: Final = 16
"""Writes to the catalog at once: it puts them together."""
MAX_READS: Final = 10_000
"""Captures that wait for the note of their first read. Beyond that a first read is noted by a later one."""


class _Batch(NamedTuple):
    name: str
    sums: Sums
    at: float


class PendingSums:
    """Sums by tenant. At most one batch of a tenant is on its way, and what comes meanwhile waits."""

    def __init__(self) -> None:
        self._waiting: dict[str, Sums] = {}
        self._sent: dict[str, _Batch] = {}

    def add(self, tenant: str, cell: Cell, amount: int) -> None:
        """Add to the sums of the tenant and of all tenants."""
        self.add_to(tenant, cell, amount)
        self.add_to(FLEET, cell._replace(tool=tenant), amount)

    def add_fleet(self, tenant: str, sums: Sums) -> None:
        """Add a tenant's sums, which are in the catalog already, to those of all tenants."""
        for cell, amount in sums.items():
            self.add_to(FLEET, cell._replace(tool=tenant), amount)

    def add_to(self, tenant: str, cell: Cell, amount: int) -> None:
        """Add to the sums of this tenant alone."""
        sums = self._waiting.setdefault(tenant, {})
        sums[cell] = sums.get(cell, 0) + amount

    async def write(self, catalog: Statistics, now: float) -> list[str]:
        """Write everything, and return the tenants of it.

        What fails is written again next time, under the same name. Raises what `add_sums` raises.
        """
        await self._send(catalog, now)
        for tenant, sums in self._waiting.items():
            self._sent[tenant] = _Batch(secrets.token_hex(8), sums, now)
        tenants, self._waiting = [*self._waiting], {}
        await self._send(catalog, now)
        return tenants

    async def _send(self, catalog: Statistics, now: float) -> None:
        async def send(tenant: str) -> None:
            name, sums, at = self._sent[tenant]
            await catalog.add_sums(tenant, sums, now=at, batch=name, memory=BATCH_MEMORY_SECONDS)
            if now - at > LATE_SECONDS / 2:
                await catalog.forget_rollups(tenant)
            del self._sent[tenant]

        await fan_out(send, [*self._sent], concurrency=CONCURRENCY)


class PendingReads:
    """Captures that were read for the first time according to their entries, when, and by whom."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], tuple[Entry, float, str]] = {}

    def add(self, entry: Entry, now: float, reader: str = "") -> None:
        if entry.first_read is None and len(self._waiting) < MAX_READS:
            self._waiting.setdefault((entry.tenant, entry.id), (entry, now, reader))

    async def write(self, catalog: Entries, on_first: Callable[[Entry, float], None]) -> None:
        """Note the first reads in the catalog. `on_first` is called for those that no process has noted yet.

        What fails is written again next time. Raises what `note_read` raises.
        """

        async def note(name: tuple[str, str]) -> None:
            entry, at, reader = self._waiting[name]
            is_first = await catalog.note_read(entry, at, reader)
            del self._waiting[name]
            if is_first:
                on_first(entry, at)

        await fan_out(note, [*self._waiting], concurrency=CONCURRENCY)
