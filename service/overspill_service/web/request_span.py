"""The span of a request: what of the request is in it."""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager, nullcontext
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from aiohttp import web

from overspill_service.telemetry import logs
from overspill_service.telemetry.metrics import METHODS
from overspill_service.web.service import SERVICE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from overspill_service.telemetry.spans import RequestSpan, Spans

_SPAN: Final[web.RequestKey[RequestSpan]] = web.RequestKey("span")
_NONE: Final[AbstractContextManager[None]] = nullcontext()


def serving(request: web.Request, route: str | None) -> AbstractContextManager[None]:
    """Return the block of the request's span. Without a tracer provider nothing happens in it.

    `route` is None if the path is of no route. Then the span does not have the path: anything may be in it.
    """
    spans = request.app[SERVICE].spans
    return _NONE if spans is None else _span(spans, request, route)


@contextmanager
def _span(spans: Spans, request: web.Request, route: str | None) -> Iterator[None]:
    method = request.method if request.method in METHODS else "_OTHER"
    found = {"http.request.method": method, "url.scheme": request.scheme}
    if route is not None:
        found |= {"http.route": route, "url.path": request.rel_url.raw_path}
    name = "HTTP" if method == "_OTHER" else method
    with spans.serving(f"{name} {route}" if route else name, request.headers, found) as span:
        request[_SPAN] = span
        logs.bind_fields(trace_id=span.trace_id, span_id=span.span_id)
        yield


def end(request: web.Request, status: int | None, *, received: int, sent: int) -> str:
    """Note how a request ended. Return the id of its trace if it is sampled, else nothing.

    `status` is None if the client has hung up. `received` and `sent` are the bytes of the two bodies.
    """
    span = request.get(_SPAN)
    if span is None:
        return ""
    code = logs.bound_field("code")
    facts: dict[str, str | int | None] = {
        "http.response.status_code": status,
        "http.request.body.size": received,
        "http.response.body.size": sent,
        "overspill.tenant": logs.bound_field("tenant") or None,
        "overspill.capture.id": logs.bound_field("capture") or None,
        "overspill.problem": code or None,
        "error.type": "client_closed_request" if status is None else None,
    }
    span.describe({name: fact for name, fact in facts.items() if fact is not None})
    if status is not None and status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        span.fail(code or str(status))
    return span.trace_id if span.is_sampled else ""


def fail(request: web.Request, code: str) -> None:
    """Let the span be an error with this problem's code: its answer was broken off."""
    if _SPAN in request:
        request[_SPAN].fail(code)
