"""Adds up experiments: the counts of clients, and the captures and reads of each cohort.

The sums are in the catalog only. As metrics they would be hundreds of series that no dashboard shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import astuple
from overspill import wire
from overspill.wire import COHORT_LABEL, COUNTED, NOTED, Cohort

from overspill_service.catalog.statistics import EXPERIMENTS, OTHER, Cell, merged
from overspill_service.telemetry.names import ToolNames

if TYPE_CHECKING:
    from overspill_service.catalog import Statistics
    from overspill_service.catalog.records import Entry
    from overspill_service.catalog.statistics import Sums
    from overspill_service.telemetry.pending import PendingSums

RESERVED: Final = 2
"""Experiments that every tenant may have, regardless of others."""
MAX_TOOLS: Final = 32
"""Experiments of one tenant."""
SHARED: Final = 1000
"""Experiments of all tenants beyond their reserved ones."""
_CAPTURES, _CAPTURES_READ, _READS, _READ_BYTES = NOTED


class CohortCounts:
    """Adds up cohorts by tenant. Experiments beyond a bound are counted as `other`."""

    def __init__(self, pending: PendingSums) -> None:
        self._pending = pending
        self._names = ToolNames(RESERVED, MAX_TOOLS, SHARED)

    async def observe(self, catalog: Statistics, tenant: str, seen: wire.Observations, now: float) -> None:
        """Add a client's report, unless this batch was added before. Raises `CatalogUnavailable`."""
        sums = merged(self._sums(tenant, each) for each in seen.cohorts)
        if sums:
            memory = wire.BATCH_MEMORY
            await catalog.add_sums(EXPERIMENTS + tenant, sums, now=now, batch=seen.batch, memory=memory)

    def capture(self, entry: Entry) -> None:
        """Count a new capture."""
        self._note(entry, _CAPTURES, 1)

    def first_read(self, entry: Entry) -> None:
        """Count a capture that was read for the first time."""
        self._note(entry, _CAPTURES_READ, 1)

    def read(self, entry: Entry, size: int) -> None:
        """Count a read and the bytes of its answer."""
        self._note(entry, _READS, 1)
        self._note(entry, _READ_BYTES, size)

    def _note(self, entry: Entry, figure: str, amount: int) -> None:
        label = entry.labels.get(COHORT_LABEL)
        cohort = None if label is None else Cohort.decode(label)
        if cohort is not None and amount:
            cell = Cell(figure, self._name(entry.tenant, cohort))
            self._pending.add_to(EXPERIMENTS + entry.tenant, cell, amount)

    def _sums(self, tenant: str, seen: wire.CohortCount) -> Sums:
        name = self._name(tenant, seen.cohort)
        amounts = zip(COUNTED, astuple(seen.sums), strict=True)
        return {Cell(figure, name): amount for figure, amount in amounts if amount}

    def _name(self, tenant: str, cohort: Cohort) -> str:
        name = self._names(tenant, cohort.experiment)
        return cohort.encode() if name == cohort.experiment else OTHER
