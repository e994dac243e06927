"""Routes for observations of clients and for an operator's sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from overspill import wire
from overspill.wire import Path, Scope

from overspill_service.archive.sweep import sweep_expired
from overspill_service.audit.events import Action
from overspill_service.catalog.backlogs import Backlog
from overspill_service.resources.tasks import run_to_completion
from overspill_service.web.instants import seconds_of
from overspill_service.web.registry import Route

if TYPE_CHECKING:
    from aiohttp import web

    from overspill_service.web.context import RequestContext


async def observe(context: RequestContext[wire.NoQuery]) -> web.Response:
    service, tenant = context.service, context.principal.tenant.name
    async with context.body(wire.Observations) as batch:
        counting = service.metrics.observe(service.archive.catalog, tenant, batch, service.archive.clock())
        is_new = await run_to_completion(counting)  # in the catalog and in the metrics, or in neither
    if batch.backlog is not None:
        await _note_backlog(context, tenant, batch.backlog)
    return context.json(wire.Accepted(counted=is_new))


async def _note_backlog(
    context: RequestContext[wire.NoQuery], tenant: str, reported: wire.SpoolBacklog
) -> None:
    archive = context.service.archive
    now = archive.clock()
    oldest = now if reported.oldest is None else min(seconds_of(reported.oldest), now)
    backlog = Backlog(reported.captures, reported.size, oldest)
    await archive.catalog.note_backlog(tenant, reported.spool, backlog, now=now, keep=wire.BACKLOG_MEMORY)


async def sweep(context: RequestContext[wire.NoQuery]) -> web.Response:
    removed = await sweep_expired(context.service.archive, context.principal.tenant.name)
    context.service.metrics.sweep(removed.captures, is_done=True)
    return context.json(removed)


ROUTES: Final = (
    Route(
        method="POST",
        path=Path.OBSERVATIONS,
        scope=Scope.OBSERVE,
        is_of_session=True,
        is_paced=True,
        handler=observe,
        summary="Count tool outputs that a client saw. A batch that is sent again counts once.",
        body=wire.Observations,
        answers={200: wire.Accepted},
    ),
    Route(
        method="POST",
        path=Path.SWEEP,
        scope=Scope.ADMIN,
        action=Action.SWEEP,
        handler=sweep,
        summary="Remove the tenant's expired captures now.",
        answers={200: wire.Removed},
    ),
)
