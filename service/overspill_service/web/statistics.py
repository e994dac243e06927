"""Routes for figures over time, of one tenant and of all."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from overspill import wire
from overspill.wire import Path, Scope

from overspill_service.catalog.records import instant
from overspill_service.catalog.statistics import DAYS, EXPERIMENTS, FLEET, OTHER, add_to
from overspill_service.errors import InvalidParameter
from overspill_service.web.buckets import Span, buckets, rows_of
from overspill_service.web.registry import Route

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiohttp import web

    from overspill_service.catalog.statistics import Sums
    from overspill_service.web.context import RequestContext

DEFAULT_SECONDS: Final = 3600.0
EXPERIMENT_SECONDS: Final = 30 * 86400.0
ANSWER_SIZE: Final = 16 * 2**20
"""Bytes of memory for an answer of the most rows."""


async def of_tenant(context: RequestContext[wire.StatsQuery]) -> web.Response:
    return await _answer(context, context.principal.tenant.name)


async def of_fleet(context: RequestContext[wire.StatsQuery]) -> web.Response:
    return await _answer(context, FLEET)


async def of_experiments(context: RequestContext[wire.ExperimentsQuery]) -> web.Response:
    archive = context.service.archive
    now = archive.clock()
    span = Span.of(context.query, now, EXPERIMENT_SECONDS)
    tenant = EXPERIMENTS + context.principal.tenant.name
    total: Sums = {}
    async with context.read_memory(ANSWER_SIZE):
        async for _, sums in buckets(archive.catalog, tenant, span.resolution, span.starts):
            add_to(total, sums)
        return context.json(
            wire.Experiments(
                since=instant(span.since),
                until=instant(span.until),
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


async def _answer(context: RequestContext[wire.StatsQuery], tenant: str) -> web.Response:
    archive, query = context.service.archive, context.query
    now = archive.clock()
    usual = max(DEFAULT_SECONDS, min(query.step or 0, DAYS.seconds))  # at least one bucket begins in it
    span = Span.of(query, now, usual)
    async with context.read_memory(ANSWER_SIZE):
        found = buckets(archive.catalog, tenant, span.resolution, span.starts)
        if not query.tools and tenant != FLEET:
            found = _without_tools(found)
        rows = await (_total if query.total else _series)(found, tenant, span.since)
        return context.json(
            wire.Stats(
                since=instant(span.since),
                until=instant(span.until),
                step=span.resolution.seconds,
                rows=rows,
            )
        )


async def _without_tools(found: AsyncIterator[tuple[int, Sums]]) -> AsyncIterator[tuple[int, Sums]]:
    """Yield the buckets with the sums of all tools together."""
    async for start, sums in found:
        together: Sums = {}
        for cell, amount in sums.items():
            key = cell._replace(tool="")
            together[key] = together.get(key, 0) + amount
        yield start, together


async def _series(found: AsyncIterator[tuple[int, Sums]], tenant: str, _since: float) -> list[wire.StatsRow]:
    rows: list[wire.StatsRow] = []
    async for start, sums in found:
        rows += rows_of(tenant, start, sums)
        if len(rows) > wire.MAX_ROWS:
            raise InvalidParameter(
                f"the answer has more than {wire.MAX_ROWS} rows; ask for a shorter time, a longer step, or "
                "total=true"
            )
    return rows


async def _total(found: AsyncIterator[tuple[int, Sums]], tenant: str, since: float) -> list[wire.StatsRow]:
    total: Sums = {}
    async for _, sums in found:
        add_to(total, sums)
    return rows_of(tenant, since, total)


_stats_route: Final = partial(
    Route, method="GET", is_paced=True, query=wire.StatsQuery, answers={200: wire.Stats}
)

ROUTES: Final = (
    _stats_route(
        path=Path.STATS,
        scope=Scope.READ,
        handler=of_tenant,
        summary="Return the main figures over time, by tool and outcome.",
    ),
    Route(
        method="GET",
        path=Path.EXPERIMENTS,
        scope=Scope.READ,
        is_paced=True,
        handler=of_experiments,
        summary="Return the sums of experiments, by arm and group of sessions.",
        query=wire.ExperimentsQuery,
        answers={200: wire.Experiments},
    ),
    _stats_route(
        path=Path.FLEET_STATS,
        scope=Scope.FLEET,
        handler=of_fleet,
        summary="Return the main figures of all tenants over time.",
    ),
)
