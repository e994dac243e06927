"""The time that all replicas share, even if this machine's clock is wrong.

It is the median of three clocks: this machine's, the catalog's and the object store's. If a back end has no
clock, the other one counts twice, so a back end always outvotes this machine. A catalog in a file has a clock
of its own that ignores jumps of the machine's. Other catalogs may run on this very machine; then the shared
time is also compared with a steady clock.

Between two measurements the steady clock counts on. So if this machine's clock is set meanwhile, nothing
begins or ends too early or too late.
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
"""Seconds that a back end may take to answer."""

log = logging.getLogger(__name__)


class SharedClock:
    """The shared time of the last measurement, and what has passed since."""

    def __init__(
        self,
        machine: Callable[[], float],
        catalog: Catalog,
        store: ObjectStore,
        steady: Callable[[], float],
        *,
        notices_jumps: bool = True,
    ) -> None:
        """`steady` returns seconds that never jump.

        `notices_jumps` is False if a back end notices them itself.
        """
        self._machine, self._catalog, self._store, self._steady = machine, catalog, store, steady
        self._notices_jumps = notices_jumps
        self._lead = machine() - steady()
        """Seconds by which the shared time is ahead of the steady clock."""
        self._is_compared = False
        """Whether a back end has ever returned a time."""
        self._former_lead: float | None = None
        self._jump = 0.0
        """Seconds by which the shared time has jumped against the steady clock."""
        self.skew = 0.0
        """Seconds by which this machine's clock is ahead of the shared time."""

    def now(self) -> float:
        """Return the shared time, in seconds since the epoch."""
        return self._steady() + self._lead

    async def measure(self) -> None:
        """Compare the clocks. A back end that does not answer in time is ignored.

        If no back end answers that did before, the shared time goes on: this machine's clock may be the wrong
        one.
        """
        started, began = self._machine(), self._steady()
        readings = await asyncio.gather(_reading(self._catalog.now()), _reading(self._store.now()))
        half_way = (self._steady() - began) / 2
        answers = [reading for reading in readings if reading is not None]
        if not answers and self._is_compared:
            return
        self._is_compared = bool(answers)
        machine = started + half_way
        # With one back end it is both the first and the last, so it counts twice.
        clocks = answers or [machine]
        ahead = machine - median((machine, clocks[0], clocks[-1]))
        self.skew = ahead if abs(ahead) > TOLERANCE_SECONDS + half_way else 0.0
        if self.skew:
            log.warning("the clock of this machine is %+.0f s off that of the back ends: set it", self.skew)
        self._lead = started - self.skew - began
        if self._notices_jumps:
            self._detect_jump()

    async def require_agreement(self) -> None:
        """Raise `ClockSkewed` or `ClockJumped` if this machine cannot decide what has expired or is old."""
        await self.measure()
        if abs(self.skew) > MAX_SKEW_SECONDS:
            raise ClockSkewed(self.skew)
        if self._jump:
            raise ClockJumped(self._jump)

    def _detect_jump(self) -> None:
        if self._former_lead is None or abs(self._lead - self._former_lead) <= MAX_SKEW_SECONDS:
            self._former_lead, self._jump = self._lead, 0.0
        else:
            self._jump = self._lead - self._former_lead
            log.warning("the clocks of all machines have jumped by %+.0f s: set them", self._jump)


async def _reading(now: Awaitable[float | None]) -> float | None:
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            return await now
    except (ServiceError, TimeoutError) as error:
        log.debug("a back end does not say what time it is: %s", error)
        return None
