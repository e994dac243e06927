"""The SERVER span of a request, as OpenTelemetry's conventions for HTTP describe it.

https://opentelemetry.io/docs/specs/semconv/http/http-spans/. A span names routes, tenants and captures. It
never has a query, a header, or a path of no route: a client may put anything there. Operations of back ends
have no spans: two of them add half to what a small traced request costs, and their metrics show their times.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from opentelemetry import context, propagate, trace
from opentelemetry.trace import NonRecordingSpan, SpanKind, Status, StatusCode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opentelemetry.context import Context
    from opentelemetry.trace import Span

log = logging.getLogger(__name__)

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
        self._has_failed = False

    @contextmanager
    def serving(
        self, name: str, headers: Mapping[str, str], attributes: Mapping[str, str]
    ) -> Iterator[RequestSpan]:
        """Give the block a span that continues the trace of the request's headers.

        If a processor of the provider raises an error, the request goes on without a span.
        """
        span = self._started(name, _parent(headers), attributes)
        token = context.attach(trace.set_span_in_context(span, context.Context()))
        try:
            yield RequestSpan(span)
        finally:
            context.detach(token)
            self._end(span)

    def _started(self, name: str, parent: Context, attributes: Mapping[str, str]) -> Span:
        bounded = {key: value[:MAX_CHARS] for key, value in attributes.items()}
        try:
            return self._tracer.start_span(name, context=parent, kind=SpanKind.SERVER, attributes=bounded)
        except Exception as error:  # noqa: BLE001  (whatever a processor of the operator's own raises)
            self._note_failure(error)
            return trace.INVALID_SPAN

    def _end(self, span: Span) -> None:
        try:
            span.end()
        except Exception as error:  # noqa: BLE001  (as above)
            self._note_failure(error)

    def _note_failure(self, error: Exception) -> None:
        """Log the first failure: the next request's is the same one."""
        if not self._has_failed:
            self._has_failed = True
            log.error("a processor of spans failed; requests are answered without spans", exc_info=error)


def _parent(headers: Mapping[str, str]) -> Context:
    """Return the context of the span that the headers name, without any baggage."""
    try:
        found = trace.get_current_span(propagate.extract(headers)).get_span_context()
    except Exception:  # noqa: BLE001  (any propagator that the operator chose, and any bytes of a client)
        return context.Context()
    return trace.set_span_in_context(NonRecordingSpan(found), context.Context())
