"""Routes for dashboards: figures over time, the largest tools, and advice on these, in one answer."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  (msgspec reads the annotations)
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final

import msgspec
from overspill import wire
from overspill.advice.advice import advice_on
from overspill.advice.figures import ToolFigures, figures_of
from overspill.advice.policy_text import table_of
from overspill.advice.usual import usual_settings
from overspill.wire import Path, Scope

from overspill_service.catalog.records import instant
from overspill_service.catalog.statistics import FLEET
from overspill_service.web.buckets import Span, rows_of
from overspill_service.web.figures import of_largest
from overspill_service.web.registry import Route

if TYPE_CHECKING:
    from aiohttp import web

    from overspill_service.web.context import RequestContext

USUAL_SECONDS: Final = 86400.0
ANSWER_SIZE: Final = 16 * 2**20
"""Bytes of memory for an answer and the figures that it is made of."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A `wire.Overview` of which the series is encoded already."""

    since: datetime
    until: datetime
    step: int
    series: msgspec.Raw
    tools: list[wire.StatsRow]
    advice: list[wire.UsualAdvice]


async def of_tenant(context: RequestContext[wire.OverviewQuery]) -> web.Response:
    return await _answer(context, context.principal.tenant.name)


async def of_fleet(context: RequestContext[wire.OverviewQuery]) -> web.Response:
    return await _answer(context, FLEET)


async def _answer(context: RequestContext[wire.OverviewQuery], tenant: str) -> web.Response:
    archive, history = context.service.archive, context.service.history
    now = archive.clock()
    span = Span.of(context.query, now, USUAL_SECONDS)
    async with context.read_memory(ANSWER_SIZE):
        found = await history.figures(archive.catalog, tenant, span, now, context.query.tool)
        stats = wire.Stats(
            since=instant(span.since),
            until=instant(span.until),
            step=span.resolution.seconds,
            rows=rows_of(tenant, span.since, of_largest(found.total, context.query.top)),
        )
        return context.json(
            Answer(
                since=stats.since,
                until=stats.until,
                step=stats.step,
                series=msgspec.Raw(b"[" + b",".join(found.rows.values()) + b"]"),
                tools=stats.rows,
                advice=[] if tenant == FLEET else [_advice(each) for each in figures_of(stats)],
            )
        )


def _advice(figures: ToolFigures) -> wire.UsualAdvice:
    return _advice_on(msgspec.msgpack.encode(figures))


@lru_cache(maxsize=1_024)
def _advice_on(packed: bytes) -> wire.UsualAdvice:
    """Return the advice on packed figures. It is cached, because most tools' figures have not changed."""
    figures = msgspec.msgpack.decode(packed, type=ToolFigures)
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


_route: Final = partial(
    Route, method="GET", is_paced=True, query=wire.OverviewQuery, answers={200: wire.Overview}
)

ROUTES: Final = (
    _route(
        path=Path.OVERVIEW,
        scope=Scope.READ,
        handler=of_tenant,
        summary="Return what a dashboard shows: figures over time, the largest tools, and advice on these.",
    ),
    _route(
        path=Path.FLEET_OVERVIEW,
        scope=Scope.FLEET,
        handler=of_fleet,
        summary="Return the same for all tenants, without advice.",
    ),
)
