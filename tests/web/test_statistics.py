"""Statistics over time: /v1/stats of a tenant, and of all tenants for a key that may see them."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from overspill import wire
from overspill.wire import Code, Observation, Observations, Outcome
from overspill_service.catalog.statistics import Cell
from overspill_service.tenants.keys import hash_key, new_key

from tests.web.conftest import Api, problem

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def observed(tool: str = "grep", outcome: Outcome = Outcome.CAPTURED, **more: int) -> Observation:
    seen = Observation(tool=tool, outcome=outcome, count=3, bytes_before=300, bytes_after=30)
    return msgspec.structs.replace(seen, **more)


async def report(api: Api, *seen: Observation, batch: str = "", **sent: Any) -> bool:
    observations = Observations(batch=batch or secrets.token_hex(8), observations=list(seen))
    response = await api.send("POST", "/v1/observations", data=msgspec.json.encode(observations), **sent)
    assert response.status == 200, await response.text()
    return msgspec.json.decode(await response.read(), type=wire.Accepted).counted


async def stats(api: Api, path: str = "/v1/stats", **sent: Any) -> wire.Stats:
    response = await api.get(path, **sent)
    assert response.status == 200, await response.text()
    return msgspec.json.decode(await response.read(), type=wire.Stats)


async def settle(api: Api) -> None:
    """Write what waits, as the maintenance job does every few seconds."""
    archive = api.service.archive
    await api.service.metrics.write_pending(archive.catalog, archive.clock())


def figures(answer: wire.Stats) -> dict[tuple[str, str, str], dict[str, int]]:
    """The sums of all rows by tenant, tool and outcome."""
    found: dict[tuple[str, str, str], dict[str, int]] = {}
    for row in answer.rows:
        sums = found.setdefault((row.tenant, row.tool, row.outcome), {})
        for name, amount in row.figures.items():
            sums[name] = sums.get(name, 0) + amount
    return found


async def test_a_reported_batch_is_in_the_statistics_at_once_and_once(api: Api) -> None:
    for _ in range(3):
        await report(
            api,
            observed(tokens_kept_out=70, identical=1, bursts=2),
            observed("ls", Outcome.INLINE),
            batch="the-same-batch",
        )

    assert figures(await stats(api)) == {
        ("default", "grep", "captured"): {
            "tool_outputs": 3,
            "tool_output_bytes": 300,
            "tool_output_kept_bytes": 30,
        },
        ("default", "grep", ""): {
            "tool_output_tokens_kept_out": 70,
            "identical_tool_outputs": 1,
            "tool_rerun_bursts": 2,
        },
        ("default", "ls", "inline"): {
            "tool_outputs": 3,
            "tool_output_bytes": 300,
            "tool_output_kept_bytes": 30,
        },
    }


async def test_captures_reads_and_first_reads_follow_within_seconds(api: Api) -> None:
    entry = await api.put(b"x" * 1000, Overspill_Tool="grep")
    await api.put(b"x" * 1000, Overspill_Tool="grep")
    for mode in ("head", "content", "head"):
        await api.get(f"/v1/captures/{entry.id}/{mode}")
    await settle(api)
    found = figures(await stats(api))

    assert found["default", "grep", "created"] == {"captures": 1}
    assert found["default", "grep", "repeated"] == {"captures": 1}
    assert found["default", "grep", ""]["captures_read"] == 1
    assert found["default", "grep", ""]["capture_bytes"] == 1000
    assert found["default", "grep", "head"] == {"reads": 2}
    assert found["default", "grep", "content"] == {"reads": 1}


async def test_a_capture_is_read_for_the_first_time_once(api: Api) -> None:
    entry = await api.put(b"x" * 1000, "call_0", **{"Overspill_Label_overspill.preview": "ends"})
    assert entry.first_read is None
    for _ in range(3):
        await api.get(f"/v1/captures/{entry.id}/tail")
        await settle(api)
    again = await api.get(f"/v1/captures/{entry.id}")
    text = await (await api.get("/metrics")).text()

    assert msgspec.json.decode(await again.read(), type=wire.Entry).first_read is not None
    assert entry.first_reader == ""
    assert 'overspill_captures_read_total{tenant="default",tool=""} 1.0' in text
    assert 'overspill_first_read_delay_seconds_count{tenant="default"} 1.0' in text
    assert 'overspill_previewed_captures_total{preview="ends",tenant="default"} 1.0' in text
    assert 'overspill_previewed_captures_read_total{preview="ends",tenant="default"} 1.0' in text
    assert 'overspill_previewed_captures_read_total{preview="none",tenant="default"} 0.0' in text


async def test_what_waits_is_written_when_the_service_stops(
    start_api: Callable[..., Any], tmp_path: Path
) -> None:
    folder = {"store": f"file://{tmp_path}/objects", "catalog": f"sqlite://{tmp_path}/catalog"}
    first: Api = await start_api(**folder)
    entry = await first.put(b"x" * 1000, Overspill_Tool="grep")
    await first.get(f"/v1/captures/{entry.id}/head")
    await first.stop()
    second: Api = await start_api(**folder)

    assert figures(await stats(second))["default", "grep", ""]["captures_read"] == 1


# --- time -----------------------------------------------------------------------------------------


async def fill(api: Api, start: float, buckets: int, step: int, tools: int = 1) -> None:
    catalog = api.service.archive.catalog
    sums = {Cell("tool_outputs", f"tool {number}", "inline"): 1 for number in range(tools)}
    for number in range(buckets):
        at = start + number * step
        await catalog.add_sums("default", sums, now=at, batch=secrets.token_hex(8), memory=60)


def query(**parameters: object) -> dict[str, Any]:
    return {"params": {name: str(value) for name, value in parameters.items()}}


async def test_rows_are_those_of_the_asked_time_and_step(api: Api) -> None:
    start = api.service.archive.clock() // 900 * 900 - 1800
    await fill(api, start, buckets=4, step=60)
    since, until = (datetime.fromtimestamp(start + seconds, UTC).isoformat() for seconds in (60, 180))
    minutes = await stats(api, **query(since=since, until=until))
    quarters = await stats(api, **query(since=datetime.fromtimestamp(start, UTC).isoformat(), step=900))
    total = await stats(api, **query(since=since, until=until, total="true"))

    assert [(row.start.timestamp() - start, row.figures) for row in minutes.rows] == [
        (60, {"tool_outputs": 1}),
        (120, {"tool_outputs": 1}),
    ]
    assert (minutes.step, quarters.step) == (60, 900)
    assert [row.figures for row in quarters.rows] == [{"tool_outputs": 4}]
    assert [(row.start, row.figures) for row in total.rows] == [(total.since, {"tool_outputs": 2})]


@pytest.mark.parametrize(
    ("age", "step"),
    [(3600, 60), (3 * 3600, 60), (4 * 3600, 900), (7 * 86400, 900), (30 * 86400, 86400), (10**9, 86400)],
)
async def test_without_a_step_it_is_the_finest_that_is_still_kept(api: Api, age: float, step: int) -> None:
    since = datetime.fromtimestamp(api.service.archive.clock() - age, UTC).isoformat()

    assert (await stats(api, **query(since=since))).step == step


@pytest.mark.parametrize("step", [60, 900, 86400])
async def test_without_a_time_the_bucket_that_runs_is_among_those_of_any_step(api: Api, step: int) -> None:
    await report(api, observed())

    assert figures(await stats(api, **query(step=step)))["default", "grep", "captured"]["tool_outputs"] == 3


async def test_the_answer_says_from_when_on_its_sums_are(api: Api) -> None:
    now = api.service.archive.clock()
    found = await stats(api, **query(since="2020-01-01T00:00:00Z", step=60, total="true"))
    older = await stats(api, **query(since="2020-01-01T00:00:00Z", until="2020-01-02T00:00:00Z", step=60))

    assert abs(found.since.timestamp() - (now - 3 * 3600)) < 120
    assert older.since == older.until
    assert older.rows == []


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"step": 61}, "step must be one of 60, 900, 86400 seconds"),
        ({"since": "2999-01-01T00:00:00Z"}, "since must be before until"),
        ({"since": "yesterday"}, "Expected a time such as 2026-11-23T06:00:00Z"),
        ({"since": "2026-11-23T06:00:00 02:00"}, "with %2B for a plus sign - at `since`"),
        ({"tenant": "acme"}, "tenant"),
    ],
)
async def test_a_wrong_query_is_told_what_is_allowed(
    api: Api, parameters: dict[str, object], said: str
) -> None:
    found = await problem(await api.get("/v1/stats", **query(**parameters)))

    assert found.code == Code.INVALID_PARAMETER
    assert said in found.detail


@pytest.mark.parametrize(
    "parameters",
    [
        {"since": "0001-01-01T00:00:00+14:00"},
        {"until": "9999-12-31T23:59:59-14:00"},
        {"since": "0001-01-01T00:00:00", "until": "9999-12-31T23:59:59", "total": "true"},
        {"since": "0001-01-01T00:00:00", "step": 60},
    ],
)
async def test_times_beyond_all_calendars_are_cut_to_what_there_may_be(
    api: Api, parameters: dict[str, object]
) -> None:
    await report(api, observed())
    found = await stats(api, **query(**parameters))

    assert found.since.year >= 1970
    assert found.until.year < 9999
    if "until" not in parameters or "since" in parameters:
        assert figures(found)["default", "grep", "captured"]["tool_outputs"] == 3


async def test_too_many_rows_are_refused_unless_only_their_sums_are_asked_for(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overspill.wire.MAX_ROWS", 20)
    await fill(api, api.service.archive.clock() - 600, buckets=5, step=60, tools=5)

    assert "total=true" in (await problem(await api.get("/v1/stats"))).detail
    assert len((await stats(api, **query(total="true"))).rows) == 5


# --- who may see what -----------------------------------------------------------------------------


@pytest.fixture
async def shared(start_api: Callable[..., Any], tmp_path: Path) -> tuple[Api, dict[str, dict[str, str]]]:
    """A service with keys of two tenants and of an operator."""
    scopes = {"acme": '["read", "observe", "admin"]', "beta": '["read", "observe"]', "ops": '["fleet"]'}
    keys = {name: new_key() for name in scopes}
    file = tmp_path / "tenants.toml"
    file.write_text(
        "".join(
            f'[[tenants]]\nname = "{name}"\nkeys = [{{hash = "{hash_key(keys[name])}", scopes = {given}}}]\n'
            for name, given in scopes.items()
        )
    )
    api: Api = await start_api(tenants=file)
    return api, {name: {"Authorization": f"Bearer {key}"} for name, key in keys.items()}


async def test_a_tenant_sees_its_own_statistics_and_an_operator_those_of_all(
    shared: tuple[Api, dict[str, dict[str, str]]],
) -> None:
    api, headers = shared
    for name in ("acme", "beta"):
        await report(api, observed(f"tool of {name}"), headers=headers[name])
    await settle(api)
    own = await stats(api, headers=headers["acme"])
    fleet = await stats(api, "/v1/admin/stats", headers=headers["ops"])

    assert {(row.tenant, row.tool) for row in own.rows} == {("acme", "tool of acme")}
    assert {(row.tenant, row.tool, row.outcome) for row in fleet.rows} == {
        ("acme", "", "captured"),
        ("beta", "", "captured"),
    }


@pytest.mark.parametrize(("who", "path"), [("acme", "/v1/admin/stats"), ("ops", "/v1/stats")])
async def test_no_other_scope_opens_them(
    shared: tuple[Api, dict[str, dict[str, str]]], who: str, path: str
) -> None:
    api, headers = shared

    assert (await problem(await api.get(path, headers=headers[who]))).code == Code.FORBIDDEN
    assert (await problem(await api.get(path))).code == Code.UNAUTHORIZED


async def test_one_tenants_endless_figures_stop_no_others(api: Api) -> None:
    most = 2**63 - 1
    for _ in range(3):
        await report(api, observed("huge", bytes_before=most, bytes_after=most, tokens_kept_out=most))
        await settle(api)
    await report(api, observed("small"))
    await settle(api)

    found = figures(await stats(api))
    assert found["default", "huge", "captured"]["tool_output_bytes"] == most
    assert found["default", "small", "captured"]["tool_output_bytes"] == 300
    fleet = figures(await stats(api, "/v1/admin/stats"))
    assert fleet["default", "", "captured"]["tool_outputs"] == 12


@pytest.mark.parametrize("path", ["/v1/stats", "/v1/admin/stats", "/v1/experiments"])
@pytest.mark.parametrize(
    "when", ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00%2B14:00", "9999-12-31T23:59:59-14:00"]
)
@pytest.mark.parametrize("name", ["since", "until"])
async def test_the_ends_of_the_calendar_are_instants_like_any_other(
    api: Api, path: str, name: str, when: str
) -> None:
    response = await api.get(f"{path}?{name}={when}")

    assert response.status in (200, 422), await response.text()


async def test_what_a_person_looks_at_in_a_browser_is_no_read_back(api: Api) -> None:
    entry = await api.put(b"one line\n")
    for path in ("head", "content", "summary", "grep?pattern=one"):
        await api.get(f"/v1/captures/{entry.id}/{path}", headers={"Sec-Fetch-Site": "same-origin"})
    await settle(api)

    seen = {name for row in figures(await stats(api)).values() for name in row}
    assert "captures" in seen
    assert seen.isdisjoint({"reads", "captures_read"})


async def test_all_tools_together_are_one_row_for_each_outcome(api: Api) -> None:
    """However many tools there are: charts over a month of a thousand tools stay small."""
    for number in range(30):
        await report(api, observed(f"tool-{number}"), observed(f"tool-{number}", Outcome.INLINE))
    await settle(api)
    together = await stats(api, "/v1/stats?tools=false")

    assert {(row.tenant, row.tool, row.outcome) for row in together.rows} >= {
        ("default", "", "captured"),
        ("default", "", "inline"),
    }
    assert sum(row.figures.get("tool_outputs", 0) for row in together.rows) == 30 * 2 * 3
    assert len({row.outcome for row in together.rows}) == len({(r.start, r.outcome) for r in together.rows})
