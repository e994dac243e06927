"""The time that all replicas share, whatever the clock of this machine says.

The median of three clocks: this machine's, the catalog's and the object store's. Where a back end has no
clock of its own the other one's counts twice, so a back end is always believed before this machine. A catalog
in a file has a clock of its own, which does not follow a jump of the machine's. With other catalogs the
shared time is held against a steady clock, because they may run on this very machine.
"""

from __future__ import annotations

import asyncio
import logging
from statistics import median
from typing import TYPE_CHECKING, Final

from overspill_service.errors import ClockJumped, ClockSkewed, ServiceError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from overspill_service.catalog import Catalog
    from overspill_service.objects import ObjectStore

TOLERANCE_SECONDS: Final = 5.0
"""A difference that changes nothing: stores tell whole seconds."""
MAX_SKEW_SECONDS: Final = 60.0
"""A difference with which nothing is swept."""
TIMEOUT_SECONDS: Final = 2.0
"""How long the back ends may take to say what time it is."""

log = logging.getLogger(__name__)


class SharedClock:
    """Tells the shared time: this machine's, put right by what was last measured."""

    def __init__(
        self,
        machine: Callable[[], float],
        catalog: Catalog,
        store: ObjectStore,
        steady: Callable[[], float] | None = None,
    ) -> None:
        """`steady` tells seconds that never jump; none is needed where a back end notices jumps."""
        self._machine, self._catalog, self._store, self._steady = machine, catalog, store, steady
        self._ahead_of_steady: float | None = None
        self._jump = 0.0
        """Seconds by which the shared time is further on than the steady clock says."""
        self.skew = 0.0
        """Seconds by which this machine's clock is ahead of the shared time."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._machine() - self.skew

    async def measure(self) -> None:
        """Compare the clocks. A back end that does not answer in time has no say."""
        started = self._machine()
        readings = await asyncio.gather(_reading(self._catalog.now()), _reading(self._store.now()))
        half_way = (self._machine() - started) / 2
        machine = started + half_way
        clocks = [reading for reading in readings if reading is not None] or [machine]
        ahead = machine - median((machine, clocks[0], clocks[-1]))
        self.skew = ahead if abs(ahead) > TOLERANCE_SECONDS + half_way else 0.0
        if self.skew:
            log.warning("the clock of this machine is %+.0f s off that of the back ends: set it", self.skew)
        self._detect_jump()

    async def require_agreement(self) -> None:
        """Raise `ClockSkewed` where what has expired, or is old, must not be judged by this machine."""
        await self.measure()
        if abs(self.skew) > MAX_SKEW_SECONDS:
            raise ClockSkewed(self.skew)
        if self._jump:
            raise ClockJumped(self._jump)

    def _detect_jump(self) -> None:
        if self._steady is None:
            return
        ahead = self.now() - self._steady()
        if self._ahead_of_steady is None or abs(ahead - self._ahead_of_steady) <= MAX_SKEW_SECONDS:
            self._ahead_of_steady, self._jump = ahead, 0.0
        else:
            self._jump = ahead - self._ahead_of_steady
            log.warning("the clocks of all machines have jumped by %+.0f s: set them", self._jump)


async def _reading(now: Awaitable[float | None]) -> float | None:
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            return await now
    except (ServiceError, TimeoutError) as error:
        log.debug("a back end does not say what time it is: %s", error)
        return None
