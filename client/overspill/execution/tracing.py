"""Spans of OpenTelemetry, in a process that has a tracer provider. In any other, nothing happens.

Only who has imported `opentelemetry.trace` can have set a provider, so nothing of OpenTelemetry is imported
before. Nothing here raises an error of its own. Callers name no content, no key and no pattern in a span.
"""

from __future__ import annotations

import logging
import re
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableMapping
    from contextlib import AbstractContextManager

    from opentelemetry.context import Context
    from opentelemetry.trace import Link, Span, Tracer, TracerProvider
    from opentelemetry.util.types import AttributeValue

MAX_CHARS: Final = 128
"""Characters of a text in a span, at most: tools and their calls have any names."""
_TRACEPARENT: Final = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
"""Version 00 of https://www.w3.org/TR/trace-context/: trace, span, flags."""

log: Final = logging.getLogger("overspill")


class _Tracers:
    """The tracer of the newest provider that was seen."""

    def __init__(self) -> None:
        self._last: tuple[TracerProvider, Tracer] | None = None

    def tracer(self) -> Tracer | None:
        """Return the tracer of the present provider, or None if there is none."""
        api: Any = sys.modules.get("opentelemetry.trace")
        if not hasattr(api, "get_tracer_provider"):  # not imported, or just being imported
            return None
        provider = api.get_tracer_provider()
        if isinstance(provider, api.ProxyTracerProvider):
            return None
        last = self._last
        if last is None or last[0] is not provider:
            last = self._last = provider, provider.get_tracer("overspill")
        return last[1]


_tracers: Final = _Tracers()


def is_on() -> bool:
    """Return whether this process has a tracer provider."""
    return _tracers.tracer() is not None


@contextmanager
def span(
    name: str, kind: str = "INTERNAL", attributes: Mapping[str, AttributeValue] | None = None, link: str = ""
) -> Iterator[Span | None]:
    """Open a span for the block. Without a provider, the block gets None.

    `kind` names an OpenTelemetry `SpanKind`. `link` is the traceparent of a span that led to this one. An
    exception of the block is recorded by its type alone: its message may quote content.
    """
    started = _started(name, kind, attributes, link)
    if started is None:
        yield None
        return
    from opentelemetry import context, trace  # noqa: PLC0415  (imported already, by the provider)

    token = context.attach(trace.set_span_in_context(started))
    try:
        yield started
    except BaseException as error:
        fail(started, type(error).__name__)
        raise
    finally:
        context.detach(token)
        with suppress(Exception):  # a processor of the agent's own
            started.end()


def _started(name: str, kind: str, attributes: Mapping[str, AttributeValue] | None, link: str) -> Span | None:
    try:
        tracer = _tracers.tracer()
        if tracer is None or is_suppressed():
            return None
        from opentelemetry.trace import SpanKind  # noqa: PLC0415

        return tracer.start_span(name, kind=SpanKind[kind], attributes=attributes, links=_links(link))
    except Exception as error:  # noqa: BLE001  (whatever the agent's provider, sampler or processor raises)
        log.debug("no span was started: %s", error)
        return None


def current() -> Span | None:
    """Return the span that is being recorded here, or None."""
    if _tracers.tracer() is None:
        return None
    from opentelemetry import trace  # noqa: PLC0415

    found = trace.get_current_span()
    return found if found.is_recording() else None


def describe(span: Span | None, attributes: Mapping[str, AttributeValue]) -> None:
    """Add attributes to a span, if there is one."""
    if span is not None:
        with suppress(Exception):  # a span of the agent's own provider
            span.set_attributes(attributes)


def fail(span: Span | None, kind: str) -> None:
    """Set a span's status to an error of this kind: the name of a class, or another word of a few."""
    if span is None:
        return
    from opentelemetry.trace import Status, StatusCode  # noqa: PLC0415

    describe(span, {"error.type": kind})
    with suppress(Exception):
        span.set_status(Status(StatusCode.ERROR))


def text(value: str) -> str:
    """Return a text as a span may have it: bounded, and without what UTF-8 cannot encode."""
    return value[:MAX_CHARS].encode(errors="replace").decode()


def inject(headers: MutableMapping[str, str]) -> None:
    """Add the headers that continue the current trace elsewhere, as the agent's propagator writes them."""
    if _tracers.tracer() is None:
        return
    with suppress(Exception):  # a propagator of the agent's own
        from opentelemetry.propagate import inject  # noqa: PLC0415

        inject(headers)


def traceparent() -> str:
    """Return the current span as a W3C traceparent, empty if there is none."""
    if _tracers.tracer() is None:
        return ""
    from opentelemetry import trace  # noqa: PLC0415

    at = trace.get_current_span().get_span_context()
    return f"00-{at.trace_id:032x}-{at.span_id:016x}-{at.trace_flags:02x}" if at.is_valid else ""


def _links(traceparent: str) -> list[Link]:
    """Return the link to a span. Empty if it is none: the text may come from a file that others wrote."""
    found = _TRACEPARENT.fullmatch(traceparent)
    if found is None:
        return []
    from opentelemetry.trace import Link, SpanContext, TraceFlags  # noqa: PLC0415

    trace_id, span_id, flags = (int(digits, 16) for digits in found.groups())
    context = SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(flags))
    return [Link(context)] if context.is_valid else []


_SUPPRESS: Final = "_SUPPRESS_INSTRUMENTATION_KEY"
_SUPPRESS_HTTP: Final = "_SUPPRESS_HTTP_INSTRUMENTATION_KEY"
"""How the API names the keys with which instrumentations ask each other to be quiet."""


def is_suppressed() -> bool:
    """Return whether the code around this asked that nothing be traced."""
    from opentelemetry import context  # noqa: PLC0415

    key = getattr(context, _SUPPRESS, None)
    return key is not None and bool(context.get_value(key))


def untraced() -> AbstractContextManager[None]:
    """Trace nothing in the block: it is work of the client itself, such as its reports."""
    return _with_value(_SUPPRESS)


def without_http() -> AbstractContextManager[None]:
    """Keep instrumentations of HTTP libraries from tracing the block: the request already has a span."""
    return _with_value(_SUPPRESS_HTTP)


@contextmanager
def _with_value(name: str) -> Iterator[None]:
    if _tracers.tracer() is None:
        yield
        return
    from opentelemetry import context  # noqa: PLC0415

    key = getattr(context, name, None)
    changed: Context = context.get_current() if key is None else context.set_value(key, True)
    token = context.attach(changed)
    try:
        yield
    finally:
        context.detach(token)
