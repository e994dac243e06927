"""Routes for liveness, readiness and metrics."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec
from aiohttp import hdrs, web
from overspill.wire import Path

from overspill_service.errors import DeadlineExceeded, ServiceError, ShuttingDown
from overspill_service.telemetry.scrapes import OPENMETRICS, PLAIN
from overspill_service.web.negotiation import prefers_openmetrics
from overspill_service.web.registry import PUBLIC, SCRAPER, Route

if TYPE_CHECKING:
    from overspill import wire

    from overspill_service.archive.archive import Archive
    from overspill_service.web.context import RequestContext

PROBE_SECONDS: Final = 5.0


class Health(msgspec.Struct, frozen=True):
    status: str


async def live(context: RequestContext[wire.NoQuery]) -> web.Response:
    return context.json(Health("ok"))


async def ready(context: RequestContext[wire.NoQuery]) -> web.Response:
    """Answer 200 if requests can be served: the process is not stopping, and both back ends answer."""
    if context.service.is_stopping:
        raise ShuttingDown("this replica is stopping")
    try:
        await _require_answers(context.service.archive)
    except ServiceError:
        context.service.flusher.producers.begin()  # from now on balancers let none be heard here
        raise
    return context.json(Health("ok"))


async def _require_answers(archive: Archive) -> None:
    """Raise `ServiceError` unless both back ends answer."""
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            await archive.catalog.ping()
            await archive.store.ping()
    except TimeoutError as error:
        raise DeadlineExceeded(f"a back end did not answer within {PROBE_SECONDS:g} s") from error


async def metrics(context: RequestContext[wire.NoQuery]) -> web.Response:
    accept = ",".join(context.request.headers.getall(hdrs.ACCEPT, ()))
    format_ = OPENMETRICS if prefers_openmetrics(accept) else PLAIN
    text = await context.service.scrapes.text(format_)
    return web.Response(body=text, headers={"Content-Type": format_.content_type})


ROUTES: Final = (
    Route(
        method="GET",
        path=Path.HEALTHZ,
        scope=PUBLIC,
        handler=live,
        summary="Return 200 if the process runs.",
        answers={200: Health},
    ),
    Route(
        method="GET",
        path=Path.READYZ,
        scope=PUBLIC,
        handler=ready,
        summary="Return 200 if requests can be served.",
        answers={200: Health},
    ),
    Route(
        method="GET",
        path=Path.METRICS,
        scope=SCRAPER,
        handler=metrics,
        summary="Return the metrics of all tenants, for Prometheus. Addresses in `metrics_from` need no key.",
        answers={200: "text/plain"},
    ),
)
