"""Routes for dashboards: figures over time, the tools with the most, and advice on these, in one answer."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final

from overspill import wire
from overspill.advice.advice import advice_on
from overspill.advice.figures import figures_of
from overspill.advice.policy_text import table_of
from overspill.advice.usual import usual_settings
from overspill.wire import Path, Scope

from overspill_service.catalog.records import instant
from overspill_service.catalog.statistics import FLEET, OTHER, Cell, add_to
from overspill_service.web.buckets import Span, rows_of
from overspill_service.web.registry import Route

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiohttp import web
    from overspill.advice.figures import ToolFigures

    from overspill_service.catalog.statistics import Sums
    from overspill_service.web.context import RequestContext
    from overspill_service.web.history import Figures

USUAL_SECONDS: Final = 86400.0
ANSWER_SIZE: Final = 16 * 2**20
"""Bytes of memory for an answer with what it is made of."""


async def of_tenant(context: RequestContext[wire.OverviewQuery]) -> web.Response:
    return await _answer(context, context.principal.tenant.name)


async def of_fleet(context: RequestContext[wire.OverviewQuery]) -> web.Response:
    return await _answer(context, FLEET)


async def _answer(context: RequestContext[wire.OverviewQuery], tenant: str) -> web.Response:
    archive, history = context.service.archive, context.service.history
    now = archive.clock()
    asked = Span.of(context.query, now, USUAL_SECONDS)
    async with archive.memory.reads.shares(ANSWER_SIZE):
        parts = await history.figures(archive.catalog, tenant, asked, now)
        tools = _largest(tenant, parts, context.query.top, asked.since)
        stats = wire.Stats(
            since=instant(asked.since),
            until=instant(asked.until),
            step=asked.resolution.seconds,
            rows=tools,
        )
        return context.json(
            wire.Overview(
                since=stats.since,
                until=stats.until,
                step=stats.step,
                series=[
                    row
                    for part in parts
                    for at, sums in part.series.items()
                    for row in rows_of(tenant, at, sums)
                ],
                tools=tools,
                advice=[] if tenant == FLEET else [_advice(each) for each in figures_of(stats)],
            )
        )


def _largest(tenant: str, parts: Iterable[Figures], top: int, since: float) -> list[wire.StatsRow]:
    """Return the rows of the tools that kept the most bytes out of conversations, and of the rest."""
    kept_out: dict[str, int] = {}
    rest: Sums = {}
    for part in parts:
        for tool in part.tools:
            kept_out[tool] = kept_out.get(tool, 0) + part.kept_out.get(tool, 0)
        for sums in part.series.values():
            add_to(rest, sums)
    kept_out.pop(OTHER, None)
    rows: list[wire.StatsRow] = []
    for _, tool in heapq.nlargest(top, zip(kept_out.values(), kept_out, strict=True)):
        own: Sums = {}
        for part in parts:
            add_to(own, part.tools.get(tool, {}))
        add_to(rest, {Cell(cell.figure, "", cell.outcome): -amount for cell, amount in own.items()})
        rows += rows_of(tenant, since, own)
    others = {Cell(cell.figure, OTHER, cell.outcome): amount for cell, amount in rest.items() if amount}
    return rows + rows_of(tenant, since, others)


def _advice(figures: ToolFigures) -> wire.UsualAdvice:
    usual = usual_settings(figures.tool)
    found = advice_on(figures, usual)
    changes = {"max_bytes": found.max_bytes, "strategy": found.strategy}
    settings = {name: value for name, value in changes.items() if value is not None}
    return wire.UsualAdvice(
        tool=found.tool,
        max_bytes=found.max_bytes,
        strategy=found.strategy,
        reasons=found.reasons,
        missing=found.missing,
        usual_max_bytes=usual.max_bytes,
        usual_strategy=usual.strategy,
        policy=table_of(found.tool, settings, found.reasons) if settings else "",
    )


def _route(path: str, scope: Scope, handler: object, summary: str) -> Route:
    return Route(
        method="GET",
        path=path,
        scope=scope,
        is_paced=True,
        handler=handler,  # type: ignore[arg-type]  # both handlers take this query
        summary=summary,
        query=wire.OverviewQuery,
        answers={200: wire.Overview},
    )


ROUTES: Final = (
    _route(
        Path.OVERVIEW,
        Scope.READ,
        of_tenant,
        "What a dashboard shows: figures over time, the tools with the most, and advice on these.",
    ),
    _route(Path.FLEET_OVERVIEW, Scope.FLEET, of_fleet, "The same of all tenants, without advice."),
)
