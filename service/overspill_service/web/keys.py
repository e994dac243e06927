"""Routes for the tenant's API keys: make, list, rotate and revoke them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from overspill import wire
from overspill.wire import Path, Scope

from overspill_service.audit.events import Action
from overspill_service.catalog.records import instant
from overspill_service.errors import Forbidden
from overspill_service.telemetry import logs
from overspill_service.web.registry import Route

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiohttp import web

    from overspill_service.archive.key_issuing import IssuedKey
    from overspill_service.catalog.key_records import KeyRecord
    from overspill_service.web.context import RequestContext


async def create(context: RequestContext[wire.NoQuery]) -> web.Response:
    async with context.body(wire.NewKey) as parameters:
        _require_own_scopes(context, parameters.scopes)
        issued = await context.service.issuer.issue(
            context.principal.tenant.name,
            parameters.scopes,
            now=context.service.archive.clock(),
            name=parameters.name,
            life=parameters.ttl,
            session=parameters.session,
            is_prefix=parameters.is_prefix,
        )
    logs.bind_fields(api_key=issued.record.id)
    return _issued(context, issued)


async def show(context: RequestContext[wire.NoQuery]) -> web.Response:
    service = context.service
    uses = await service.archive.catalog.uses()
    newest = {record.id: record for record in await service.issuer.of_tenant(context.principal.tenant.name)}
    return context.json(
        wire.Keys(keys=[_to_wire(record, uses.get(record.hash)) for record in newest.values()])
    )


async def rotate(context: RequestContext[wire.NoQuery]) -> web.Response:
    issuer = context.service.issuer
    async with context.body(wire.Rotation) as parameters:
        old = (await issuer.named(context.request.match_info["id"], context.principal.tenant.name))[-1]
        _require_own_scopes(context, old.scopes)
        now = context.service.archive.clock()
        issued = await issuer.rotate(old, now=now, life=parameters.ttl, overlap=parameters.overlap)
    logs.bind_fields(api_key=old.id, new_api_key=issued.record.id)
    return _issued(context, issued)


async def revoke(context: RequestContext[wire.NoQuery]) -> web.Response:
    found = await context.service.issuer.revoke(
        context.request.match_info["id"], context.principal.tenant.name
    )
    logs.bind_fields(api_key=found[-1].id)
    return context.json(_to_wire(found[-1], None))


def _require_own_scopes(context: RequestContext[wire.NoQuery], scopes: Iterable[Scope]) -> None:
    """Raise `Forbidden` if the new key could see other tenants, and the key that makes it cannot."""
    if Scope.FLEET in set(scopes) - context.principal.scopes:
        raise Forbidden("only a key with the scope fleet may make another one: it is about all tenants")


def _issued(context: RequestContext[wire.NoQuery], issued: IssuedKey) -> web.Response:
    return context.json(wire.IssuedKey(key=issued.key, about=_to_wire(issued.record, None)), status=201)


def _to_wire(record: KeyRecord, last_used: float | None) -> wire.Key:
    return wire.Key(
        id=record.id,
        name=record.name,
        scopes=record.scopes,
        session=record.session,
        is_prefix=record.is_prefix,
        created=instant(record.created),
        expires=None if record.expires is None else instant(record.expires),
        last_used=None if last_used is None else instant(last_used),
    )


ROUTES: Final = (
    Route(
        method="POST",
        path=Path.KEYS,
        scope=Scope.ADMIN,
        action=Action.KEY_CREATE,
        handler=create,
        summary="Make a key of the tenant. Only this answer shows the key.",
        body=wire.NewKey,
        answers={201: wire.IssuedKey},
    ),
    Route(
        method="GET",
        path=Path.KEYS,
        scope=Scope.ADMIN,
        action=Action.KEY_LIST,
        handler=show,
        summary="List the tenant's keys, with the time of their last use.",
        answers={200: wire.Keys},
    ),
    Route(
        method="POST",
        path=Path.KEY_ROTATION,
        scope=Scope.ADMIN,
        action=Action.KEY_ROTATE,
        handler=rotate,
        summary="Make a key with the rights of another. The other one works for some more days.",
        body=wire.Rotation,
        answers={201: wire.IssuedKey},
    ),
    Route(
        method="DELETE",
        path=Path.KEY,
        scope=Scope.ADMIN,
        action=Action.KEY_REVOKE,
        handler=revoke,
        summary="Revoke a key. Every replica refuses it within 15 seconds.",
        answers={200: wire.Key},
    ),
)
