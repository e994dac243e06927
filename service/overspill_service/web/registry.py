"""The route registry: each route is declared once; router, documentation and tests are made from it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import msgspec
from overspill.wire import NoQuery, Path, Scope

from overspill_service.errors import InvalidParameter
from overspill_service.web.call import Call
from overspill_service.web.service import SERVICE, Service

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from aiohttp import web
    from msgspec import Struct

    from overspill_service.tenants import Principal


class Access(Enum):
    """What a route that needs no key says instead of a scope."""

    PUBLIC = "public"


PUBLIC: Final = Access.PUBLIC


@dataclass(frozen=True, kw_only=True)
class Route:
    """One route. `answers` maps statuses to a struct, to a media type for a body of bytes, or to nothing."""

    method: str
    path: str
    scope: Scope | Access
    handler: Callable[[Call[Any]], Awaitable[web.StreamResponse]]
    summary: str
    query: type[Struct] = NoQuery
    headers: Mapping[str, str] = field(default_factory=dict)
    body: type[Struct] | str | None = None
    answers: Mapping[int, type[Struct] | str | None]
    is_text: bool = False
    """The answer also comes as text/plain."""

    def __post_init__(self) -> None:
        if not isinstance(self.scope, Scope | Access):
            raise TypeError(f"{self.method} {self.path} needs a scope, or PUBLIC")

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"


def bind(app: web.Application, routes: Iterable[Route]) -> None:
    """Add the routes to the application; a GET answers HEAD too."""
    for route in routes:
        resource = app.router.add_resource(route.path)
        handler = _bound(route)
        resource.add_route(route.method, handler)
        if route.method == "GET":
            resource.add_route("HEAD", handler)


def _bound(route: Route) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        service = request.app[SERVICE]
        principal = await _principal(service, route, request)
        query = _parse(route.query, request)
        return await route.handler(Call(request, service, principal, query))

    return handle


async def _principal(service: Service, route: Route, request: web.Request) -> Principal:
    if isinstance(route.scope, Access):
        return service.directory.anonymous()
    return await service.gate.principal(request, route.scope)


def _parse(kind: type[Struct], request: web.Request) -> Struct:
    """The query as its struct. Raises `InvalidParameter`, naming what is allowed."""
    values: dict[str, str] = {}
    for name, value in request.query.items():
        if name in values:
            raise InvalidParameter(f"the parameter {name} is given twice")
        values[name] = value
    unknown = values.keys() - set(kind.__struct_fields__)
    if unknown:
        allowed = ", ".join(kind.__struct_fields__) or "none"
        raise InvalidParameter(f"unknown parameter {min(unknown)[:100]!r}; this path takes: {allowed}")
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidParameter(f"{error}".replace("`$.", "`")) from error


def made_private(route: Route) -> Route:
    """The route as it is where figures are not for everyone."""
    return replace(route, scope=Scope.ADMIN) if route.path == Path.METRICS else route
