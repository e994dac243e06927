"""Sends spans to the exporter that OpenTelemetry's own variables name, or to an existing provider.

OpenTelemetry is imported only if there is one of the two.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import uuid
from contextlib import contextmanager
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final

from overspill_service import release

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opentelemetry.sdk.trace import TracerProvider

    from overspill_service.telemetry.spans import Spans

STOP_SECONDS: Final = 3.0
"""How long a process that ends waits for a collector to take its last spans."""
_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_EXPORTERS: Final = "opentelemetry_traces_exporter"
"""The entry points with which distributions offer exporters."""

log = logging.getLogger("overspill_service.start")


def spans() -> Spans | None:
    """Return what makes the spans of this process, or None if it has no tracer provider."""
    if _present_provider() is None:
        return None
    from overspill_service.telemetry.spans import Spans  # noqa: PLC0415  (an optional library)

    return Spans()


@contextmanager
def exporting(environ: Mapping[str, str] = os.environ) -> Iterator[None]:
    """Export the spans of the block as the variables `OTEL_…` say, if they name an exporter.

    Do nothing if the process has a provider, as under `opentelemetry-instrument`. Mistakes in the variables
    are logged, and the service works without spans.
    """
    provider = None
    name = exporter_name(environ)
    if name and _present_provider() is None:
        try:
            provider = _provided(name)
        except ImportError as error:
            log.warning("no spans are exported: %s; from a checkout: pip install './service[otel]'", error)
        except Exception as error:  # noqa: BLE001  (the library's own check of its variables: any exception)
            log.error("no spans are exported: %s: %s", type(error).__name__, error)  # noqa: TRY400  (a line says what to do)
    try:
        yield
    finally:
        if provider is not None:
            _shut_down(provider)


def exporter_name(environ: Mapping[str, str]) -> str:
    """Return the entry point of the exporter that the variables name, empty for none.

    https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
    """
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return ""
    is_addressed = any(environ.get(name) for name in _ENDPOINTS)
    name = environ.get("OTEL_TRACES_EXPORTER", "").strip() or ("otlp" if is_addressed else "none")
    if name == "otlp":
        protocol = next(filter(None, map(environ.get, _PROTOCOLS)), "http/protobuf")
        return f"otlp_proto_{protocol.strip().partition('/')[0]}"
    return "" if name == "none" else name


def _present_provider() -> Any:
    """Return the provider that somebody has set. Without `opentelemetry.trace` nobody can have."""
    api: Any = sys.modules.get("opentelemetry.trace")
    provider = api and api.get_tracer_provider()
    return None if api is None or isinstance(provider, api.ProxyTracerProvider) else provider


def _provided(name: str) -> TracerProvider:
    """Set a provider with this exporter. Raises `ImportError`, and what libraries raise."""
    from opentelemetry import trace  # noqa: PLC0415  (optional libraries, all of them)
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    found = next(iter(entry_points(group=_EXPORTERS, name=name)), None)
    if found is None:
        raise ImportError(f"there is no exporter {name}")
    resource = {
        "service.name": "overspill-service",
        "service.version": release(),
        "service.instance.id": str(uuid.uuid4()),
        **OTELResourceDetector().detect().attributes,
    }
    provider = TracerProvider(resource=Resource.create(resource), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(found.load()()))
    trace.set_tracer_provider(provider)
    return provider


def _shut_down(provider: TracerProvider) -> None:
    """Send the last spans, for a bounded time: the collector may be gone."""
    thread = threading.Thread(target=provider.shutdown, name="last-spans", daemon=True)
    thread.start()
    thread.join(STOP_SECONDS)
