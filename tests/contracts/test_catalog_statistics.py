"""Every catalog keeps statistics: sums by tenant and time, each batch once, bounded."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
import redis.asyncio
from overspill_service.catalog import statistics
from overspill_service.catalog.redis import key_names
from overspill_service.catalog.redis import statistics as redis_statistics
from overspill_service.catalog.sqlite import statistics as sqlite_statistics
from overspill_service.catalog.statistics import (
    DAYS,
    EXPERIMENTS,
    FLEET,
    MAX_SUM,
    MINUTES,
    OTHER,
    QUARTERS,
    RESOLUTIONS,
    ROOMS,
    Cell,
    merged,
    room_of,
    size_of,
    unpacked,
)
from overspill_service.catalog.urls import open_catalog

from tests.contracts.entries import TENANT

if TYPE_CHECKING:
    from overspill_service.catalog import Catalog
    from overspill_service.catalog.statistics import Resolution, Sums

NOON = 1_800_014_400.0
"""The beginning of a bucket of every length but a day's."""
MIB: Final = 2**20
GREP = Cell("tool_outputs", "grep", "captured")
ODD = Cell("tool_outputs", "a\0b\nc{}*✓", "inline")


async def add(catalog: Catalog, sums: Sums, batch: str, *, now: float = NOON, tenant: str = TENANT) -> bool:
    return await catalog.add_sums(tenant, sums, now=now, batch=batch, memory=60.0)


async def kept(catalog: Catalog, resolution: Resolution) -> dict[int, Sums]:
    """What is kept around NOON. Each bucket in the time is asked for, so it is not longer than it must be."""
    around = 2 * resolution.seconds + 1800
    found = await catalog.sums(TENANT, resolution, since=NOON - around, until=NOON + around)
    return {start: unpacked(sums) for start, sums in found.items()}


async def test_sums_add_up_in_buckets_of_every_length(catalog: Catalog) -> None:
    await add(catalog, {GREP: 2, ODD: 2**50}, "one")
    await add(catalog, {GREP: 3}, "two", now=NOON + 59.9)
    await add(catalog, {GREP: 5}, "three", now=NOON + 60)

    assert await kept(catalog, MINUTES) == {NOON: {GREP: 5, ODD: 2**50}, NOON + 60: {GREP: 5}}
    assert await kept(catalog, QUARTERS) == {NOON: {GREP: 10, ODD: 2**50}}
    assert await kept(catalog, DAYS) == {NOON // 86400 * 86400: {GREP: 10, ODD: 2**50}}


@pytest.mark.parametrize("tools", [0, 1, 7, 8, statistics.MAX_CELLS])
async def test_a_bucket_has_any_number_of_sums_up_to_the_most(catalog: Catalog, tools: int) -> None:
    """Sums travel packed, in forms that depend on their number."""
    sums = {Cell("tool_outputs", f"tool-{number}", "inline"): number for number in range(1, tools + 1)}
    if sums:
        await add(catalog, sums, "all of them")

    assert await kept(catalog, MINUTES) == ({NOON: sums} if sums else {})


async def test_a_sum_stays_at_the_highest_number_of_the_catalogs(catalog: Catalog) -> None:
    await add(catalog, {GREP: 2**63 - 2, ODD: 1}, "one")
    await add(catalog, {GREP: 2**63 - 1, ODD: 1}, "two")
    await add(catalog, {GREP: 2**70, ODD: 1}, "three")

    for resolution in RESOLUTIONS:
        assert merged((await kept(catalog, resolution)).values()) == {GREP: 2**63 - 1, ODD: 3}


async def test_the_last_batches_of_a_tenant_are_remembered_and_lapse(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (redis_statistics, sqlite_statistics):
        monkeypatch.setattr(module, "MAX_BATCHES", 3)
    await add(catalog, {GREP: 1}, "one", tenant="another")
    for number in range(5):
        await add(catalog, {GREP: 1}, f"batch-{number}", now=NOON + number)
    known = [not await add(catalog, {}, f"batch-{number}", now=NOON + 5) for number in (4, 3, 2, 0)]

    assert known == [True, True, True, False]
    assert not await add(catalog, {GREP: 1}, "one", tenant="another", now=NOON + 59)
    assert await add(catalog, {GREP: 1}, "one", tenant="another", now=NOON + 62)


async def test_a_batch_is_added_once_however_often_it_comes(catalog: Catalog) -> None:
    answers = await asyncio.gather(*(add(catalog, {GREP: 1}, "same") for _ in range(20)))
    assert sum(answers) == 1
    assert await add(catalog, {GREP: 1}, "same", tenant="another")

    assert merged((await kept(catalog, MINUTES)).values()) == {GREP: 1}


async def test_tenants_do_not_see_each_others_sums(catalog: Catalog) -> None:
    await add(catalog, {GREP: 1}, "one", tenant="another")

    assert await kept(catalog, MINUTES) == {}


async def test_only_buckets_that_begin_in_the_time_are_returned(catalog: Catalog) -> None:
    for number in range(4):
        await add(catalog, {GREP: 1}, f"{number}", now=NOON + 60 * number)

    found = await catalog.sums(TENANT, MINUTES, since=NOON + 1, until=NOON + 180)
    assert list(found) == [NOON + 60, NOON + 120]


async def test_the_sums_of_one_tool_are_returned_alone(catalog: Catalog) -> None:
    cells = [
        GREP,
        ODD,
        Cell("reads", "a", "b"),
        Cell("reads", "b", "c"),
        Cell("reads", "", "b"),
        Cell("reads"),
    ]
    await add(catalog, dict.fromkeys(cells, 1), "one")
    await add(catalog, {GREP: 1}, "two", now=NOON + 60)
    found = {
        tool: await catalog.sums(TENANT, MINUTES, since=NOON, until=NOON + 120, tool=tool)
        for tool in ("grep", ODD.tool, "b", "", "none")
    }

    assert found["grep"] == {NOON: {GREP.encode(): 1}, NOON + 60: {GREP.encode(): 1}}
    assert found[ODD.tool] == {NOON: {ODD.encode(): 1}}
    assert found["b"] == {NOON: {cells[3].encode(): 1}}
    assert found[""] == {NOON: {cell.encode(): 1 for cell in cells[4:]}}
    assert found["none"] == {}


async def test_a_roll_up_is_kept_replaced_and_forgotten(catalog: Catalog) -> None:
    for value in (b"first", b"\0\xff second"):
        await catalog.keep_rollup(TENANT, "month", value, now=NOON, keep=3600)
    await catalog.keep_rollup(TENANT, "week", b"another", now=NOON, keep=3600)
    await catalog.keep_rollup("other", "month", b"foreign", now=NOON, keep=3600)

    assert await catalog.rollup(TENANT, "month") == b"\0\xff second"
    assert await catalog.rollup(TENANT, "week") == b"another"
    assert await catalog.rollup(TENANT, "day") is None
    await catalog.forget_rollups(TENANT)
    assert await catalog.rollup(TENANT, "month") is None
    assert await catalog.rollup(TENANT, "week") is None
    await catalog.forget_tenant("other")
    assert await catalog.rollup("other", "month") is None


async def test_a_roll_up_does_not_stay_beyond_its_time(catalog: Catalog) -> None:
    await catalog.keep_rollup(TENANT, "month", b"old", now=NOON, keep=0.01)
    await asyncio.sleep(0.05)  # Redis goes by its own clock
    await catalog.keep_rollup("other", "month", b"new", now=NOON + 1, keep=3600)

    assert await catalog.rollup(TENANT, "month") is None


async def test_other_tasks_have_a_turn_between_full_buckets(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = [Cell("tool_outputs", f"tool {number}", "inline") for number in range(100)]
    for number in range(8):
        await add(catalog, dict.fromkeys(tools, 1), f"{number}", now=NOON + 60 * number)
    decoded, turns, loop, decode = 0, [0], threading.get_ident(), redis_statistics._decoded

    def noted(answer: bytes) -> dict[str, int]:
        nonlocal decoded
        sums = decode(answer)
        decoded += len(sums) * (threading.get_ident() == loop)
        return sums

    async def take_turns() -> None:
        nonlocal decoded
        while True:
            turns.append(decoded)
            decoded = 0
            await asyncio.sleep(0)

    monkeypatch.setattr(redis_statistics, "_decoded", noted)
    ticking = asyncio.create_task(take_turns())
    found = await catalog.sums(TENANT, MINUTES, since=NOON, until=NOON + 480)
    turns.append(decoded)
    ticking.cancel()

    assert merged(map(unpacked, found.values())) == dict.fromkeys(tools, 8)
    assert max(turns) <= len(tools)


async def test_beyond_the_bound_new_tools_are_one(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("redis", "sqlite"):
        monkeypatch.setattr(f"overspill_service.catalog.{module}.statistics.MAX_CELLS", 3)
    tools = [Cell("tool_outputs", f"tool {number}", "inline") for number in range(6)]
    await add(catalog, dict.fromkeys(tools, 1), "one")
    await add(catalog, dict.fromkeys(tools, 10), "two")

    rest = Cell("tool_outputs", OTHER, "inline")
    (sums,) = (await kept(catalog, MINUTES)).values()
    assert sums == dict.fromkeys(tools[:3], 11) | {rest: 33}


HOSTILE: Final = [Cell("tool_outputs", f"{number:08}".ljust(256, "x"), "inline") for number in range(40)]
"""Names of 256 bytes, of which a bucket has room for ten in any case and for all if others take nothing."""


def make_rooms_small(monkeypatch: pytest.MonkeyPatch) -> int:
    """Let 20 buckets of minutes have room for about ten hostile names each. Return the bytes of that."""
    monkeypatch.setitem(ROOMS, MINUTES, (MINUTES.lifetime // MINUTES.seconds + 2) * 4200)
    return ROOMS[MINUTES]


async def test_whatever_a_tenant_names_its_sums_stay_within_its_room(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    together, minutes = make_rooms_small(monkeypatch), MINUTES.buckets
    for minute in range(minutes):
        new = {cell._replace(tool=f"{minute:04}{cell.tool[4:]}"): 1 for cell in HOSTILE}
        assert await add(catalog, new, f"{minute}", now=NOON + 60 * minute)
        await add(catalog, {GREP: 1}, f"{minute}", now=NOON + 60 * minute, tenant="another")

    until = NOON + 60 * minutes
    found = await catalog.sums(TENANT, MINUTES, since=NOON, until=until)
    others = Cell("tool_outputs", OTHER, "inline").encode()
    taken = sum(size_of(name) for packed in found.values() for name in packed if name != others)
    assert together < taken <= 2 * together
    assert min(len(packed) for packed in found.values()) == 11  # its ten first names, and the rest together
    assert [sum(packed.values()) for packed in found.values()] == [len(HOSTILE)] * minutes
    other = await catalog.sums("another", MINUTES, since=NOON, until=until)
    assert [*map(unpacked, other.values())] == [{GREP: 1}] * minutes


async def test_what_expired_buckets_took_is_free_again(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_rooms_small(monkeypatch)
    for minute in range(MINUTES.buckets):
        new = {cell._replace(tool=f"{minute:04}{cell.tool[4:]}"): 1 for cell in HOSTILE}
        await add(catalog, new, f"{minute}", now=NOON + 60 * minute)
    later = NOON + 60 * MINUTES.buckets + MINUTES.lifetime
    await add(catalog, dict.fromkeys(HOSTILE, 1), "later", now=later)

    found = await catalog.sums(TENANT, MINUTES, since=later, until=later + 60)
    assert unpacked(found[int(later)]) == dict.fromkeys(HOSTILE, 1)


async def test_a_name_that_has_its_room_keeps_it(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ROOMS, MINUTES, size_of(GREP.encode()))
    await add(catalog, {GREP: 1}, "one")
    await add(catalog, {ODD: 2, GREP: 4}, "two")

    assert await kept(catalog, MINUTES) == {NOON: {GREP: 5, Cell("tool_outputs", OTHER, "inline"): 2}}


async def test_a_full_tenant_leaves_the_room_of_its_experiments_and_of_the_fleet(catalog: Catalog) -> None:
    tenants = TENANT, EXPERIMENTS + TENANT, FLEET
    rooms = [room_of(tenant, each).together for tenant in tenants for each in RESOLUTIONS]

    assert rooms == [6 * MIB, 20 * MIB, 14 * MIB, 0.75 * MIB, 2.5 * MIB, 1.75 * MIB, *[MAX_SUM] * 3]
    for number, tenant in enumerate(tenants):
        await add(catalog, {GREP: 1}, f"{number}", tenant=tenant)
    for tenant in tenants:
        assert await catalog.sums(tenant, MINUTES, since=NOON, until=NOON + 1) == {NOON: {GREP.encode(): 1}}


async def test_a_sum_takes_about_as_many_bytes_of_redis_as_are_charged(redis_url: str) -> None:
    client = redis.asyncio.Redis.from_url(redis_url)
    catalog = open_catalog(redis_url, data_dir=Path())
    named = [Cell("tool_outputs", f"{number:08}".ljust(256, "x"), "inline") for number in range(2000)]
    short = [Cell("reads", f"t{number}", "grep") for number in range(2000)]
    for number, cells in enumerate((named, short)):
        await add(catalog, dict.fromkeys(cells, 2**62), f"{number}", tenant=f"tenant-{number}")

        charged = sum(size_of(cell.encode()) for cell in cells)
        key = key_names.statistics(f"tenant-{number}", MINUTES.seconds, int(NOON))
        taken = await client.memory_usage(key, samples=0)
        assert taken is not None
        assert charged / 3 < taken <= charged  # Valkey 9 takes less than Redis
    await catalog.close()
    await client.aclose()


async def test_buckets_beyond_their_time_go(catalog: Catalog) -> None:
    await add(catalog, {GREP: 1}, "old")
    later = NOON + max(each.lifetime + 2 * each.seconds for each in (MINUTES, QUARTERS))
    await add(catalog, {GREP: 1}, "new", now=later)

    if "sqlite" in type(catalog).__module__:  # Redis goes by its own clock
        for resolution in (MINUTES, QUARTERS):
            assert NOON not in await kept(catalog, resolution)
    assert NOON // 86400 * 86400 in await kept(catalog, DAYS)


async def test_a_forgotten_tenant_has_no_sums(catalog: Catalog) -> None:
    await add(catalog, {GREP: 1}, "one")
    await catalog.forget_tenant(TENANT)

    assert [await kept(catalog, each) for each in RESOLUTIONS] == [{}, {}, {}]


@pytest.mark.parametrize("cell", [GREP, ODD, Cell("reads"), Cell("reads", "", "grep"), Cell("x", "\0\0", "")])
def test_cells_survive_their_encoding(cell: Cell) -> None:
    assert Cell.decode(cell.encode()) == cell
    assert statistics.MAX_CELLS > 0
