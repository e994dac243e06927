"""The time that all replicas share, even if this machine's clock is wrong.

It is the median of three clocks: this machine's, the catalog's and the object store's. If a back end has no
clock, the other one counts twice, so a back end always outvotes this machine. A catalog in a file has a clock
of its own that ignores jumps of the machine's. Other catalogs may run on this very machine; then the shared
time is also compared with a steady clock.
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
"""A difference that is ignored, because stores answer in whole seconds."""
MAX_SKEW_SECONDS: Final = 60.0
"""A difference above which nothing is swept."""
TIMEOUT_SECONDS: Final = 2.0
"""How long a back end may take to answer."""

log = logging.getLogger(__name__)


class SharedClock:
    """The machine's clock, corrected by the last measurement."""

    def __init__(
        self,
        machine: Callable[[], float],
        catalog: Catalog,
        store: ObjectStore,
        steady: Callable[[], float] | None = None,
    ) -> None:
        """`steady` returns seconds that never jump. It is None if a back end notices jumps by itself."""
        self._machine, self._catalog, self._store, self._steady = machine, catalog, store, steady
        self._ahead_of_steady: float | None = None
        self._jump = 0.0
        """Seconds by which the shared time has jumped against the steady clock."""
        self.skew = 0.0
        """Seconds by which this machine's clock is ahead of the shared time."""

    def now(self) -> float:
        """Return the shared time, in seconds since the epoch."""
        return self._machine() - self.skew

    async def measure(self) -> None:
        """Compare the clocks. A back end that does not answer in time is ignored."""
        started = self._machine()
        readings = await asyncio.gather(_reading(self._catalog.now()), _reading(self._store.now()))
        half_way = (self._machine() - started) / 2
        machine = started + half_way
        # With one back end it is both the first and the last, so it counts twice.
        clocks = [reading for reading in readings if reading is not None] or [machine]
        ahead = machine - median((machine, clocks[0], clocks[-1]))
        self.skew = ahead if abs(ahead) > TOLERANCE_SECONDS + half_way else 0.0
        if self.skew:
            log.warning("the clock of this machine is %+.0f s off that of the back ends: set it", self.skew)
        self._detect_jump()

    async def require_agreement(self) -> None:
        """Raise `ClockSkewed` or `ClockJumped` if this machine cannot decide what has expired or is old."""
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
