"""Figures of past buckets, for dashboards.

Over a month of many tools the buckets take long to read, so a process keeps the sums of those that were asked
for last. A batch that was late for its bucket is in them after `KEPT_SECONDS`.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakValueDictionary

from overspill_service.catalog.statistics import Cell
from overspill_service.web.buckets import buckets

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from overspill_service.catalog import Statistics
    from overspill_service.catalog.statistics import Resolution, Sums
    from overspill_service.web.buckets import Span

LATE_SECONDS: Final = 120.0
"""After its end a bucket still changes for so long: processes report every few seconds."""
KEPT_SECONDS: Final = 900.0
"""Past sums are read anew after this time: a catalog that failed gets what is late when it answers again."""
MAX_CELLS_KEPT: Final = 60_000
"""Sums that a process keeps: about 10 MB."""
_SIGNS: Final = {"tool_output_bytes": 1, "tool_output_kept_bytes": -1}
"""What makes the bytes that stayed out of conversations."""


def _no_sums() -> defaultdict[Cell, int]:
    return defaultdict(int)


class Figures:
    """The sums of some buckets: of all tools together by bucket, and by tool of all buckets."""

    def __init__(self) -> None:
        self.series: dict[int, Sums] = {}
        self.tools: defaultdict[str, defaultdict[Cell, int]] = defaultdict(_no_sums)
        self.kept_out: defaultdict[str, int] = defaultdict(int)
        """Bytes that each tool's outputs kept out of conversations."""

    def add(self, start: int, sums: Sums) -> None:
        """Add a bucket. Plain code, because it may have thousands of sums."""
        together: defaultdict[tuple[str, str], int] = defaultdict(int)
        tools, kept_out = self.tools, self.kept_out
        for cell, amount in sums.items():
            figure, tool, outcome = cell
            together[figure, outcome] += amount
            tools[tool][cell] += amount
            if figure in _SIGNS:
                kept_out[tool] += _SIGNS[figure] * amount
        self.series[start] = {Cell(figure, "", outcome): each for (figure, outcome), each in together.items()}

    @property
    def size(self) -> int:
        """How many sums it has."""
        return sum(map(len, self.series.values())) + sum(map(len, self.tools.values()))


class _Kept(NamedTuple):
    figures: Figures
    size: int
    until: float


class History:
    """Figures of past buckets, those that were asked for last. One for each process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[tuple[str, int, int, int], _Kept] = OrderedDict()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def size(self) -> int:
        """How many sums are kept."""
        return sum(each.size for each in self._kept.values())

    async def figures(
        self, catalog: Statistics, tenant: str, asked: Span, now: float
    ) -> tuple[Figures, Figures]:
        """Return the figures of the past buckets of a time, and of those that still change."""
        starts = asked.starts
        number = sum(start + asked.resolution.seconds + LATE_SECONDS <= now for start in starts)
        past = await self._past(catalog, tenant, asked.resolution, starts[:number])
        return past, await _read(catalog, tenant, asked.resolution, starts[number:])

    async def _past(self, catalog: Statistics, tenant: str, resolution: Resolution, starts: range) -> Figures:
        if not starts:
            return Figures()
        key = tenant, resolution.seconds, starts[0], starts[-1]
        async with self._lock(tenant):
            found = self._kept.pop(key, None)
            if found is None or found.until < self._clock():
                figures = await _read(catalog, tenant, resolution, starts)
                found = _Kept(figures, figures.size, self._clock() + KEPT_SECONDS)
            self._kept[key] = found
            self._drop_surplus()
            return found.figures

    def _lock(self, tenant: str) -> asyncio.Lock:
        """Return a lock, so that two requests of a tenant do not read the same."""
        lock = self._locks.get(tenant)
        if lock is None:
            lock = self._locks[tenant] = asyncio.Lock()
        return lock

    def _drop_surplus(self) -> None:
        while self.size > MAX_CELLS_KEPT and len(self._kept) > 1:
            self._kept.popitem(last=False)


async def _read(catalog: Statistics, tenant: str, resolution: Resolution, starts: Sequence[int]) -> Figures:
    figures = Figures()
    async for start, sums in buckets(catalog, tenant, resolution, starts):
        figures.add(start, sums)
    return figures
