"""/v1/experiments: sums by arm and group, of reports and of captures with a label."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from overspill import wire
from overspill.wire import Arm, Code, Cohort, CohortCount, CohortSums, Observations
from overspill_service.catalog.statistics import EXPERIMENTS, MAX_CELLS, Cell
from overspill_service.tenants.keys import hash_key, new_key

from tests.web.conftest import Api, problem
from tests.web.test_statistics import figures, observed, settle, stats

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LABEL = {"Overspill_Label_overspill.cohort": "previews.holdout.03"}


def counted(experiment: str = "previews", group: int = 3, **sums: int) -> CohortCount:
    return CohortCount(experiment=experiment, arm=Arm.HOLDOUT, group=group, sums=CohortSums(**sums))


async def report(api: Api, *seen: CohortCount, batch: str = "", **sent: Any) -> Any:
    content = Observations(batch=batch or secrets.token_hex(8), observations=[observed()], cohorts=list(seen))
    return await api.send("POST", "/v1/observations", data=msgspec.json.encode(content), **sent)


async def experiments(api: Api, query: str = "", **sent: Any) -> wire.Experiments:
    response = await api.get(f"/v1/experiments?{query}", **sent)
    assert response.status == 200, await response.text()
    return msgspec.json.decode(await response.read(), type=wire.Experiments)


def sums(answer: wire.Experiments) -> dict[str, dict[str, int]]:
    return {Cohort(row.experiment, row.arm, row.group).encode(): row.figures for row in answer.rows}


async def test_a_report_counts_once_and_only_in_its_cohort(api: Api) -> None:
    for _ in range(3):
        await report(api, counted(outputs=5, sessions=1), counted(group=9, outputs=2), batch="the-same-batch")
    found = await experiments(api)

    assert sums(found) == {
        "previews.holdout.03": {"outputs": 5, "sessions": 1},
        "previews.holdout.09": {"outputs": 2},
    }
    assert not found.overflowed
    assert set(figures(await stats(api))) == {("default", "grep", "captured")}


async def test_reads_of_a_labelled_capture_count_in_its_cohort(api: Api) -> None:
    entry = await api.put(b"x" * 1000, "call_0", **LABEL)
    await api.put(b"x" * 1000, "call_0", **LABEL)
    other = await api.put(b"y" * 1000, "call_1")
    for name in (entry.id, entry.id, other.id):
        await api.get(f"/v1/captures/{name}/tail")
        await settle(api)

    assert sums(await experiments(api)) == {
        "previews.holdout.03": {"captures": 1, "captures_read": 1, "reads": 2, "read_bytes": 2000}
    }


@pytest.mark.parametrize("label", ["previews.holdout", "previews.holdout.99", "a b.holdout.01", "x" * 200])
async def test_a_label_that_is_no_cohort_counts_nowhere(api: Api, label: str) -> None:
    entry = await api.put(b"x" * 1000, "call_0", **{"Overspill_Label_overspill.cohort": label})
    await api.get(f"/v1/captures/{entry.id}/tail")
    await settle(api)

    assert (await experiments(api)).rows == []


async def test_invented_experiments_take_bounded_room_and_are_noticed(api: Api) -> None:
    for first in range(0, 120, 60):
        await report(api, *(counted(f"e{number}", outputs=1) for number in range(first, first + 60)))
    found = await experiments(api)

    assert len(found.rows) == 32
    assert found.overflowed


@pytest.mark.parametrize(
    "change",
    [
        {"experiment": "a.b"},
        {"experiment": "e\n"},
        {"group": 16},
        {"group": -1},
        {"arm": "third"},
        {"sums": {"outputs": -1}},
    ],
)
async def test_a_report_of_an_impossible_cohort_is_refused(api: Api, change: dict[str, Any]) -> None:
    cohort = {"experiment": "e", "arm": "usual", "group": 1, "sums": {"outputs": 1}, **change}
    content = {"batch": secrets.token_hex(8), "observations": [], "cohorts": [cohort]}
    response = await api.send("POST", "/v1/observations", json=content)

    assert response.status == 422
    assert (await experiments(api)).rows == []


async def test_a_wrong_time_is_a_problem(api: Api) -> None:
    for query in ("since=2020-01-01", "since=2020-01-02T00:00:00Z&until=2020-01-01T00:00:00Z"):
        response = await api.get(f"/v1/experiments?{query}")
        assert (await problem(response)).code == Code.INVALID_PARAMETER


async def test_a_tenant_sees_its_own_experiments_alone(start_api: Callable[..., Any], tmp_path: Path) -> None:
    keys = {name: new_key() for name in ("acme", "beta", "ops")}
    scopes = {"acme": '["read", "observe"]', "beta": '["read", "observe"]', "ops": '["fleet"]'}
    file = tmp_path / "tenants.toml"
    file.write_text(
        "".join(
            f'[[tenants]]\nname = "{name}"\nkeys = [{{hash = "{hash_key(key)}", scopes = {scopes[name]}}}]\n'
            for name, key in keys.items()
        )
    )
    api: Api = await start_api(tenants=file)
    headers = {name: {"Authorization": f"Bearer {key}"} for name, key in keys.items()}
    await report(api, counted("ours", outputs=1), headers=headers["acme"])
    await settle(api)

    assert sums(await experiments(api, headers=headers["acme"])) == {"ours.holdout.03": {"outputs": 1}}
    assert (await experiments(api, headers=headers["beta"])).rows == []
    assert (await problem(await api.get("/v1/experiments", headers=headers["ops"]))).code == Code.FORBIDDEN
    assert {row.tool for row in (await stats(api, "/v1/admin/stats", headers=headers["ops"])).rows} == {""}


async def test_more_experiments_than_a_day_has_room_for_are_noticed(api: Api) -> None:
    catalog = api.service.archive.catalog
    cells = {Cell("outputs", f"e{number}.usual.00"): 1 for number in range(MAX_CELLS + 500)}
    tenant, now = f"{EXPERIMENTS}default", api.service.archive.clock()
    await catalog.add_sums(tenant, cells, now=now, batch="a batch", memory=60)
    found = await experiments(api)

    assert len(found.rows) == MAX_CELLS
    assert found.overflowed
