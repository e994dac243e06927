"""A tracer provider of the real SDK, whose spans stay in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.lazy import LazyModule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.trace import Tracer


sdk = LazyModule("opentelemetry.sdk.trace")
export = LazyModule("opentelemetry.sdk.trace.export")
memory = LazyModule("opentelemetry.sdk.trace.export.in_memory_span_exporter")


class Tracing:
    """What this process traces while a test runs."""

    def __init__(self, **settings: Any) -> None:
        self._exporter = memory.InMemorySpanExporter()
        self.provider: TracerProvider = sdk.TracerProvider(**settings)
        self.provider.add_span_processor(export.SimpleSpanProcessor(self._exporter))

    @property
    def tracer(self) -> Tracer:
        """The tracer of the agent's own spans."""
        return self.provider.get_tracer("agent")

    def ended(self) -> list[ReadableSpan]:
        """All spans that have ended, the first to end first."""
        return list(self._exporter.get_finished_spans())

    def named(self, start: str) -> list[ReadableSpan]:
        """The spans whose names begin so."""
        return [span for span in self.ended() if span.name.startswith(start)]

    def only(self, start: str) -> ReadableSpan:
        (span,) = self.named(start)
        return span


def facts(span: ReadableSpan) -> dict[str, Any]:
    """The attributes of a span."""
    return dict(span.attributes or {})


def parent_id(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def id_of(span: ReadableSpan) -> int:
    assert span.context is not None
    found: int = span.context.span_id
    return found


def trace_of(span: ReadableSpan) -> int:
    assert span.context is not None
    found: int = span.context.trace_id
    return found


@pytest.fixture
def tracing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tracing]:
    """This process has a provider, for this test alone."""
    found = Tracing()
    monkeypatch.setattr("opentelemetry.trace._TRACER_PROVIDER", found.provider)
    yield found
    found.provider.shutdown()
