"""Routes for observations of clients and for an operator's sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from overspill import wire
from overspill.wire import Path, Scope

from overspill_service.archive.sweep import sweep_expired
from overspill_service.web.registry import Route

if TYPE_CHECKING:
    from aiohttp import web

    from overspill_service.web.context import RequestContext


async def observe(context: RequestContext[wire.NoQuery]) -> web.Response:
    async with context.body(wire.Observations) as batch:
        tenant = context.principal.tenant.name
        name = f"observations:{tenant}:{batch.batch}"
        is_new = await context.service.archive.catalog.once(name, wire.BATCH_MEMORY)
        if is_new:
            for each in batch.observations:
                context.service.metrics.observation(tenant, each)
    return context.json(wire.Accepted(counted=is_new))


async def sweep(context: RequestContext[wire.NoQuery]) -> web.Response:
    removed = await sweep_expired(context.service.archive, context.principal.tenant.name)
    context.service.metrics.sweep(removed.captures, is_done=True)
    return context.json(removed)


ROUTES: Final = (
    Route(
        method="POST",
        path=Path.OBSERVATIONS,
        scope=Scope.OBSERVE,
        handler=observe,
        summary="Count tool outputs that a client saw; a batch counts once.",
        body=wire.Observations,
        answers={200: wire.Accepted},
    ),
    Route(
        method="POST",
        path=Path.SWEEP,
        scope=Scope.ADMIN,
        handler=sweep,
        summary="Remove the tenant's expired captures now.",
        answers={200: wire.Removed},
    ),
)
