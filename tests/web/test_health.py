"""Liveness, readiness, figures, and what surrounds every answer."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from overspill.wire import SIZE_CLASSES, Code, Observation, Outcome

from tests.web.conftest import Api, problem

OBSERVED = Observation(
    tool="grep",
    outcome=Outcome.INLINE,
    count=1,
    bytes_before=9,
    bytes_after=9,
    sizes=(1,) + (0,) * (SIZE_CLASSES - 1),
)


async def test_live_and_ready_answer_ok(api: Api) -> None:
    assert (await api.get("/healthz")).status == 200
    assert (await api.get("/readyz")).status == 200


async def test_a_stopping_service_is_alive_but_not_ready(api: Api) -> None:
    api.service.is_stopping = True

    assert (await api.get("/healthz")).status == 200
    assert (await problem(await api.get("/readyz"))).code == Code.SHUTTING_DOWN


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not on the PATH")
async def test_the_figures_are_clean_for_promtool(api: Api) -> None:
    await api.put(b"x" * 1000)
    await api.get("/nowhere")
    api.service.metrics.observation("default", OBSERVED)
    figures = await (await api.get("/metrics")).read()
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=figures, capture_output=True, check=False
    )

    assert (checked.returncode, checked.stderr.decode()) == (0, "")


async def test_figures_never_carry_ids(api: Api) -> None:
    entry = await api.put(b"x" * 1000, "call_secret", Overspill_Session="session-secret")
    await api.get(f"/v1/captures/{entry.id}/content")
    figures = await (await api.get("/metrics")).text()

    assert not any(word in figures for word in (entry.id, "call_secret", "session-secret"))
    assert 'overspill_captures_total{result="created",tenant="default",tool=""} 1.0' in figures
    assert 'overspill_reads_total{mode="content",tenant="default"} 1.0' in figures


async def test_bytes_of_answers_are_bytes_and_not_characters(api: Api) -> None:
    entry = await api.put("€\n".encode())
    await api.get(f"/v1/captures/{entry.id}/tail")
    figures = await (await api.get("/metrics")).text()

    assert 'overspill_read_bytes_total{mode="tail",tenant="default"} 4.0' in figures


async def test_asking_for_headers_alone_counts_as_no_read(api: Api) -> None:
    entry = await api.put(b"x" * 1000)
    await api.send("HEAD", f"/v1/captures/{entry.id}/content")
    figures = await (await api.get("/metrics")).text()

    assert 'overspill_reads_total{mode="content"' not in figures


async def test_a_summary_counts_the_bytes_of_its_answer(api: Api) -> None:
    entry = await api.put(b"x\n" * 100_000)
    size = len(await (await api.get(f"/v1/captures/{entry.id}/summary")).read())
    figures = await (await api.get("/metrics")).text()

    assert f'overspill_read_bytes_total{{mode="summary",tenant="default"}} {float(size)}' in figures


async def test_tool_labels_are_bounded(api: Api) -> None:
    for number in range(210):
        await api.put(b"%d" % number, f"c{number}", Overspill_Tool=f"tool{number}")
    figures = await (await api.get("/metrics")).text()

    assert figures.count("overspill_captures_total{") <= 201
    assert 'tool="other"' in figures


async def test_a_request_id_is_passed_through_where_it_is_harmless(api: Api) -> None:
    kept = await api.get("/healthz", headers={"X-Request-Id": "abc-123"})
    replaced = await api.get("/healthz", headers={"X-Request-Id": "a b" + "x" * 100})

    assert kept.headers["X-Request-Id"] == "abc-123"
    assert len(replaced.headers["X-Request-Id"]) == 16


async def test_a_problem_carries_the_request_id(api: Api) -> None:
    response = await api.get("/v1/captures/cap_x", headers={"X-Request-Id": "abc-123"})

    assert (await problem(response)).instance == "abc-123"


async def test_the_front_page_is_html_without_scripts(api: Api) -> None:
    response = await api.get("/")

    assert response.content_type == "text/html"
    assert "script" not in (await response.text()).lower()
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]


async def test_methods_of_other_protocols_make_no_labels(api: Api) -> None:
    for method in ("PROPFIND", "MKCOL", "NOTIFY"):
        await api.send(method, "/nowhere")
    figures = await (await api.get("/metrics")).text()

    assert "PROPFIND" not in figures
    assert 'overspill_http_requests_total{method="other",route="unknown",status="404"} 3.0' in figures
