"""Wraps every request: it gets an id, a log line and metrics, and a failure becomes a problem."""

from __future__ import annotations

import logging
import re
import time
from contextlib import nullcontext
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from aiohttp import hdrs, web
from overspill.wire import ForeignRequest, Header, Path, require_own_origin

from overspill_service.errors import (
    CaptureDamaged,
    ForeignOrigin,
    OutOfResources,
    RateExceeded,
    ShuttingDown,
    Unavailable,
)
from overspill_service.resources.random_names import random_bytes
from overspill_service.telemetry import logs
from overspill_service.tenants.keys import KEY_PATTERN
from overspill_service.web import auditing, request_span
from overspill_service.web.exchange import EXCHANGE, Exchange
from overspill_service.web.expectations import is_waiting, require_known_expectation
from overspill_service.web.header_fields import (
    LONG_HEAD_BYTES,
    is_framed_plainly,
    require_small,
    require_well_formed,
)
from overspill_service.web.problems import (
    RATE_LIMIT,
    RATE_LIMIT_POLICY,
    SECURITY_HEADERS,
    allow_header,
    problem_of,
    response_of,
    underlying,
)
from overspill_service.web.service import SERVICE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractContextManager

_ALLOWED_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
UNKNOWN_ROUTE: Final = "unknown"
PROBES: Final = frozenset({Path.HEALTHZ, Path.READYZ})
HEALTH: Final = PROBES | {Path.METRICS}
CLIENT_CLOSED_REQUEST: Final = 499
"""The status for logs and metrics if the client hung up before the answer (nginx's 499)."""

_NO_SPAN: Final = nullcontext()

log = logging.getLogger("overspill_service.access")
failures = logging.getLogger(__name__)


@web.middleware
async def middleware(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Handle a request. Every failure becomes an answer; only a cancellation is raised."""
    start = time.perf_counter()
    service, transport, has_body = request.app[SERVICE], request.transport, request.body_exists
    address = service.addresses.of(request, service.connections.peer(transport))
    request[EXCHANGE] = exchange = Exchange(service, _request_id(request), _route_of(request), address)
    if service.audit.is_on:
        auditing.begin(request)
    with (
        logs.bound_fields(request_id=exchange.request_id, address=address) as exchange.fields,
        span_of(request, exchange),
        service.in_flight,
    ):
        response: web.StreamResponse | None = None
        service.connections.begin(transport, has_body=has_body)
        try:
            response = await _answer(request, exchange, handler)
            return response
        finally:
            _count_and_log(request, exchange, response, time.perf_counter() - start)
            try:
                if exchange.action is not None:
                    await auditing.end(request, None if response is None else response.status)
            finally:  # nothing waits between this and the writing of the answer: no refusal comes before it
                may_stay = service.connections.end(transport, request.content if has_body else None)
                if response is not None and not may_stay:
                    response.force_close()


def _count_and_log(
    request: web.Request, exchange: Exchange, response: web.StreamResponse | None, seconds: float
) -> None:
    """Count and log a request. `bytes` is the size of the answer, `received` the bytes read of the body."""
    status = None if response is None else response.status
    method, route, received = request.method, exchange.route, request.content.total_bytes
    size = (response and method != "HEAD" and response.content_length) or 0
    trace_id = request_span.end(exchange, status, received=received, sent=size)
    status = CLIENT_CLOSED_REQUEST if status is None else status
    metrics, field = exchange.service.metrics, exchange.fields.get
    metrics.request(route, method, status, seconds, trace_id)
    metrics.use(field("tenant", ""), field("key", ""), field("code", ""), received=received, sent=size)
    logs.log_request(
        log, f"{method} {route}", status=status, bytes=size, received=received, seconds=round(seconds, 6)
    )


async def _answer(
    request: web.Request,
    exchange: Exchange,
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
) -> web.StreamResponse:
    """Answer a request. A request without a tenant may have to wait, except those for health."""
    response = await _answer_now(request, exchange, handler)
    if exchange.is_admitted or exchange.route in PROBES:
        return response
    try:
        await exchange.service.rates.wait_for_turn(exchange.address)
    except RateExceeded as error:
        return response if exchange.response is not None else _problem_response(exchange, error)
    return response


async def _answer_now(
    request: web.Request,
    exchange: Exchange,
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
) -> web.StreamResponse:
    try:
        _require_connection(request, exchange)
        exchange.head_size = require_small(request)
        require_well_formed(request)
        require_known_expectation(request)
        _require_own_origin(request, exchange)
        return await handler(request)
    except Exception as error:  # noqa: BLE001  (the boundary: every failure becomes a problem)
        failure = underlying(error)
        if isinstance(failure, (Unavailable, CaptureDamaged)) and not isinstance(failure, ShuttingDown):
            exchange.service.failure_log.record(failure)
        if exchange.response is not None:
            _abort(request, exchange, failure)
            return exchange.response
        return _problem_response(exchange, failure)


def _require_connection(request: web.Request, exchange: Exchange) -> None:
    """Raise `OutOfResources` if the connection is reserved for health checks."""
    connections = exchange.service.connections
    if connections.is_reserved(request.transport) and exchange.route not in HEALTH:
        taken = f"all of {connections.limit} connections are taken"
        if not connections.is_full:
            taken = f"your address has the {connections.share} connections that one address may have"
        error = OutOfResources(f"{taken}; try again in a moment")
        error.failure_name = "connections"
        raise error


def _require_own_origin(request: web.Request, exchange: Exchange) -> None:
    """Raise `ForeignOrigin` for a request that a page of another site has sent, or that names another host.

    Balancers ask for health by names of their own.
    """
    if exchange.route in PROBES:
        return
    try:
        is_page = exchange.route == Path.INDEX
        require_own_origin(request.headers, exchange.service.hosts, is_page=is_page)
    except ForeignRequest as error:
        raise ForeignOrigin(f"{error}; an operator can add host names with --hosts") from error


async def set_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Set the headers of every answer just before it is sent, and note that it has begun."""
    exchange = request[EXCHANGE]
    exchange.response = response
    headers = response.headers
    headers[Header.REQUEST_ID] = exchange.request_id
    for name, value in SECURITY_HEADERS.items():
        if name not in headers:
            headers[name] = value
    if exchange.key_expires:
        headers[Header.KEY_EXPIRES] = exchange.key_expires
    if exchange.bucket is not None and RATE_LIMIT not in headers:
        headers[RATE_LIMIT_POLICY] = exchange.bucket.policy
        headers[RATE_LIMIT] = exchange.bucket.state
    service = exchange.service
    is_last = service.is_stopping or service.connections.is_full or exchange.head_size > LONG_HEAD_BYTES
    if is_last or is_waiting(request) or not is_framed_plainly(request):
        response.force_close()
        headers[hdrs.CONNECTION] = "close"  # aiohttp has set the header before it calls this


def _problem_response(exchange: Exchange, error: Exception) -> web.Response:
    problem = problem_of(error, exchange.request_id)
    exchange.service.metrics.problem(problem.code)
    logs.bind_fields(code=problem.code)
    if problem.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        logs.bind_fields(detail=problem.detail, cause=logs.causes(error))
    response = response_of(problem, error)
    if isinstance(error, web.HTTPException):
        response.headers.update(allow_header(error))
    return response


def _abort(request: web.Request, exchange: Exchange, error: Exception) -> None:
    """Abort the connection. After the first byte of an answer nothing else can report a failure."""
    if not isinstance(error, ConnectionError):  # that means the client has hung up
        problem = problem_of(error, exchange.request_id)
        exchange.service.metrics.problem(problem.code)
        details = logs.fields(code=problem.code, detail=problem.detail, cause=logs.causes(error))
        failures.error("broke off an answer", extra=details)
        if exchange.span is not None:
            exchange.span.fail(problem.code)
    if request.transport is not None:
        request.transport.abort()


def _request_id(request: web.Request) -> str:
    """Return the request's id: the client's if it is harmless and not a key, else a new one."""
    request_id = request.headers.get(Header.REQUEST_ID)
    is_allowed = (
        request_id is not None and _ALLOWED_ID.fullmatch(request_id) and not KEY_PATTERN.search(request_id)
    )
    return request_id if request_id is not None and is_allowed else random_bytes(8).hex()


def span_of(request: web.Request, exchange: Exchange) -> AbstractContextManager[None]:
    """Return the block of the request's span. Requests that machines repeat all the time have none."""
    spans, route = exchange.service.spans, exchange.route
    if spans is None or route in HEALTH:
        return _NO_SPAN
    return request_span.serving(spans, request, None if route == UNKNOWN_ROUTE else route)


def _route_of(request: web.Request) -> str:
    resource = request.match_info.route.resource
    return resource.canonical if resource is not None else UNKNOWN_ROUTE
