"""The answers for dashboards: the same sums as statistics, the tools with the most, the largest captures."""

from __future__ import annotations

import math
import random
import secrets
from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock

import msgspec
import pytest
from overspill import wire
from overspill.wire import Code, Outcome, Path, Scope
from overspill_service.catalog.statistics import DAYS, LATE_SECONDS, MAX_SUM, QUARTERS, Cell
from overspill_service.errors import CatalogFull, CatalogUnavailable
from overspill_service.telemetry.pending import PendingSums
from overspill_service.tenants.keys import hash_key, new_key
from overspill_service.web import figures as figures_module
from overspill_service.web.buckets import Span
from overspill_service.web.history import MONTH, History, Rollup

from tests.web.conftest import problem
from tests.web.test_bound_keys import Keys
from tests.web.test_statistics import figures, observed, query, report, settle, stats

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path as Folder

    from overspill_service.catalog import Catalog

    from tests.web.conftest import Api


async def overview(api: Api, path: str = Path.OVERVIEW, **sent: Any) -> wire.Overview:
    response = await api.get(path, **sent)
    assert response.status == 200, await response.text()
    return msgspec.json.decode(await response.read(), type=wire.Overview)


def sums(rows: list[wire.StatsRow]) -> dict[tuple[str, str, str], dict[str, int]]:
    moment = wire.StatsRow(**msgspec.structs.asdict(rows[0])).start if rows else None
    return {} if moment is None else figures(wire.Stats(since=moment, until=moment, step=60, rows=rows))


async def fill(api: Api, tools: int) -> None:
    """Report tools, of which each keeps more out of conversations than the one before."""
    for number in range(tools):
        await report(api, observed(f"tool {number}", bytes_before=1_000 * (number + 1)))


async def test_the_sums_are_those_of_the_statistics(api: Api) -> None:
    await fill(api, 3)
    await report(api, observed("ls", Outcome.INLINE), observed("", Outcome.SPOOLED, bursts=2))
    await api.put(b"x" * 1000, Overspill_Tool="tool 1")
    await settle(api)
    found = await overview(api)

    assert sums(found.tools) == figures(await stats(api, **query(total=True)))
    assert sums(found.series) == figures(await stats(api, **query(tools="false")))
    assert found.step == (await stats(api, **query(since=found.since.isoformat()))).step


async def test_the_tools_that_kept_out_the_most_are_told_apart_and_no_sum_is_lost(api: Api) -> None:
    await fill(api, 5)
    found = sums((await overview(api, **query(top=2))).tools)
    everything = sums((await overview(api)).tools)

    assert {tool for _, tool, _ in found} == {"tool 4", "tool 3", "other"}
    assert found["default", "other", "captured"] == {
        "tool_outputs": 9,
        "tool_output_bytes": 6_000,
        "tool_output_kept_bytes": 90,
    }
    assert found["default", "tool 4", "captured"] == everything["default", "tool 4", "captured"]
    assert len(everything) == 5


async def test_what_was_counted_is_there_at_once_however_often_one_asks(api: Api) -> None:
    counts = []
    for _ in range(3):
        await report(api, observed("grep"))
        counts.append(sums((await overview(api)).tools)["default", "grep", "captured"]["tool_outputs"])

    assert counts == [3, 6, 9]


async def test_advice_is_on_the_shown_tools(api: Api) -> None:
    await fill(api, 2)
    found = await overview(api)
    few = await overview(api, **query(top=1))

    assert [each.tool for each in found.advice] == ["tool 0", "tool 1"]
    assert [each.tool for each in few.advice] == ["tool 1"]
    assert found.advice[0].missing == "0 of the 30 captures that advice needs"
    assert (found.advice[0].usual_max_bytes, found.advice[0].policy) == (50_000, "")


async def test_the_overview_of_all_tenants_has_them_in_the_place_of_tools(
    start_api: Callable[..., Any], tmp_path: Folder
) -> None:
    keys = {name: new_key() for name in ("acme", "globex", "fleet")}
    scopes = {"acme": ["observe", "read"], "globex": ["observe"], "fleet": ["fleet"]}
    file = tmp_path / "tenants.toml"
    file.write_text(
        "".join(
            f'[[tenants]]\nname = "{name}"\nkeys = [{{hash = "{hash_key(key)}", scopes = {scopes[name]}}}]\n'
            for name, key in keys.items()
        )
    )
    api: Api = await start_api(tenants=file, anonymous=False)
    sent: dict[str, Any] = {
        name: {"headers": {"Authorization": f"Bearer {key}"}} for name, key in keys.items()
    }
    await report(api, observed("grep"), **sent["acme"])
    await report(api, observed("grep"), **sent["globex"])
    await settle(api)
    found = await overview(api, Path.FLEET_OVERVIEW, **sent["fleet"])

    assert {row.tenant for row in found.tools} == {"acme", "globex"}
    assert sum(row.figures.get("tool_outputs", 0) for row in found.series) == 6
    assert found.advice == []
    assert (await problem(await api.get(Path.FLEET_OVERVIEW, **sent["acme"]))).code == Code.FORBIDDEN


async def test_the_figures_of_one_tool_are_those_of_the_statistics(api: Api) -> None:
    await fill(api, 3)
    await report(api, observed("tool 1", Outcome.INLINE))
    everything = await overview(api)
    found = await overview(api, **query(tool="tool 1"))
    nothing = await overview(api, **query(tool="tool"))

    assert sums(found.tools) == {
        name: each for name, each in sums(everything.tools).items() if name[1] == "tool 1"
    }
    assert sums(found.series) == {
        ("default", "", outcome): each for (_, _, outcome), each in sums(found.tools).items()
    }
    assert [each.tool for each in found.advice] == ["tool 1"]
    assert (nothing.series, nothing.tools, nothing.advice) == ([], [], [])


# --- past buckets ---------------------------------------------------------------------------------

GREP = Cell("tool_outputs", "grep", "captured")
NOW = 1_800_014_400.0


async def add(catalog: Catalog, amount: int, at: float, cell: Cell = GREP) -> None:
    await catalog.add_sums("acme", {cell: amount}, now=at, batch=secrets.token_hex(8), memory=60)


async def total(history: History, catalog: Catalog, since: float, now: float = NOW) -> int:
    found = await history.figures(catalog, "acme", Span(since, now, QUARTERS), now)
    return found.total.get(GREP.encode(), 0)


async def test_past_buckets_are_kept_for_a_while_and_the_present_one_never(api: Api) -> None:
    """So it is in every process: what was computed is in the catalog."""
    catalog, since, late = api.service.archive.catalog, NOW - DAYS.seconds, NOW - 3 * QUARTERS.seconds
    await add(catalog, 1, late)
    await add(catalog, 2, NOW)
    first = await total(History(), catalog, since, NOW + 1)
    await add(catalog, 10, late)
    await add(catalog, 20, NOW)
    second = await total(History(), catalog, since, NOW + 1)
    await catalog.forget_rollups("acme")

    assert (first, second) == (3, 23)
    assert await total(History(), catalog, since, NOW + 1) == 33


async def test_what_is_written_late_is_seen(api: Api) -> None:
    """A catalog that failed gets what is late when it answers again."""
    catalog, since, late = api.service.archive.catalog, NOW - DAYS.seconds, NOW - 3 * QUARTERS.seconds
    await add(catalog, 1, late)
    before = await total(History(), catalog, since)
    pending = PendingSums()
    pending.add_to("acme", GREP, 10)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalog, "add_sums", AsyncMock(side_effect=CatalogUnavailable("it is away")))
        with pytest.raises(CatalogUnavailable):
            await pending.write(catalog, late)
    await pending.write(catalog, NOW)

    assert (before, await total(History(), catalog, since)) == (1, 11)


async def test_a_roll_up_moves_on_with_the_time_and_stays_exact(api: Api) -> None:
    """Beside it, the same from all buckets."""
    catalog, chance = api.service.archive.catalog, random.Random(7)
    now, day = NOW, DAYS.seconds
    for step in range(60):
        now += chance.choice([1, 60, 900, 1_800, 5_400, day // 2, 2 * day])
        for number in range(chance.randrange(4)):
            await add(catalog, step + 1, now, Cell("reads", f"tool {chance.randrange(9)}", str(number)))
        moved = await History().figures(catalog, "acme", Span(now - day, now, QUARTERS), now)
        first = QUARTERS.seconds * math.ceil((now - day) / QUARTERS.seconds)
        anew = Rollup(0, 0, now, {}, {})
        for start, each in (await catalog.sums("acme", QUARTERS, since=first, until=now)).items():
            anew.add("acme", start, each)

        assert moved.rows == anew.rows
        assert moved.total == anew.total


async def test_a_bucket_that_has_just_ended_is_still_read_anew(api: Api) -> None:
    catalog, history = api.service.archive.catalog, History()
    since, ended = NOW - QUARTERS.seconds, NOW + LATE_SECONDS - 1
    await add(catalog, 1, since)
    before = await total(history, catalog, since, ended)
    await add(catalog, 1, since)

    assert (before, await total(history, catalog, since, ended)) == (1, 2)


async def test_only_times_that_dashboards_offer_have_roll_ups(api: Api) -> None:
    """Or a client could fill the catalog with them."""
    catalog = api.service.archive.catalog
    kept = AsyncMock(wraps=catalog.keep_rollup)
    await add(catalog, 1, NOW - DAYS.seconds)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalog, "keep_rollup", kept)
        for hours in range(1, 200):
            await total(History(), catalog, NOW - hours * 3_600)

    assert kept.await_count == 3


async def test_a_catalog_without_room_for_a_roll_up_answers_all_the_same(api: Api) -> None:
    catalog = api.service.archive.catalog
    await add(catalog, 1, NOW - 3_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalog, "keep_rollup", AsyncMock(side_effect=CatalogFull("full")))
        found = await total(History(), catalog, NOW - DAYS.seconds)

    assert found == 1


async def test_sums_at_the_bound_are_answered(api: Api) -> None:
    catalog = api.service.archive.catalog
    for day in range(4):
        await add(catalog, MAX_SUM, NOW - day * DAYS.seconds)
    found = await History().figures(catalog, "acme", Span(NOW - MONTH, NOW, DAYS), NOW)

    assert found.total[GREP.encode()] == 4 * MAX_SUM
    assert figures_module.of_largest(found.total, 5) == {GREP: MAX_SUM}


def test_the_cells_of_a_long_time_are_bounded() -> None:
    """Names that are new each day, beyond the bound, are of `other`, and no sum is lost."""
    found = Rollup(0, 0, 0.0, {}, {})
    for day in range(10):
        cells = {Cell("reads", f"tool {day} {number}", "grep").encode(): 1 for number in range(4_000)}
        found.add("acme", day, cells)

    assert len(found.total) == figures_module.MAX_CELLS_TOGETHER + 1
    assert sum(found.total.values()) == 40_000
    assert not found.is_exact


async def test_a_process_prepares_the_month_of_those_who_were_counted_once(api: Api) -> None:
    catalog = api.service.archive.catalog
    await add(catalog, 5, NOW - 3 * DAYS.seconds)
    kept = AsyncMock(wraps=catalog.keep_rollup)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalog, "keep_rollup", kept)
        first, other = History(), History()
        for history in (first, first, other):
            await history.prepare(catalog, {"acme"}, NOW)
        await first.figures(catalog, "acme", Span(NOW - MONTH - 59, NOW, DAYS), NOW)

    assert kept.await_count == 1


# --- the largest captures -------------------------------------------------------------------------


async def test_a_listing_by_size_begins_with_the_largest(api: Api) -> None:
    for size in (10, 3_000, 200):
        await api.put(b"x" * size, f"call_{size}")
    answer = await api.get("/v1/captures", params={"sort": "size", "limit": "2"})
    found = msgspec.json.decode(await answer.read(), type=wire.Listing)

    assert [each.size for each in found.captures] == [3_000, 200]
    assert found.cursor is None


async def test_a_listing_by_size_takes_no_filter(api: Api) -> None:
    refused = await problem(await api.get("/v1/captures", params={"sort": "size", "tool": "grep"}))

    assert (refused.code, refused.detail) == (
        Code.INVALID_PARAMETER,
        "sort=size lists all captures on one page: only limit= goes with it",
    )


async def test_a_bound_key_learns_nothing_of_the_sizes_of_others(api: Api) -> None:
    key = await Keys(api).key(Scope.READ, session="mine")
    refused = await problem(await api.get("/v1/captures", params={"sort": "size"}, headers=key))

    assert refused.code == Code.FORBIDDEN
