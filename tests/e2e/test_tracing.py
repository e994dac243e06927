"""Spans of a service in processes of its own, at a collector that decodes them."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

pytest.importorskip(
    "opentelemetry.exporter.otlp.proto.http", reason="overspill-service[otel] is not installed"
)

from overspill import Guard, SyncClient

from tests.servers.otlp import collecting
from tests.servers.overspill import ForkedService, clean_environment, running
from tests.servers.tracing import Tracing, id_of, trace_of

if TYPE_CHECKING:
    from pathlib import Path

PUT = "PUT /v1/captures/{ref}"
LIST = "GET /v1/captures"
AT_ONCE = 8
OFTEN = {"OTEL_BSP_SCHEDULE_DELAY": "100"}


def test_a_trace_goes_from_an_agents_span_to_the_spans_of_two_workers(
    tracing: Tracing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collecting() as collector:
        for name, value in (OFTEN | {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}).items():
            monkeypatch.setenv(name, value)
        with running(ForkedService(tmp_path / "overspill", workers=2)) as service:
            with SyncClient(service.url) as client, tracing.tracer.start_as_current_span("agent") as agent:
                Guard(client, session="s", spool=False).process_sync("long\n" * 5_000, tool="build")
            (served,) = collector.wait_for(1, PUT)
            workers: set[str] = set()
            deadline = time.monotonic() + 30
            while len(workers) < 2 and time.monotonic() < deadline:
                with ThreadPoolExecutor(AT_ONCE) as pool:  # more than one worker accepts at a time
                    list(pool.map(listed, [service.url] * AT_ONCE))
                workers = {span.resource["service.instance.id"] for span in collector.wait_for(1, LIST)}

    assert int(served.trace_id, 16) == agent.get_span_context().trace_id
    assert int(served.parent_id, 16) == id_of(tracing.only(PUT))
    assert trace_of(tracing.only(PUT)) == agent.get_span_context().trace_id
    assert served.resource["service.name"] == "overspill-service"
    assert served.facts["http.response.status_code"] == "201"
    assert len(workers) == 2


def listed(url: str) -> None:
    """List over a new connection, which either worker may accept."""
    with SyncClient(url) as client:
        client.list()


def test_a_service_that_stops_sends_its_last_spans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "600000")
        monkeypatch.setenv("OTEL_SERVICE_NAME", "captures")
        with running(ForkedService(tmp_path / "overspill")) as service, SyncClient(service.url) as client:
            client.usage()
        (span,) = collector.wait_for(1, "GET /v1/usage")

    assert span.resource["service.name"] == "captures"


def test_a_collector_that_is_gone_delays_neither_requests_nor_the_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (OFTEN | {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}).items():
        monkeypatch.setenv(name, value)
    service = ForkedService(tmp_path / "overspill")
    service.start()
    with SyncClient(service.url, timeout=5) as client:
        for _ in range(20):
            client.usage()
    start = time.monotonic()

    assert service.stop() == 0
    assert time.monotonic() - start < 15


@pytest.mark.parametrize(
    "variables",
    [
        {"OTEL_TRACES_EXPORTER": "nobody"},
        {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
        {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_BSP_MAX_QUEUE_SIZE": "-1"},
    ],
)
def test_a_wrong_variable_is_logged_and_the_service_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with running(ForkedService(tmp_path / "overspill")) as service, SyncClient(service.url) as client:
        client.usage()

    assert "no spans are exported" in service.logged()


def test_without_a_variable_the_service_imports_nothing_of_opentelemetry() -> None:
    code = """
import sys
from overspill_service.app import make_app
from overspill_service.telemetry import tracing
with tracing.exporting({}):
    assert tracing.spans() is None
print(*(name for name in sys.modules if name.startswith("opentelemetry")))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=clean_environment()
    )

    assert done.stdout.strip() == ""
