"""The route registry. Each route is declared once; router, description and tests are made from it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
from aiohttp import hdrs, web
from overspill.wire import CAPTURE_ID, NoQuery, Path, Scope

from overspill_service.audit.events import Action
from overspill_service.errors import Forbidden, InvalidParameter, ObjectMissing
from overspill_service.web import auditing
from overspill_service.web.conditions import SAFE, are_given, is_not_modified
from overspill_service.web.context import RequestContext, paused_reading
from overspill_service.web.exchange import EXCHANGE, Exchange
from overspill_service.web.expectations import note_expectation
from overspill_service.web.header_fields import list_field
from overspill_service.web.instants import text_of
from overspill_service.web.negotiation import require_identity
from overspill_service.web.service import SERVICE, Service
from overspill_service.web.streaming import send_made
from overspill_service.web.validation_text import query_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from msgspec import Struct

    from overspill_service.resources.admission import Admitted
    from overspill_service.tenants.directory import Principal


class Access(Enum):
    """The access of a route that needs no scope."""

    PUBLIC = "public"
    """Nor any key."""
    ANY_KEY = "any key"
    SCRAPER = "scraper"
    """Nor any key, for who may scrape by its address; others need the scope fleet."""


PUBLIC: Final = Access.PUBLIC
ANY_KEY: Final = Access.ANY_KEY
SCRAPER: Final = Access.SCRAPER
FREQUENT: Final = frozenset({Path.CAPTURE, Path.APPEND, Path.HEAD, Path.TAIL, Path.GREP})
"""Paths that come first: aiohttp compares them one after the other."""
SECONDS_BY_BYTE_RECEIVED: Final = 200e-9
SECONDS_BY_BYTE_SENT: Final = 30e-9
"""CPU seconds for each byte, as measured: of reports of observations, and of listings."""
_NO_QUERY: Final = NoQuery()
_PARAMETER: Final = re.compile(r"\{(\w+)\}")
"""A parameter in a path. aiohttp's own takes no braces, which tool calls and sessions may have."""


@dataclass(frozen=True, kw_only=True)
class Route:
    """One route. `answers` maps a status to a struct, to a media type of a body of bytes, or to nothing."""

    method: str
    path: str
    scope: Scope | Access
    handler: Callable[[RequestContext[Any]], Awaitable[web.StreamResponse]]
    summary: str
    query: type[Struct] = NoQuery
    headers: Mapping[str, str] = field(default_factory=dict)
    body: type[Struct] | str | None = None
    answers: Mapping[int, type[Struct] | str | None]
    is_text: bool = False
    """The answer is also available as text/plain."""
    is_of_session: bool = False
    """Keys that are bound to sessions may use it: it tells and changes nothing of other sessions."""
    action: Action | None = None
    """The name in the audit log; None if it is not logged there."""
    is_paced: bool = False
    """It may keep the event loop busy for long. A tenant may do so for a fifth of the time."""
    is_negotiated: bool = False
    """The handler itself negotiates the coding and evaluates preconditions. For other routes the registry
    does.
    """

    def __post_init__(self) -> None:
        if not isinstance(self.scope, Scope | Access):
            raise TypeError(f"{self.method} {self.path} needs a scope, ANY_KEY or PUBLIC")

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def needed(self) -> Scope | None:
        """The scope of a key that is asked for, if any is."""
        if self.scope is SCRAPER:
            return Scope.FLEET
        return self.scope if isinstance(self.scope, Scope) else None


capture_read: Final = partial(
    Route, method="GET", scope=Scope.READ, is_of_session=True, action=Action.CAPTURE_READ
)
"""Declares a route that reads a capture."""
capture_store: Final = partial(Route, scope=Scope.WRITE, is_of_session=True, action=Action.CAPTURE_STORE)
"""Declares a route that stores one."""


class RouteTable:
    """Routes as aiohttp has them, for any number of applications. A GET also answers HEAD."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._router = web.UrlDispatcher()
        self._actions: dict[tuple[str, str], Action] = {}
        resources: dict[str, web.Resource] = {}
        for route in sorted(routes, key=lambda each: each.path not in FREQUENT):
            if route.path not in resources:
                resources[route.path] = self._router.add_resource(_PARAMETER.sub(r"{\1:[^/]+}", route.path))
            self._add(resources[route.path], route)

    def _add(self, resource: web.Resource, route: Route) -> None:
        handler = partial(_handle, route)
        for method in ("GET", "HEAD") if route.method == "GET" else (route.method,):
            resource.add_route(method, handler, expect_handler=note_expectation)
            if route.action is not None:
                self._actions[method, route.path] = route.action

    def add_to(self, app: web.Application) -> None:
        """Give the application these routes, and what the audit log calls each."""
        for resource in self._router.resources():
            app.router.register_resource(resource)
        app[auditing.ACTIONS] = self._actions


async def _handle(route: Route, request: web.Request) -> web.StreamResponse:
    """Answer a request for a route, or refuse it."""
    service = request.app[SERVICE]
    if service.audit.is_on:
        await auditing.require_log(service, request)
    if route.scope is SCRAPER:
        service.rates.count_scrape(request[EXCHANGE].address)
    if _is_open(service, route, request):  # health is told also in the middle of a flood
        response = await _serve(route, request, service.directory.anonymous())
        return await _sent(service, request, "", response)
    principal = await _principal(service, request)
    admitted = await _admitted(service, request, principal)
    request[EXCHANGE].is_admitted = True
    try:
        request[EXCHANGE].bucket = service.rates.count(principal)
        _require(route, principal)
        response = await _serve(route, request, principal)
    finally:
        admitted.end()
    return await _sent(service, request, principal.tenant.name, response)


async def _serve(route: Route, request: web.Request, principal: Principal) -> web.StreamResponse:
    """Answer a request that is allowed."""
    service, ref = request.app[SERVICE], request.match_info.get("ref")
    if ref is not None and CAPTURE_ID.fullmatch(ref):
        request[EXCHANGE].fields["capture"] = ref
    query = _parse(route.query, request)
    with service.live_views.memory(principal.tenant.name) as buffers:
        context = RequestContext(request, service, principal, query, buffers)
        return await (_paced if route.is_paced else _answer)(route, context)


async def _sent(
    service: Service, request: web.Request, tenant: str, response: web.StreamResponse
) -> web.StreamResponse:
    """Return the answer, once a long one is sent."""
    if isinstance(response, web.Response):
        await send_made(request, response, service.unsent, tenant, service.settings.write_timeout)
    return response


def _is_open(service: Service, route: Route, request: web.Request) -> bool:
    """Return whether the request needs no key."""
    if route.scope is SCRAPER:
        return service.addresses.may_scrape(request, request[EXCHANGE].address)
    return route.scope is PUBLIC


async def _principal(service: Service, request: web.Request) -> Principal:
    exchange = request[EXCHANGE]
    principal = await service.authenticator.principal(request, exchange.address)
    _note_principal(exchange, principal)
    if principal.expiry is not None and principal.expiry.is_near(service.archive.clock()):
        exchange.key_expires = text_of(principal.expiry.at)
    return principal


async def _admitted(service: Service, request: web.Request, principal: Principal) -> Admitted:
    """Wait until the request is admitted. Until then, no more of its body is read. Raises `Overloaded`."""
    admission, tenant = service.admission, principal.tenant.name
    service.mix.note(tenant)
    if (admitted := admission.try_admit(tenant, request.transport)) is not None:
        return admitted
    with paused_reading(request.transport if request.body_exists else None):
        return await admission.wait(tenant, request.transport)


def _require(route: Route, principal: Principal) -> None:
    """Raise `Forbidden` if the key may not use the route."""
    if route.needed is not None:
        principal.require(route.needed)
    if principal.session is not None and not route.is_of_session:
        raise Forbidden(f"the key is bound to {principal.session}, and this is about all sessions")


async def _paced(route: Route, context: RequestContext[Any]) -> web.StreamResponse:
    async with context.service.loop_time.account(context.principal.tenant.name) as account:
        response = await _answer(route, context)
        received, sent = context.request.content.total_bytes, response.content_length or response.body_length
        account.charge(received * SECONDS_BY_BYTE_RECEIVED + sent * SECONDS_BY_BYTE_SENT)
    return response


async def _answer(route: Route, context: RequestContext[Any]) -> web.StreamResponse:
    """Answer. If a capture is removed during the read, answer as for a removed one.

    If it is stored again, read it again, unless a part of the answer is sent.
    """
    while True:
        try:
            return await (route.handler(context) if route.is_negotiated else _conditional(route, context))
        except ObjectMissing as error:
            is_begun = context.request.writer.output_size > 0
            if is_begun or await context.captures.is_lost(error.capture, error.upload):
                raise


async def _conditional(route: Route, context: RequestContext[Any]) -> web.StreamResponse:
    """Answer for a resource with one representation and no entity tag.

    Preconditions count only if the request would succeed without them (RFC 9110, section 13.2.1).
    """
    headers, method = context.request.headers, context.request.method
    if method in SAFE:
        require_identity(list_field(headers, hdrs.ACCEPT_ENCODING))
        response = await route.handler(context)
        is_same = are_given(headers) and is_not_modified(headers, method, None)
        return web.Response(status=304) if is_same else response
    if are_given(headers):
        if "ref" in context.request.match_info:
            await context.entry()
        is_not_modified(headers, method, None)
    return await route.handler(context)


def _note_principal(exchange: Exchange, principal: Principal) -> None:
    """Add who sends the request to its log fields, before anything can refuse it."""
    exchange.fields["tenant"] = principal.tenant.name
    if principal.key_id:
        exchange.fields["key"] = principal.key_id
    if principal.subject:
        exchange.fields["subject"] = principal.subject
    exchange.are_reads_audited = principal.tenant.audits_reads


def _parse(kind: type[Struct], request: web.Request) -> Struct:
    """Return the query as its struct. Raises `InvalidParameter` that names what is allowed."""
    if kind is NoQuery and not request.query_string:
        return _NO_QUERY
    values = _values(request) if request.query_string else {}
    unknown = values.keys() - set(kind.__struct_fields__)
    if unknown:
        allowed = ", ".join(kind.__struct_fields__) or "none"
        raise InvalidParameter(f"unknown parameter {min(unknown)[:100]!r}; this path takes: {allowed}")
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidParameter(query_text(error, kind)) from error


def _values(request: web.Request) -> dict[str, str]:
    """Return the parameters of the query. Raises `InvalidParameter` for one that is given twice."""
    values: dict[str, str] = {}
    for name, value in request.query.items():
        if name in values:
            raise InvalidParameter(f"the parameter {name} is given twice")
        values[name] = value
    return values
