"""Liveness, readiness, figures, and what surrounds every answer."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from overspill.wire import SIZE_CLASSES, Code, Observation, Observations, Outcome
from overspill_service.tenants.keys import hash_key, new_key

from tests.web.conftest import Api, path_of, problem

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
    batch = Observations(batch="a" * 8, observations=[OBSERVED])
    await api.service.metrics.observe(api.service.archive.catalog, "default", batch, 0)
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
    assert 'overspill_reads_total{mode="content",tenant="default",tool=""} 1.0' in figures


async def test_bytes_of_answers_are_bytes_and_not_characters(api: Api) -> None:
    entry = await api.put("€\n".encode())
    await api.get(f"/v1/captures/{entry.id}/tail")
    figures = await (await api.get("/metrics")).text()

    assert 'overspill_read_bytes_total{mode="tail",tenant="default"} 4.0' in figures


async def test_asking_for_headers_alone_counts_as_no_read(api: Api) -> None:
    entry = await api.put(b"x" * 1000)
    await api.send("HEAD", f"/v1/captures/{entry.id}/content")
    figures = await (await api.get("/metrics")).text()

    assert 'overspill_reads_total{mode="content",tenant="default",tool=""} 0.0' in figures


async def test_a_summary_counts_the_bytes_of_its_answer(api: Api) -> None:
    entry = await api.put(b"x\n" * 100_000)
    size = len(await (await api.get(f"/v1/captures/{entry.id}/summary")).read())
    figures = await (await api.get("/metrics")).text()

    assert f'overspill_read_bytes_total{{mode="summary",tenant="default"}} {float(size)}' in figures


async def test_a_request_id_is_passed_through_where_it_is_harmless(api: Api) -> None:
    kept = await api.get("/healthz", headers={"X-Request-Id": "abc-123"})
    replaced = await api.get("/healthz", headers={"X-Request-Id": "a b" + "x" * 100})

    assert kept.headers["X-Request-Id"] == "abc-123"
    assert len(replaced.headers["X-Request-Id"]) == 16


async def test_a_problem_carries_the_request_id(api: Api) -> None:
    response = await api.get("/v1/captures/cap_x", headers={"X-Request-Id": "abc-123"})

    assert (await problem(response)).instance == "abc-123"


async def test_methods_of_other_protocols_make_no_labels(api: Api) -> None:
    for method in ("PROPFIND", "MKCOL", "NOTIFY"):
        await api.send(method, "/nowhere")
    figures = await (await api.get("/metrics")).text()

    assert "PROPFIND" not in figures
    assert 'overspill_http_requests_total{method="other",route="unknown",status="404"} 3.0' in figures


async def test_figures_tell_who_asks_by_tenant_key_and_code(
    start_api: Callable[..., Any], tmp_path: Path
) -> None:
    key = new_key()
    hashed = hash_key(key)
    file = tmp_path / "tenants.toml"
    file.write_text(
        f'[[tenants]]\nname = "acme"\nkeys = [{{hash = "{hashed}", scopes = ["write", "read"]}}]\n'
    )
    api: Api = await start_api(tenants=file, metrics_from="127.0.0.1")
    bearer = {"Authorization": f"Bearer {key}"}
    await api.send("PUT", path_of(b"x" * 100), data=b"x" * 100, headers=bearer)
    await api.get("/v1/captures/call:none", headers=bearer)
    await api.get("/v1/captures", headers={"Authorization": f"Bearer {new_key()}"})
    figures = await (await api.get("/metrics")).text()
    who = f'key="{hashed[:12]}",tenant="acme"'

    assert f'overspill_tenant_requests_total{{code="",{who}}} 1.0' in figures
    assert f'overspill_tenant_requests_total{{code="not_found",{who}}} 1.0' in figures
    assert 'overspill_tenant_requests_total{code="unauthorized",key="",tenant=""} 1.0' in figures
    assert f"overspill_tenant_received_bytes_total{{{who}}} 100.0" in figures
    sent = re.search(rf"overspill_tenant_sent_bytes_total{{{who}}} (.*)", figures)
    assert sent is not None
    assert float(sent[1]) > 100


async def test_figures_tell_the_room_on_the_disks_of_back_ends(
    start_api: Callable[..., Any], tmp_path: Path
) -> None:
    api: Api = await start_api(store=f"file://{tmp_path}", catalog=f"sqlite://{tmp_path}/catalog.sqlite")

    async def figures() -> str:
        return await (await api.get("/metrics")).text()

    async with asyncio.timeout(30):
        while (text := await figures()).count("\noverspill_free_") < 4:  # noqa: ASYNC110  (maintenance sets no event)
            await asyncio.sleep(0.02)
    free = {
        name: float(value) for name, value in re.findall(r"^overspill_free_(.*) (.*)$", text, re.MULTILINE)
    }

    assert free.keys() == {
        'bytes{backend="catalog"}',
        'bytes{backend="store"}',
        'inodes{backend="catalog"}',
        'inodes{backend="store"}',
    }
    total = shutil.disk_usage(tmp_path).total
    assert 0 < free['bytes{backend="store"}'] <= total
