"""The span of a request: its trace, what it says, and what it never says."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Final

import pytest
from overspill import Client, Guard
from overspill_service.telemetry import logs
from overspill_service.telemetry.tracing import exporter_name
from prometheus_client.openmetrics import parser

pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")

from opentelemetry.sdk.trace import sampling
from opentelemetry.trace import SpanKind, StatusCode

from tests.servers.tracing import Tracing, facts, id_of, parent_id, trace_of
from tests.web.conftest import id_of as capture_id
from tests.web.conftest import path_of

if TYPE_CHECKING:
    from typing import Any

    from tests.web.conftest import Api

TRACE: Final = "0af7651916cd43dd8448eb211c80319c"
PARENT: Final = "b7ad6b7169203331"
SAMPLED: Final = f"00-{TRACE}-{PARENT}-01"
UNSAMPLED: Final = f"00-{TRACE}-{PARENT}-00"
SECRET: Final = "correct-horse-battery"
CONTENT: Final = f"{SECRET} is in this line\n".encode() * 10
OPENMETRICS: Final = "application/openmetrics-text;version=1.0.0"


async def test_a_request_is_a_server_span_in_the_trace_of_its_client(tracing: Tracing, api: Api) -> None:
    response = await api.send("PUT", path_of(CONTENT), data=CONTENT, headers={
        "Overspill-Call-Id": "call_0", "traceparent": SAMPLED,
    })  # fmt: skip
    span = tracing.only("PUT")

    assert response.status == 201
    assert (span.name, span.kind) == ("PUT /v1/captures/{ref}", SpanKind.SERVER)
    assert (trace_of(span), parent_id(span)) == (int(TRACE, 16), int(PARENT, 16))
    assert facts(span) == {
        "http.request.method": "PUT",
        "http.route": "/v1/captures/{ref}",
        "url.scheme": "http",
        "url.path": path_of(CONTENT),
        "http.response.status_code": 201,
        "http.request.body.size": len(CONTENT),
        "http.response.body.size": response.content_length,
        "overspill.tenant": "default",
        "overspill.capture.id": capture_id(CONTENT),
    }


async def test_an_agents_trace_goes_through_guard_client_and_service(tracing: Tracing, api: Api) -> None:
    async with Client(f"http://127.0.0.1:{api.port}") as client:
        with tracing.tracer.start_as_current_span("execute_tool build"):
            guard = Guard(client, session="agent", spool=False)
            await guard.process("long\n" * 5_000, tool="build", call_id="call_1")
    served, sent = [span for span in tracing.ended() if span.name.startswith("PUT")]
    spill, tool = tracing.only("spill"), tracing.only("execute_tool")

    assert (served.kind, sent.kind) == (SpanKind.SERVER, SpanKind.CLIENT)
    assert [parent_id(span) for span in (served, sent, spill)] == [id_of(sent), id_of(spill), id_of(tool)]
    assert {trace_of(span) for span in (served, sent, spill, tool)} == {trace_of(tool)}


async def test_a_client_error_is_no_error_of_the_server(tracing: Tracing, api: Api) -> None:
    await api.get("/v1/captures/cap_aaaaaaaaaaaaaaaaaaaa")
    span = tracing.only("GET")

    assert span.status.status_code is StatusCode.UNSET
    assert (facts(span)["http.response.status_code"], facts(span)["overspill.problem"]) == (404, "not_found")


async def test_a_failure_of_the_service_is_an_error_with_the_problems_code(
    tracing: Tracing, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr(api.service.archive.catalog, "sums", broken)
    await api.get("/v1/stats")
    span = tracing.only("GET")

    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)
    assert (facts(span)["error.type"], facts(span)["http.response.status_code"]) == ("internal", 500)
    assert SECRET not in span.to_json()


async def test_health_checks_and_scrapes_have_no_spans(tracing: Tracing, api: Api) -> None:
    for path in "/healthz", "/readyz", "/metrics":
        await api.get(path)

    assert not tracing.ended()


async def test_no_span_has_content_keys_queries_or_unknown_paths(tracing: Tracing, api: Api) -> None:
    entry = await api.put(CONTENT, Overspill_Tool=SECRET)
    headers = {"Authorization": f"Bearer {SECRET}", "baggage": f"key={SECRET}", "User-Agent": SECRET}
    await api.get(f"/v1/captures/{entry.id}/grep", params={"pattern": SECRET}, headers=headers)
    await api.get(f"/v1/captures/{entry.id}/grep", params={SECRET: "(", "pattern": "("}, headers=headers)
    await api.get(f"/{SECRET}/{'x' * 4_000}", headers=headers)
    await api.send(SECRET.upper().replace("-", ""), "/v1/captures", headers=headers)
    spans = tracing.ended()

    assert {span.name for span in spans} >= {"GET", "GET /v1/captures/{ref}/grep"}
    for span in spans:
        assert SECRET not in span.to_json()
        assert SECRET.upper().replace("-", "") not in span.to_json()
        assert all(len(str(value)) <= 256 for value in facts(span).values())


@pytest.mark.parametrize(
    "headers",
    [
        {"traceparent": ""},
        {"traceparent": "x" * 30_000},
        {"traceparent": "00-" + "0" * 32 + "-" + "0" * 16 + "-01"},
        {"traceparent": f"ff-{TRACE}-{PARENT}-01"},
        {"traceparent": f"00-{TRACE}-{PARENT}-zz"},
        {"traceparent": "\u00e9\u00df" * 100},
        {"traceparent": SAMPLED, "tracestate": ",".join(f"k{n}=v" for n in range(2_000))},
        {"traceparent": SAMPLED, "tracestate": "=" * 30_000},
        {"traceparent": SAMPLED, "baggage": ",".join(f"k{n}=v" for n in range(3_000))},
        {"baggage": "%" * 30_000},
    ],
)
async def test_whatever_a_client_sends_for_a_trace_its_request_is_answered(
    tracing: Tracing, api: Api, headers: dict[str, str]
) -> None:
    response = await api.get("/v1/usage", headers=headers)

    assert response.status == 200
    span = tracing.only("GET")
    assert len(span.to_json()) < 5_000
    assert span.context is not None
    assert len(span.context.trace_state) <= 32


@pytest.mark.parametrize("step", ["on_start", "on_end"])
async def test_a_processor_that_raises_breaks_no_request(
    tracing: Tracing, api: Api, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("a processor of the operator's own")

    monkeypatch.setattr(tracing.provider._active_span_processor, step, broken)
    response = await api.get("/v1/captures")

    assert response.status == 200


async def test_log_lines_of_a_request_have_the_ids_of_its_span(
    tracing: Tracing, api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[dict[str, Any]] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(json.loads(logs.formatter_of("json").format(record)))

    access, handler = logging.getLogger("overspill_service.access"), Keep()
    access.addHandler(handler)
    caplog.set_level(logging.INFO, "overspill_service.access")
    try:
        await api.get("/v1/usage", headers={"traceparent": SAMPLED})
    finally:
        access.removeHandler(handler)
    (line,) = seen

    assert (line["trace_id"], line["span_id"]) == (TRACE, f"{id_of(tracing.only('GET')):016x}")


async def test_without_a_provider_a_log_line_has_no_ids(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "overspill_service.access")
    await api.get("/v1/usage", headers={"traceparent": SAMPLED})

    assert api.service.spans is None
    assert not any("trace_id" in logs.formatter_of("json").format(record) for record in caplog.records)


@pytest.mark.parametrize(("traceparent", "expected"), [(SAMPLED, {TRACE}), (UNSAMPLED, set())])
async def test_the_time_of_a_sampled_request_has_its_trace_as_an_exemplar(
    tracing: Tracing, api: Api, traceparent: str, expected: set[str]
) -> None:
    await api.get("/v1/usage", headers={"traceparent": traceparent})
    text = await (await api.get("/metrics", headers={"Accept": OPENMETRICS})).text()
    families = parser.text_string_to_metric_families(text)  # type: ignore[no-untyped-call]

    assert {
        sample.exemplar.labels["trace_id"]
        for family in families
        for sample in family.samples
        if sample.exemplar is not None and sample.labels["route"] == "/v1/usage"
    } == expected


async def test_a_request_that_is_not_sampled_has_no_span(tracing: Tracing, api: Api) -> None:
    assert isinstance(tracing.provider.sampler, sampling.ParentBased)
    await api.get("/v1/usage", headers={"traceparent": UNSAMPLED})

    assert not tracing.ended()


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({}, ""),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, "otlp_proto_http"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, "otlp_proto_http"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, ""),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, "otlp_proto_http"),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "otlp_proto_grpc"),
        (
            {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
            | {"OTEL_TRACES_EXPORTER": "otlp"},
            "otlp_proto_http",
        ),
        ({"OTEL_TRACES_EXPORTER": "console"}, "console"),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, ""),
        ({"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, ""),
    ],
)
def test_the_exporter_is_the_one_that_the_standard_variables_name(
    variables: dict[str, str], name: str
) -> None:
    assert exporter_name(variables) == name
