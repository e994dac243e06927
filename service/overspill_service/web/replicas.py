"""Lets replicas share what they count through the catalog, so that a limit holds for all of them together.

Once a second each replica tells how much of each limit it uses, but only of limits that it comes near to.
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
"""How long a figure counts after a replica has told it."""
MOST_TOLD: Final = 200
"""The most figures that are told in one round: the highest ones."""

log = logging.getLogger(__name__)


class SharedLimits(Protocol):
    what: str
    """What is limited, for the log."""

    async def tell_once(self, catalog: Coordination) -> None:
        """Tell what is used here, and hear what is used elsewhere. Raises `CatalogUnavailable`."""


async def run_telling(catalog: Coordination, *limits: SharedLimits) -> None:
    """Tell and hear once a second, until cancelled. Meanwhile each replica goes by what it knows."""
    attempts = Attempts(log)
    while True:
        await asyncio.sleep(TELL_SECONDS)
        for each in limits:
            await attempts.make(f"telling replicas of {each.what}", each.tell_once(catalog))


class Replica:
    """Tells this process's figures to the other replicas, under a name of its own."""

    def __init__(self) -> None:
        self._holder = secrets.token_hex(8)

    async def tell(self, catalog: Coordination, figures: Mapping[str, float]) -> dict[str, float]:
        """Tell figures by name. Return what all others have told of them. Raises `CatalogUnavailable`."""
        told = (
            catalog.tell(name, self._holder, figure, keep=KEEP_SECONDS) for name, figure in figures.items()
        )
        return dict(zip(figures, await asyncio.gather(*told), strict=True))


class ScanCpu:
    """Holds a tenant's scans on all replicas together to its CPU seconds a minute.

    Each replica tells the CPU time that its own scans have used and not regained yet. It regains its part of
    the limit.
    """

    what = "scans"

    def __init__(self, scans: ScanThreads, clock: Callable[[], float] = time.monotonic) -> None:
        self._scans, self._clock, self._replica = scans, clock, Replica()

    async def tell_once(self, catalog: Coordination) -> None:
        """See `SharedLimits`."""
        spenders = self._scans.spenders(self._clock())[:MOST_TOLD]
        used = {f"scan-cpu {each.name}": each.spent for each in spenders}
        elsewhere = await self._replica.tell(catalog, used)
        for tenant, seconds in zip(spenders, elsewhere.values(), strict=True):
            tenant.spent_elsewhere = seconds
