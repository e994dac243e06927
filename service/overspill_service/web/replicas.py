"""Lets replicas share their counts through the catalog, so that a limit holds for all of them together.

Once a second each replica reports how much of each limit it uses, but only for limits that it comes near.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from typing import TYPE_CHECKING, Final, Protocol

from overspill_service.resources.attempts import Attempts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from overspill_service.catalog import Coordination
    from overspill_service.resources.scans import ScanThreads

TELL_SECONDS: Final = 1.0
KEEP_SECONDS: Final = 3.0
"""Seconds for which a figure counts after a replica has reported it."""
MAX_TOLD: Final = 200
"""The most figures in one report: the highest ones."""

log = logging.getLogger(__name__)


class SharedLimits(Protocol):
    label: str
    """The name of the limited thing, for the log."""

    async def tell_once(self, catalog: Coordination) -> None:
        """Report the use here, and read the use elsewhere. Raises `CatalogUnavailable`."""


async def run_telling(catalog: Coordination, *limits: SharedLimits) -> None:
    """Report and read once a second, until cancelled. In between, each replica relies on the last figures."""
    attempts = Attempts(log)
    while True:
        await asyncio.sleep(TELL_SECONDS)
        for each in limits:
            await attempts.make(f"telling replicas of {each.label}", each.tell_once(catalog))


class Replica:
    """Reports this process's figures to the other replicas, under a name of its own."""

    def __init__(self) -> None:
        self._holder = secrets.token_hex(8)

    async def tell(self, catalog: Coordination, figures: Mapping[str, float]) -> dict[str, float]:
        """Report figures by name. Return those of all other replicas. Raises `CatalogUnavailable`."""
        told = (
            catalog.tell(name, self._holder, figure, keep=KEEP_SECONDS) for name, figure in figures.items()
        )
        return dict(zip(figures, await asyncio.gather(*told), strict=True))


class ScanCpu:
    """Holds a tenant's scans on all replicas together to its CPU seconds a minute.

    Each replica reports the CPU time that its own scans have used and not regained yet. It regains its part
    of the limit.
    """

    label = "scans"

    def __init__(self, scans: ScanThreads, clock: Callable[[], float] = time.monotonic) -> None:
        self._scans, self._clock, self._replica = scans, clock, Replica()

    async def tell_once(self, catalog: Coordination) -> None:
        """See `SharedLimits`."""
        spenders = self._scans.spenders(self._clock())[:MAX_TOLD]
        used = {f"scan-cpu {each.name}": each.spent for each in spenders}
        elsewhere = await self._replica.tell(catalog, used)
        for tenant, seconds in zip(spenders, elsewhere.values(), strict=True):
            tenant.spent_elsewhere = seconds
