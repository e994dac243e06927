"""The span of a request, and its attributes."""

from __future__ import annotations

from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING

from overspill_service.telemetry import logs
from overspill_service.telemetry.metrics import METHODS
from overspill_service.web.exchange import EXCHANGE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiohttp import web

    from overspill_service.telemetry.spans import Spans
    from overspill_service.web.exchange import Exchange


@contextmanager
def serving(spans: Spans, request: web.Request, route: str | None) -> Iterator[None]:
    """Run the block in the request's span.

    `route` is None if no route has the path. Then the span does not have the path, because it may hold
    anything.
    """
    method = request.method if request.method in METHODS else "_OTHER"
    found = {"http.request.method": method, "url.scheme": request.scheme}
    if route is not None:
        found |= {"http.route": route, "url.path": request.rel_url.raw_path}
    name = "HTTP" if method == "_OTHER" else method
    with spans.serving(f"{name} {route}" if route else name, request.headers, found) as span:
        request[EXCHANGE].span = span
        logs.bind_fields(trace_id=span.trace_id, span_id=span.span_id)
        yield


def end(exchange: Exchange, status: int | None, *, received: int, sent: int) -> str:
    """Note how a request ended. Return the id of its trace if it is sampled, else nothing.

    `status` is None if the client has hung up. `received` and `sent` are the bytes of the two bodies.
    """
    span, fields = exchange.span, exchange.fields
    if span is None:
        return ""
    code = fields.get("code")
    facts: dict[str, str | int | None] = {
        "http.response.status_code": status,
        "http.request.body.size": received,
        "http.response.body.size": sent,
        "overspill.tenant": fields.get("tenant"),
        "overspill.capture.id": fields.get("capture"),
        "overspill.problem": code,
        "error.type": "client_closed_request" if status is None else None,
    }
    span.describe({name: fact for name, fact in facts.items() if fact is not None})
    if status is not None and status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        span.fail(code or str(status))
    return span.trace_id if span.is_sampled else ""
