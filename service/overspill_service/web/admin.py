"""Observations from clients, and what operators ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from overspill import wire
from overspill.wire import Path, Scope

from overspill_service.archive.sweep import sweep_expired
from overspill_service.web.registry import Route

if TYPE_CHECKING:
    from aiohttp import web

    from overspill_service.web.call import Call


async def observe(call: Call[wire.NoQuery]) -> web.Response:
    async with call.body(wire.Observations) as batch:
        tenant = call.principal.tenant.name
        name = f"observations:{tenant}:{batch.batch}"
        is_new = await call.service.archive.catalog.once(name, wire.BATCH_MEMORY)
        if is_new:
            for each in batch.observations:
                call.service.metrics.observation(tenant, each)
    return call.json(wire.Accepted(counted=is_new))


async def sweep(call: Call[wire.NoQuery]) -> web.Response:
    removed = await sweep_expired(call.service.archive, call.principal.tenant.name)
    call.service.metrics.sweep(removed.captures, is_done=True)
    return call.json(removed)


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
