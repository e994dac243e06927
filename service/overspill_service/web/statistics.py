"""Routes for what happened over time, of one tenant and of all."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from overspill import wire
from overspill.wire import Path, Scope

from overspill_service.catalog.records import instant
from overspill_service.catalog.statistics import (
    DAYS,
    EXPERIMENTS,
    FLEET,
    OTHER,
    RESOLUTIONS,
    Cell,
    Resolution,
    add_to,
    bucket_starts,
)
from overspill_service.errors import InvalidParameter
from overspill_service.web.instants import seconds_of
from overspill_service.web.registry import Route

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiohttp import web

    from overspill_service.catalog import Catalog
    from overspill_service.catalog.statistics import Sums
    from overspill_service.web.context import RequestContext

DEFAULT_SECONDS: Final = 3600.0
EXPERIMENT_SECONDS: Final = 30 * 86400.0
CHUNK: Final = 32
"""Buckets that are read at once."""
ANSWER_SIZE: Final = 16 * 2**20
"""Bytes of memory for an answer of the most rows."""


async def of_tenant(context: RequestContext[wire.StatsQuery]) -> web.Response:
    return await _answer(context, context.principal.tenant.name)


async def of_fleet(context: RequestContext[wire.StatsQuery]) -> web.Response:
    return await _answer(context, FLEET)


async def of_experiments(context: RequestContext[wire.ExperimentsQuery]) -> web.Response:
    archive = context.service.archive
    now = archive.clock()
    since, until = _span(context.query, now, EXPERIMENT_SECONDS)
    tenant = EXPERIMENTS + context.principal.tenant.name
    total: Sums = {}
    async with archive.memory.reads.shares(ANSWER_SIZE):
        resolution = _resolution(None, now - since)
        async for _, sums in _buckets(archive.catalog, tenant, resolution, since, until):
            add_to(total, sums)
        return context.json(
            wire.Experiments(
                since=instant(since),
                until=instant(until),
                rows=_cohort_rows(total),
                overflowed=any(cell.tool == OTHER for cell in total),
            )
        )


def _cohort_rows(total: Sums) -> list[wire.CohortRow]:
    found: dict[wire.Cohort, dict[str, int]] = {}
    for cell in sorted(total):
        cohort = wire.Cohort.decode(cell.tool)
        if cohort is not None:
            found.setdefault(cohort, {})[cell.figure] = total[cell]
    return [
        wire.CohortRow(experiment=cohort.experiment, arm=cohort.arm, group=cohort.group, figures=figures)
        for cohort, figures in sorted(found.items())
    ]


def _span(query: wire.StatsQuery | wire.ExperimentsQuery, now: float, usual: float) -> tuple[float, float]:
    """Return the first and the last instant that are asked for. Raises `InvalidParameter`."""
    until = now if query.until is None else max(0, min(seconds_of(query.until), now + DAYS.seconds))
    since = max(0, until - usual if query.since is None else seconds_of(query.since))
    if since >= until:
        raise InvalidParameter("since must be before until, which is now if it is missing")
    return since, until


async def _answer(context: RequestContext[wire.StatsQuery], tenant: str) -> web.Response:
    archive, query = context.service.archive, context.query
    now = archive.clock()
    usual = max(DEFAULT_SECONDS, min(query.step or 0, DAYS.seconds))  # at least one bucket begins in it
    since, until = _span(query, now, usual)
    resolution = _resolution(query.step, now - since)
    since = min(until, max(since, now - resolution.kept - resolution.seconds))
    async with archive.memory.reads.shares(ANSWER_SIZE):
        found = _buckets(archive.catalog, tenant, resolution, since, until)
        if not query.tools and tenant != FLEET:
            found = _without_tools(found)
        rows = await (_total if query.total else _series)(found, tenant, since)
        return context.json(
            wire.Stats(since=instant(since), until=instant(until), step=resolution.seconds, rows=rows)
        )


def _resolution(step: int | None, age: float) -> Resolution:
    """Return the resolution with this step, else the finest that is kept for `age` seconds.

    The bucket that began that long ago is kept for its length longer, so an age may be a little more: clients
    ask for 7 days by clocks of their own.
    """
    if step is None:
        return next((each for each in RESOLUTIONS if each.seconds + each.kept > age), RESOLUTIONS[-1])
    found = next((each for each in RESOLUTIONS if each.seconds == step), None)
    if found is None:
        steps = ", ".join(str(each.seconds) for each in RESOLUTIONS)
        raise InvalidParameter(f"step must be one of {steps} seconds")
    return found


async def _buckets(
    catalog: Catalog, tenant: str, resolution: Resolution, since: float, until: float
) -> AsyncIterator[tuple[int, Sums]]:
    """Yield the buckets in the order of time. None is older than what is kept."""
    starts = bucket_starts(since, until, resolution)[-(resolution.kept // resolution.seconds + 1) :]
    for first in range(0, len(starts), CHUNK):
        chunk = starts[first : first + CHUNK]
        found = await catalog.sums(tenant, resolution, since=chunk[0], until=chunk[-1] + 1)
        for start in sorted(found):
            yield start, found[start]
            await asyncio.sleep(0)  # a full bucket takes the event loop milliseconds


async def _without_tools(buckets: AsyncIterator[tuple[int, Sums]]) -> AsyncIterator[tuple[int, Sums]]:
    """Yield the buckets with the sums of all tools together."""
    async for start, sums in buckets:
        together: Sums = {}
        for cell, amount in sums.items():
            key = cell._replace(tool="")
            together[key] = together.get(key, 0) + amount
        yield start, together


async def _series(
    buckets: AsyncIterator[tuple[int, Sums]], tenant: str, _since: float
) -> list[wire.StatsRow]:
    rows: list[wire.StatsRow] = []
    async for start, sums in buckets:
        rows += _rows(tenant, start, sums)
        if len(rows) > wire.MAX_ROWS:
            raise InvalidParameter(
                f"the answer has more than {wire.MAX_ROWS} rows; ask for a shorter time, a longer step, or "
                "total=true"
            )
    return rows


async def _total(buckets: AsyncIterator[tuple[int, Sums]], tenant: str, since: float) -> list[wire.StatsRow]:
    total: Sums = {}
    async for _, sums in buckets:
        add_to(total, sums)
    return _rows(tenant, since, total)


def _rows(tenant: str, start: float, sums: Sums) -> list[wire.StatsRow]:
    figures: dict[Cell, dict[str, int]] = {}
    for cell in sorted(sums):
        figures.setdefault(cell._replace(figure=""), {})[cell.figure] = sums[cell]
    return [
        wire.StatsRow(
            start=instant(start),
            tenant=cell.tool if tenant == FLEET else tenant,
            tool="" if tenant == FLEET else cell.tool,
            outcome=cell.outcome,
            figures=each,
        )
        for cell, each in sorted(figures.items())
    ]


def _route(path: str, scope: Scope, handler: object, summary: str) -> Route:
    return Route(
        method="GET",
        path=path,
        scope=scope,
        is_paced=True,
        handler=handler,  # type: ignore[arg-type]  # both handlers take this query
        summary=summary,
        query=wire.StatsQuery,
        answers={200: wire.Stats},
    )


ROUTES: Final = (
    _route(Path.STATS, Scope.READ, of_tenant, "The main figures over time, by tool and outcome."),
    Route(
        method="GET",
        path=Path.EXPERIMENTS,
        scope=Scope.READ,
        is_paced=True,
        handler=of_experiments,
        summary="The sums of experiments, by arm and group of sessions.",
        query=wire.ExperimentsQuery,
        answers={200: wire.Experiments},
    ),
    _route(Path.FLEET_STATS, Scope.FLEET, of_fleet, "The main figures of all tenants over time."),
)
