"""The CLIENT span of one attempt of a request, as OpenTelemetry's conventions for HTTP describe it.

https://opentelemetry.io/docs/specs/semconv/http/http-spans/. A query is never named: it may have a pattern.
"""

from __future__ import annotations

from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from overspill.execution import tracing
from overspill.wire import Path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from overspill.transfer.address import Address
    from overspill.transfer.request import Request

_UNTRACED: Final = frozenset({Path.HEALTHZ, Path.READYZ})
"""Requests that are sent again and again while the service is away."""


@contextmanager
def requesting(
    request: Request, address: Address, headers: dict[str, str], resent: int
) -> Iterator[Callable[[int], None]]:
    """Give the block a span, and add the headers that continue it in the service to `headers`.

    The block gets a function, which it calls with the status of the answer. `resent` counts the attempts
    before this one.
    """
    if request.path in _UNTRACED or not tracing.is_on():
        yield _ignored
        return
    name = f"{request.method} {request.route or request.path}"
    with tracing.span(name, "CLIENT", _attributes(request, address, resent)) as span:
        tracing.inject(headers)

        def answered(status: int) -> None:
            tracing.describe(span, {"http.response.status_code": status})
            if status >= HTTPStatus.BAD_REQUEST:
                tracing.fail(span, str(status))

        with tracing.without_http():
            yield answered


def _ignored(_: int) -> None:
    """Nobody traces."""


def _attributes(request: Request, address: Address, resent: int) -> dict[str, str | int]:
    host, port = address.end
    found: dict[str, str | int] = {
        "http.request.method": request.method,
        "server.address": tracing.text(host),
        "server.port": port,
        "url.full": tracing.text(address.url + request.path),
        "url.template": request.route or request.path,
    }
    return {**found, "http.request.resend_count": resent} if resent else found
