"""What every request passes: it gets an id, a log line and metrics, and its failure becomes a problem."""

from __future__ import annotations

import logging
import re
import secrets
import time
from contextlib import nullcontext
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from aiohttp import hdrs, web
from overspill.wire import PROBLEM_TYPE, ForeignRequest, Header, Path, require_own_origin

from overspill_service.errors import (
    CaptureDamaged,
    ExpectationFailed,
    ForeignOrigin,
    OutOfResources,
    ShuttingDown,
    Unavailable,
)
from overspill_service.telemetry import logs
from overspill_service.web import auditing, request_span
from overspill_service.web.client_address import CLIENT_ADDRESS
from overspill_service.web.header_fields import is_framed_plainly, require_small, require_well_formed
from overspill_service.web.problems import allow_header, problem_of, response_of, underlying
from overspill_service.web.registry import KEY_EXPIRES
from overspill_service.web.service import SERVICE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractContextManager

_ALLOWED_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
REQUEST_ID: Final = web.RequestKey("identity", str)
STARTED_RESPONSE: Final = web.RequestKey("begun", web.StreamResponse)
"""The response whose header may have been sent already."""
UNKNOWN_ROUTE: Final = "unknown"
PROBES: Final = frozenset({Path.HEALTHZ, Path.READYZ})
HEALTH: Final = PROBES | {Path.METRICS}
SECURITY_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    hdrs.CACHE_CONTROL: "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    hdrs.SERVER: "overspill",
}
"""Headers of every answer that has no other value of its own. Browsers keep and pass on nothing of it."""
CLIENT_CLOSED_REQUEST: Final = 499
"""The status for logs and metrics if the client hung up before the answer (nginx's 499)."""

_EXPECTATION: Final = ExpectationFailed("Expect may be 100-continue and nothing else")

log = logging.getLogger("overspill_service.access")
failures = logging.getLogger(__name__)


@web.middleware
async def middleware(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Handle a request. Every failure becomes an answer; only a cancellation is raised."""
    start = time.perf_counter()
    request[REQUEST_ID] = request_id = _request_id(request)
    response: web.StreamResponse | None = None
    request[CLIENT_ADDRESS] = address = request.app[SERVICE].addresses.of(request)
    auditing.begin(request)
    with logs.bound_fields(request_id=request_id, address=address), _span_of(request):
        try:
            service = request.app[SERVICE]
            with service.in_flight, service.connections.busy(request.transport, has_body=request.body_exists):
                response = await _answer(request, handler, request_id)
            return response
        finally:
            _count_and_log(request, response, time.perf_counter() - start)
            await auditing.end(request, None if response is None else response.status)


def _count_and_log(request: web.Request, response: web.StreamResponse | None, seconds: float) -> None:
    """Count and log a request. `bytes` is the size of the answer, `received` the bytes read of the body."""
    status = CLIENT_CLOSED_REQUEST if response is None else response.status
    route = _route_of(request)
    size = (response and request.method != "HEAD" and response.content_length) or 0
    received = request.content.total_bytes
    metrics = request.app[SERVICE].metrics
    answered = None if response is None else response.status
    trace_id = request_span.end(request, answered, received=received, sent=size)
    metrics.request(route, request.method, status, seconds, trace_id)
    metrics.use(
        logs.bound_field("tenant"),
        logs.bound_field("key"),
        logs.bound_field("code"),
        received=received,
        sent=size,
    )
    if log.isEnabledFor(logging.INFO):
        fields = {"status": status, "bytes": size, "received": received, "seconds": round(seconds, 6)}
        log.info("%s %s", request.method, route, extra=logs.fields(**fields))


async def _answer(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]], request_id: str
) -> web.StreamResponse:
    try:
        _require_connection(request)
        require_small(request)
        require_well_formed(request)
        _require_own_origin(request)
        return await handler(request)
    except Exception as error:  # noqa: BLE001  (the boundary: every failure becomes a problem)
        failure = underlying(error)
        if isinstance(failure, (Unavailable, CaptureDamaged)) and not isinstance(failure, ShuttingDown):
            request.app[SERVICE].failure_log.record(failure)
        if STARTED_RESPONSE in request:
            return _abort(request, failure, request_id)
        return _problem_response(request, failure, request_id)


def _require_connection(request: web.Request) -> None:
    """Raise `OutOfResources` if the connection is reserved for health checks."""
    connections = request.app[SERVICE].connections
    if connections.is_reserved(request.transport) and _route_of(request) not in HEALTH:
        error = OutOfResources(f"all of {connections.limit} connections are taken; try again in a moment")
        error.failure_name = "connections"
        raise error


def _require_own_origin(request: web.Request) -> None:
    """Raise `ForeignOrigin` for what a page of another site has sent, or what was sent to another host.

    Balancers ask for health by names of their own.
    """
    route = _route_of(request)
    if route in PROBES:
        return
    hosts, is_page = request.app[SERVICE].hosts, route == Path.INDEX
    try:
        require_own_origin(request.headers, hosts, is_page=is_page)
    except ForeignRequest as error:
        raise ForeignOrigin(f"{error}; an operator can add host names with --hosts") from error


async def set_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Set the headers of every answer just before it is sent, and note that it has begun.

    aiohttp refuses an unknown `Expect` before it calls the middleware: here that answer becomes a problem.
    """
    request[STARTED_RESPONSE] = response
    request_id = request.get(REQUEST_ID) or _request_id(request)
    if isinstance(response, web.HTTPExpectationFailed):
        response.body = _problem_response(request, _EXPECTATION, request_id).body
        response.content_type, response.charset = PROBLEM_TYPE, None
    response.headers[Header.REQUEST_ID] = request_id
    for name, value in SECURITY_HEADERS.items():
        response.headers.setdefault(name, value)
    if KEY_EXPIRES in request:
        response.headers[Header.KEY_EXPIRES] = request[KEY_EXPIRES]
    service = request.app[SERVICE]
    if service.is_stopping or service.connections.is_full or not is_framed_plainly(request):
        response.force_close()
        response.headers[hdrs.CONNECTION] = "close"  # aiohttp has set the header before it calls this


def _problem_response(request: web.Request, error: Exception, request_id: str) -> web.Response:
    problem = problem_of(error, request_id)
    request.app[SERVICE].metrics.problem(problem.code)
    logs.bind_fields(code=problem.code)
    if problem.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        logs.bind_fields(detail=problem.detail, cause=logs.causes(error))
    response = response_of(problem)
    if isinstance(error, web.HTTPException):
        response.headers.update(allow_header(error))
    return response


def _abort(request: web.Request, error: Exception, request_id: str) -> web.StreamResponse:
    """Abort the connection. After the first byte of an answer nothing else can report a failure."""
    if not isinstance(error, ConnectionError):  # that means the client has hung up
        problem = problem_of(error, request_id)
        request.app[SERVICE].metrics.problem(problem.code)
        details = logs.fields(code=problem.code, detail=problem.detail, cause=logs.causes(error))
        failures.error("broke off an answer", extra=details)
        request_span.fail(request, problem.code)
    if request.transport is not None:
        request.transport.abort()
    return request[STARTED_RESPONSE]


def _request_id(request: web.Request) -> str:
    """Return the request's id: the client's if it is harmless, else a new one."""
    given = request.headers.get(Header.REQUEST_ID, "")
    return given if _ALLOWED_ID.fullmatch(given) else secrets.token_hex(8)


def _span_of(request: web.Request) -> AbstractContextManager[None]:
    """Return the block of the request's span. What is asked again and again by machines has none."""
    route = _route_of(request)
    if route in HEALTH:
        return nullcontext()
    return request_span.serving(request, None if route == UNKNOWN_ROUTE else route)


def _route_of(request: web.Request) -> str:
    resource = request.match_info.route.resource
    return resource.canonical if resource is not None else UNKNOWN_ROUTE
