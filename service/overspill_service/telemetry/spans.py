"""The SERVER span of a request, as OpenTelemetry's conventions for HTTP describe it.

https://opentelemetry.io/docs/specs/semconv/http/http-spans/. A span names routes, tenants and captures. It
never has a query, a header, or a path of no route: a client may put anything there. Operations of back ends
have no spans: two of them add half to what a small traced request costs, and their metrics show their times.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from opentelemetry import context, propagate, trace
from opentelemetry.trace import NonRecordingSpan, SpanKind, Status, StatusCode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opentelemetry.context import Context
    from opentelemetry.trace import Span

MAX_CHARS: Final = 256
"""Characters of a text in a span, at most."""


class RequestSpan:
    """The span of one request."""

    def __init__(self, span: Span) -> None:
        self._span = span
        at = span.get_span_context()
        self.trace_id = trace.format_trace_id(at.trace_id)
        self.span_id = trace.format_span_id(at.span_id)
        self.is_sampled = at.trace_flags.sampled

    def describe(self, facts: Mapping[str, str | int]) -> None:
        """Add attributes."""
        self._span.set_attributes(facts)

    def fail(self, kind: str) -> None:
        """Let the span be an error of this kind: a problem's code, or the name of a class."""
        self._span.set_attribute("error.type", kind)
        self._span.set_status(Status(StatusCode.ERROR))


class Spans:
    """Makes spans with the provider of this process."""

    def __init__(self) -> None:
        self._tracer = trace.get_tracer_provider().get_tracer("overspill_service")

    @contextmanager
    def serving(
        self, name: str, headers: Mapping[str, str], attributes: Mapping[str, str]
    ) -> Iterator[RequestSpan]:
        """Give the block a span that continues the trace of the request's headers."""
        bounded = {key: value[:MAX_CHARS] for key, value in attributes.items()}
        span = self._tracer.start_span(
            name, context=_parent(headers), kind=SpanKind.SERVER, attributes=bounded
        )
        token = context.attach(trace.set_span_in_context(span, context.Context()))
        try:
            yield RequestSpan(span)
        finally:
            context.detach(token)
            span.end()


def _parent(headers: Mapping[str, str]) -> Context:
    """Return the context of the span that the headers name, without any baggage."""
    try:
        found = trace.get_current_span(propagate.extract(headers)).get_span_context()
    except Exception:  # noqa: BLE001  (any propagator that the operator chose, and any bytes of a client)
        return context.Context()
    return trace.set_span_in_context(NonRecordingSpan(found), context.Context())
