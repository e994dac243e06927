"""Spans of OpenTelemetry: what the client records of a spill, and what it never records."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any, Final

import pytest
import trio

pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")

from opentelemetry import context, trace
from opentelemetry.sdk.trace import sampling
from opentelemetry.trace import SpanKind, StatusCode
from overspill import Client, Guard, Policy, SyncClient, calling
from overspill.errors import BadRequest, NotFound, Unreachable
from overspill.execution import tracing as spans_of
from overspill.spools.flush import flush
from overspill.spools.spool import Spool
from overspill.wire import Outcome

from tests.client.test_slow_link import is_spooled
from tests.servers import slow_link
from tests.servers.tracing import Tracing, facts, id_of, parent_id, trace_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import Span

    from tests.servers.overspill import ServiceProcess

SECRET: Final = "correct-horse-battery"
LOG: Final = "".join(f"{SECRET} request {number} served\n" for number in range(3_000))
TOOL: Final = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "build"}


def spans_of_context(span: Span) -> str:
    """The traceparent of a span."""
    at = span.get_span_context()
    return f"00-{trace.format_trace_id(at.trace_id)}-{trace.format_span_id(at.span_id)}-{at.trace_flags:02x}"


def everything(spans: list[ReadableSpan]) -> str:
    """All that an exporter would send."""
    return "".join(span.to_json() for span in spans)


# --- a spill --------------------------------------------------------------------------------------


def test_a_spill_is_a_span_below_that_of_the_tool_call(service: ServiceProcess, tracing: Tracing) -> None:
    with (
        SyncClient(service.url) as client,
        tracing.tracer.start_as_current_span("execute_tool build") as tool,
    ):
        guarded = Guard(client, session="sync").process_sync(LOG, tool="build", call_id="call_1")
    spill, put = tracing.only("spill"), tracing.only("PUT")

    assert (spill.name, spill.kind) == ("spill build", SpanKind.INTERNAL)
    assert parent_id(spill) == tool.get_span_context().span_id
    assert facts(spill) == {
        "gen_ai.tool.name": "build",
        "gen_ai.tool.call.id": "call_1",
        "overspill.outcome": "captured",
        "overspill.capture.id": guarded.capture,
        "overspill.output.size": len(LOG),
        "overspill.output.kept_size": guarded.bytes_after,
        "overspill.output.lines": 3_000,
        "overspill.output.tokens_kept_out": guarded.tokens_kept_out,
    }
    assert (put.name, put.kind, parent_id(put)) == (
        "PUT /v1/captures/{ref}",
        SpanKind.CLIENT,
        id_of(spill),
    )


def test_the_upload_is_a_span_by_the_conventions_for_http(service: ServiceProcess, tracing: Tracing) -> None:
    with SyncClient(service.url) as client:
        guarded = Guard(client, session="http").process_sync(LOG, tool="build", call_id="call_1")

    assert facts(tracing.only("PUT")) == {
        "http.request.method": "PUT",
        "http.response.status_code": 201,
        "server.address": "127.0.0.1",
        "server.port": int(service.url.rpartition(":")[2]),
        "url.full": f"{service.url}/v1/captures/{guarded.capture}",
        "url.template": "/v1/captures/{ref}",
    }


async def test_concurrent_outputs_each_stay_in_their_own_trace(
    service: ServiceProcess, tracing: Tracing
) -> None:
    async with Client(service.url) as client:
        guard = Guard(client, session="many")

        async def call(number: int) -> int:
            with tracing.tracer.start_as_current_span("execute_tool build") as own:
                await guard.process(f"{number}\n{LOG}", tool="build", call_id=f"call_{number}")
            return own.get_span_context().trace_id

        traces = await asyncio.gather(*map(call, range(20)))

    assert len(set(traces)) == 20
    for trace_id in traces:
        names = sorted(span.name for span in tracing.ended() if trace_of(span) == trace_id)
        assert names == ["PUT /v1/captures/{ref}", "execute_tool build", "spill build"]


@pytest.mark.parametrize(
    "marks", [TOOL, {"openinference.span.kind": "TOOL"}], ids=["opentelemetry", "openinference"]
)
def test_the_span_of_a_tool_call_names_the_handle(
    service: ServiceProcess, tracing: Tracing, marks: dict[str, str]
) -> None:
    with (
        SyncClient(service.url) as client,
        tracing.tracer.start_as_current_span("execute_tool build", attributes=marks),
    ):
        guarded = Guard(client, session="handle").process_sync(LOG, tool="build")
    found = facts(tracing.only("execute_tool"))

    assert (found["overspill.capture.id"], found["overspill.outcome"]) == (guarded.capture, "captured")


def test_the_span_of_something_else_stays_as_it_is(service: ServiceProcess, tracing: Tracing) -> None:
    with SyncClient(service.url) as client, tracing.tracer.start_as_current_span("invoke_agent"):
        Guard(client, session="else").process_sync(LOG, tool="build")

    assert facts(tracing.only("invoke_agent")) == {}


def test_a_call_without_an_id_of_its_own_has_none_in_its_span(
    service: ServiceProcess, tracing: Tracing
) -> None:
    with SyncClient(service.url) as client:
        Guard(client, session="minted").process_sync(LOG, tool="build")
        with calling("call_7"):
            Guard(client, session="minted").process_sync(LOG + "7", tool="build")
    minted, given = tracing.named("spill")

    assert "gen_ai.tool.call.id" not in facts(minted)
    assert facts(given)["gen_ai.tool.call.id"] == "call_7"


def test_a_wrapped_tool_spills_inside_the_span_of_its_call(service: ServiceProcess, tracing: Tracing) -> None:
    with SyncClient(service.url) as client:
        guard = Guard(client, session="wrapped")

        @guard.wrap
        def build() -> str:
            return LOG

        with tracing.tracer.start_as_current_span("execute_tool build", attributes=TOOL) as tool:
            build()

    assert parent_id(tracing.only("spill")) == tool.get_span_context().span_id


def test_a_short_output_has_no_span(tracing: Tracing) -> None:
    with tracing.tracer.start_as_current_span("execute_tool build", attributes=TOOL):
        assert Guard().process_sync("short", tool="build").outcome is Outcome.INLINE

    assert facts(tracing.only("")) == TOOL


async def test_an_upload_that_outlasts_its_agent_stays_in_the_trace(
    service: ServiceProcess, tracing: Tracing, tmp_path: Path
) -> None:
    long, spool = LOG * 40, Spool(tmp_path / "spool")
    with (
        slow_link.running(service.url, rate=1_000_000) as link,
        SyncClient(link.url, compress=False) as client,
    ):
        guard = Guard(client, Policy(wait=0.2), session="late", spool=spool)
        with tracing.tracer.start_as_current_span("execute_tool build"):
            guarded = await guard.process(long, tool="build", call_id="call_1")
        ended_first = tracing.named("PUT")
        pause = threading.Event()
        assert any(not is_spooled(spool) or pause.wait(0.05) for _ in range(1_000))
        guard.close()
    put, spill = tracing.only("PUT"), tracing.only("spill")

    assert (guarded.outcome, ended_first) == (Outcome.SPOOLED, [])
    assert (trace_of(put), parent_id(put)) == (trace_of(spill), id_of(spill))
    assert facts(put)["http.response.status_code"] == 201


async def test_a_stream_spills_inside_the_span_of_its_call(service: ServiceProcess, tracing: Tracing) -> None:
    def lines() -> Iterator[str]:
        yield from LOG.splitlines(keepends=True)

    async with Client(service.url) as client:
        with tracing.tracer.start_as_current_span("execute_tool build", attributes=TOOL) as tool:
            guarded = await Guard(client, session="stream").process(lines(), tool="build")

    assert guarded.outcome is Outcome.CAPTURED
    assert parent_id(tracing.only("spill")) == tool.get_span_context().span_id
    assert facts(tracing.only("execute_tool"))["overspill.capture.id"] == guarded.capture


def test_on_trio_an_output_spills_inside_the_span_of_its_call(
    service: ServiceProcess, tracing: Tracing
) -> None:
    async def agent(client: SyncClient) -> None:
        with tracing.tracer.start_as_current_span("execute_tool build", attributes=TOOL):
            await Guard(client, session="trio").process(LOG, tool="build")

    with SyncClient(service.url) as client:
        trio.run(agent, client)

    assert parent_id(tracing.only("spill")) == id_of(tracing.only("execute_tool"))
    assert parent_id(tracing.only("PUT")) == id_of(tracing.only("spill"))


def test_a_trace_that_is_not_sampled_is_passed_on_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = Tracing(sampler=sampling.ALWAYS_OFF)
    monkeypatch.setattr("opentelemetry.trace._TRACER_PROVIDER", silent.provider)
    headers: dict[str, str] = {}
    with spans_of.span("spill") as span:
        spans_of.inject(headers)

    assert span is not None
    assert headers["traceparent"] == spans_of_context(span)
    assert not int(headers["traceparent"][-2:], 16) & 1  # the flag "sampled"
    assert not silent.ended()


# --- failures -------------------------------------------------------------------------------------


def test_an_output_that_is_lost_is_an_error(nowhere: str, tracing: Tracing) -> None:
    with SyncClient(nowhere, retries=0) as client:
        guarded = Guard(client, spool=False).process_sync(LOG, tool="build")
    spill, put = tracing.only("spill"), tracing.only("PUT")

    assert guarded.outcome is Outcome.TRUNCATED
    assert (spill.status.status_code, facts(spill)["error.type"]) == (StatusCode.ERROR, "not_stored")
    assert (put.status.status_code, facts(put)["error.type"]) == (StatusCode.ERROR, "Unreachable")


def test_where_nothing_can_be_stored_by_design_a_cut_is_no_error(tracing: Tracing) -> None:
    Guard(spool=False).process_sync(LOG, tool="build")
    spill = tracing.only("spill")

    assert spill.status.status_code is StatusCode.UNSET
    assert facts(spill)["overspill.outcome"] == "truncated"


def test_an_error_of_the_service_is_its_status_in_the_span(service: ServiceProcess, tracing: Tracing) -> None:
    with SyncClient(service.url) as client, pytest.raises(NotFound):
        client.get("cap_aaaaaaaaaaaaaaaaaaaa")
    found = tracing.only("GET")

    assert (found.status.status_code, found.status.description) == (StatusCode.ERROR, None)
    assert (facts(found)["error.type"], facts(found)["http.response.status_code"]) == ("404", 404)
    assert not found.events


def test_each_attempt_is_a_span(nowhere: str, tracing: Tracing) -> None:
    with SyncClient(nowhere, retries=2) as client, pytest.raises(Unreachable):
        client.usage()

    resent = [facts(span).get("http.request.resend_count") for span in tracing.named("GET")]
    assert resent == [None, 1, 2]


def test_a_provider_whose_processors_raise_breaks_nothing(
    service: ServiceProcess, tracing: Tracing, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("a processor of the agent's own")

    monkeypatch.setattr(tracing.provider._active_span_processor, "on_start", broken)
    with SyncClient(service.url) as client:
        guarded = Guard(client, session="broken").process_sync(LOG, tool="build")

    assert guarded.outcome is Outcome.CAPTURED


# --- what is never recorded -----------------------------------------------------------------------


def test_no_span_holds_content_keys_or_patterns(
    nowhere: str, service: ServiceProcess, tracing: Tracing
) -> None:
    key = f"key-{SECRET}"
    with SyncClient(service.url, key) as client, SyncClient(nowhere, key, retries=0) as down:
        with tracing.tracer.start_as_current_span("execute_tool build", attributes=TOOL):
            stored = Guard(client, session="quiet").process_sync(LOG, tool="build")
            Guard(down, spool=False).process_sync(ValueError(LOG), tool="build")
        assert stored.capture is not None
        client.grep(stored.capture, f"{SECRET} request 7 ")
        with pytest.raises(Unreachable):
            down.grep(stored.capture, SECRET)
        for bad in (f"({SECRET}", SECRET * 100):
            with pytest.raises(BadRequest):
                client.grep(stored.capture, bad, max_matches=-1)

    assert {span.name.split()[0] for span in tracing.ended()} == {"spill", "PUT", "GET", "execute_tool"}
    assert SECRET not in everything(tracing.ended())


@pytest.mark.parametrize("name", ["x" * 100_000, "\ud800\udfff", "a\0b\x1b[31m", ""])
def test_a_hostile_name_is_bounded_and_can_be_exported(
    service: ServiceProcess, tracing: Tracing, name: str
) -> None:
    with SyncClient(service.url) as client:
        Guard(client, session="hostile").process_sync(LOG, tool=name, call_id=name or "call")

    for span in tracing.ended():
        assert len(span.name) < 200
        assert all(len(str(value)) < 200 for value in facts(span).values())
        everything([span]).encode()
        span.name.encode()
        assert "".join(map(str, facts(span).values())).encode()


def test_the_guards_own_reports_are_not_traced(service: ServiceProcess, tracing: Tracing) -> None:
    with Guard(service.url) as guard:
        guard.process_sync(LOG, tool="build")

    assert not tracing.named("POST")


def test_a_health_check_is_not_traced(service: ServiceProcess, tracing: Tracing) -> None:
    with SyncClient(service.url) as client:
        assert client.ready()

    assert not tracing.ended()


def test_who_asks_for_silence_gets_it(service: ServiceProcess, tracing: Tracing) -> None:
    quiet = context.set_value(context._SUPPRESS_INSTRUMENTATION_KEY, True)
    token = context.attach(quiet)
    try:
        with SyncClient(service.url) as client:
            Guard(client, session="silence").process_sync(LOG, tool="build")
    finally:
        context.detach(token)

    assert not tracing.ended()


# --- the spool ------------------------------------------------------------------------------------


def test_a_flush_links_to_the_spill(service: ServiceProcess, tracing: Tracing, tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    guarded = Guard(spool=spool).process_sync(LOG, tool="build")
    with SyncClient(service.url) as client:
        flush(spool.partition("", ""), client)
    spill, flushed = tracing.only("spill"), tracing.only("overspill flush")

    assert guarded.outcome is Outcome.SPOOLED
    assert spill.status.status_code is StatusCode.UNSET
    (link,) = flushed.links
    assert (link.context.trace_id, link.context.span_id) == (trace_of(spill), id_of(spill))
    assert trace_of(flushed) != trace_of(spill)
    assert facts(flushed)["overspill.capture.id"] == guarded.capture
    assert parent_id(tracing.only("PUT")) == id_of(flushed)


@pytest.mark.parametrize(
    "text", ["", "x", "00-" + "0" * 32 + "-" + "0" * 16 + "-01", "ff-" + "1" * 49, "1" * 10_000]
)
def test_whatever_an_entry_has_for_a_link_a_span_can_begin(tracing: Tracing, text: str) -> None:
    with spans_of.span("flush", link=text):
        pass

    assert not tracing.only("flush").links


# --- forks, and processes without tracing ---------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_traces_on_in_the_trace_of_its_parent(
    service: ServiceProcess, tracing: Tracing
) -> None:
    reading, writing = os.pipe()
    with SyncClient(service.url) as client:
        guard = Guard(client, session="fork")
        guard.process_sync(LOG, tool="parent")
        with tracing.tracer.start_as_current_span("agent") as agent:
            child = os.fork()
            if child == 0:
                guard.process_sync(LOG + "child", tool="child")
                spill = tracing.only("spill child")
                os.write(writing, f"{trace_of(spill)} {parent_id(spill)}".encode())
                os._exit(0)
            os.waitpid(child, 0)
    told = os.read(reading, 1000).decode()
    os.close(reading)
    os.close(writing)

    at = agent.get_span_context()
    assert told == f"{at.trace_id} {at.span_id}"


@pytest.mark.parametrize("imported", ["sys", "opentelemetry.context"])
def test_without_a_provider_nothing_of_opentelemetry_is_imported(
    service: ServiceProcess, imported: str
) -> None:
    code = f"""
import sys, {imported}
before = {{name for name in sys.modules if name.startswith("opentelemetry")}}
from overspill import Guard, SyncClient
with SyncClient({service.url!r}) as client, Guard(client, session="none") as guard:
    assert guard.process_sync("long\\n" * 50_000, tool="build").outcome == "captured"
after = {{name for name in sys.modules if name.startswith("opentelemetry")}}
print(*after - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")


def test_with_the_package_and_no_provider_there_are_no_spans(service: ServiceProcess) -> None:
    assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
    assert not spans_of.is_on()
    with SyncClient(service.url) as client, spans_of.span("x") as span:
        Guard(client, Policy(), session="none").process_sync(LOG, tool="build")

    assert span is None
    assert spans_of.traceparent() == ""
