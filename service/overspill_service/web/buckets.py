"""Buckets of statistics as routes ask for them and answer with them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill import wire

from overspill_service.catalog.records import instant
from overspill_service.catalog.statistics import DAYS, FLEET, RESOLUTIONS, Cell, bucket_starts, unpacked
from overspill_service.errors import InvalidParameter
from overspill_service.web.instants import seconds_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from overspill_service.catalog import Statistics
    from overspill_service.catalog.statistics import Packed, Resolution, Sums

    Query = wire.StatsQuery | wire.OverviewQuery | wire.ExperimentsQuery

CHUNK: Final = 32
"""Buckets that are read at once."""


class Span(NamedTuple):
    """The requested time, in seconds since the epoch, and the length of its buckets."""

    since: float
    until: float
    resolution: Resolution

    @classmethod
    def of(cls, query: Query, now: float, usual: float) -> Span:
        """Return the time that a query asks for, not older than the kept buckets.

        Raises `InvalidParameter`.
        """
        since, until = _ends(query, now, usual)
        resolution = _resolution(getattr(query, "step", None), now - since)
        first_kept = now - resolution.lifetime - resolution.seconds
        return cls(min(until, max(since, first_kept)), until, resolution)

    @property
    def starts(self) -> range:
        """The starts of its buckets."""
        starts = bucket_starts(self.since, self.until, self.resolution)
        return starts[-(self.resolution.lifetime // self.resolution.seconds + 1) :]


def _ends(query: Query, now: float, usual: float) -> tuple[float, float]:
    """Return the first and the last instant of the request. Raises `InvalidParameter`."""
    until = now if query.until is None else max(0, min(seconds_of(query.until), now + DAYS.seconds))
    since = max(0, until - usual if query.since is None else seconds_of(query.since))
    if since >= until:
        raise InvalidParameter("since must be before until, which is now if it is missing")
    return since, until


def _resolution(step: int | None, age: float) -> Resolution:
    """Return the resolution with this step, else the finest that is kept for `age` seconds.

    The bucket that began that long ago is kept for its length longer, so an age may be a little more: clients
    ask for 7 days by clocks of their own.
    """
    if step is None:
        return next((each for each in RESOLUTIONS if each.seconds + each.lifetime > age), RESOLUTIONS[-1])
    found = next((each for each in RESOLUTIONS if each.seconds == step), None)
    if found is None:
        steps = ", ".join(str(each.seconds) for each in RESOLUTIONS)
        raise InvalidParameter(f"step must be one of {steps} seconds")
    return found


async def buckets(
    catalog: Statistics, tenant: str, resolution: Resolution, starts: Sequence[int]
) -> AsyncIterator[tuple[int, Sums]]:
    """Yield the buckets that begin at `starts`, without empty ones."""
    async for start, packed in packed_buckets(catalog, tenant, resolution, starts):
        yield start, unpacked(packed)


async def packed_buckets(
    catalog: Statistics, tenant: str, resolution: Resolution, starts: Sequence[int], tool: str | None = None
) -> AsyncIterator[tuple[int, Packed]]:
    """Yield the same with packed sums, with `tool` those of this tool alone."""
    for first in range(0, len(starts), CHUNK):
        chunk = starts[first : first + CHUNK]
        found = await catalog.sums(tenant, resolution, since=chunk[0], until=chunk[-1] + 1, tool=tool)
        for start in sorted(found):
            yield start, found[start]
            await asyncio.sleep(0)  # a full bucket takes the event loop milliseconds


def rows_of(tenant: str, start: float, sums: Sums) -> list[wire.StatsRow]:
    """Return the rows of one bucket, or of several together."""
    figures: dict[Cell, dict[str, int]] = {}
    for cell in sorted(sums):
        figures.setdefault(Cell("", cell.tool, cell.outcome), {})[cell.figure] = sums[cell]
    moment = instant(start)
    return [
        wire.StatsRow(
            start=moment,
            tenant=cell.tool if tenant == FLEET else tenant,
            tool="" if tenant == FLEET else cell.tool,
            outcome=cell.outcome,
            figures=each,
        )
        for cell, each in sorted(figures.items())
    ]
