"""Bounds on looking for what the catalog does not know: rate, number at once, memory."""

from __future__ import annotations

import asyncio

import pytest
from overspill_service.archive.lookup_limits import BURST, CONCURRENCY, RATE, LookupLimits
from overspill_service.errors import TooManyRequests

from tests.clock import Clock
from tests.waiting import PATIENCE


class Store:
    """What is looked into: counts the looks, and how many there were at once."""

    def __init__(self, found: str | None = None) -> None:
        self.found, self.looks, self.under_way, self.most = found, 0, 0, 0

    async def look(self) -> str | None:
        self.looks += 1
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        for _ in range(3):
            await asyncio.sleep(0)
        self.under_way -= 1
        return self.found


async def refused(bounds: LookupLimits, store: Store, count: int, tenant: str = "acme") -> int:
    """How many of so many looks for different ids are refused."""
    base = store.looks
    answers = await asyncio.gather(
        *(bounds.find(tenant, f"{base}-{number}", store.look) for number in range(count)),
        return_exceptions=True,
    )
    return sum(isinstance(answer, TooManyRequests) for answer in answers)


async def test_requests_that_wait_for_the_same_look_share_what_it_finds() -> None:
    bounds, store = LookupLimits(), Store()
    answers = await asyncio.gather(*(bounds.find("acme", "x", store.look) for _ in range(50)))

    assert answers == [None] * 50
    assert store.looks == 2  # the one under way when the others came, and one for all of them


async def test_what_is_stored_after_a_fruitless_look_is_found_at_once() -> None:
    bounds, store = LookupLimits(), Store()
    assert await bounds.find("acme", "x", store.look) is None
    store.found = "entry"

    assert await bounds.find("acme", "x", store.look) == "entry"


async def test_what_is_stored_during_a_look_is_found_by_who_asks_after_that() -> None:
    bounds, store = LookupLimits(), Store()
    has_listed, may_answer = asyncio.Event(), asyncio.Event()

    async def listed_too_early() -> str | None:
        has_listed.set()
        await may_answer.wait()
        return None

    early = asyncio.create_task(bounds.find("acme", "x", listed_too_early))
    await has_listed.wait()
    store.found = "entry"
    late = asyncio.create_task(bounds.find("acme", "x", store.look))
    await asyncio.sleep(0)
    may_answer.set()

    assert (await early, await late) == (None, "entry")


async def test_a_tenant_that_finds_nothing_is_limited_in_rate_and_others_are_not() -> None:
    clock, store = Clock(), Store()
    bounds = LookupLimits(clock)

    assert await refused(bounds, store, BURST + 30) == 30
    assert await refused(bounds, store, BURST, "other") == 0
    clock.now += 2.0
    assert await refused(bounds, store, BURST) == BURST - 2 * RATE
    clock.now = 1e6
    assert await refused(bounds, store, BURST + 1) == 1


async def test_what_is_found_costs_nothing_of_the_rate() -> None:
    bounds, store = LookupLimits(Clock()), Store("entry")
    for _ in range(3 * BURST):
        assert await bounds.find("acme", "x", store.look) == "entry"

    assert await refused(bounds, Store(), BURST + 1) == 1


async def test_few_look_at_once() -> None:
    bounds, store, both = LookupLimits(Clock()), Store(), Store()
    await refused(bounds, store, BURST // 2, "one")
    await asyncio.gather(*(refused(bounds, both, BURST // 2, tenant) for tenant in ("one", "other")))

    assert store.most == CONCURRENCY // 2
    assert both.most == CONCURRENCY


async def test_a_look_of_another_tenant_passes_by_all_those_that_wait() -> None:
    bounds, store, go_on = LookupLimits(), Store(), asyncio.Event()

    async def stand_still() -> None:
        await go_on.wait()

    greedy = [
        asyncio.create_task(bounds.find("greedy", f"{number}", stand_still, is_limited=False))
        for number in range(10 * CONCURRENCY)
    ]
    await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE):
        assert await refused(bounds, store, CONCURRENCY, "modest") == 0

    assert store.looks == CONCURRENCY
    go_on.set()
    await asyncio.gather(*greedy)


async def test_an_upload_is_not_limited_in_rate() -> None:
    bounds, store = LookupLimits(Clock()), Store()
    await refused(bounds, store, BURST)

    assert await bounds.find("acme", "x", store.look, is_limited=False) is None
    with pytest.raises(TooManyRequests):
        await bounds.find("acme", "y", store.look)


async def test_nothing_is_remembered_of_looks_that_are_over() -> None:
    bounds, store = LookupLimits(), Store()
    for number in range(300):
        await bounds.find("acme", str(number), store.look, is_limited=False)

    assert len(bounds._pending) == 0


async def test_a_look_that_is_broken_off_leaves_the_next_one_free() -> None:
    bounds, store = LookupLimits(Clock()), Store()

    async def hang() -> None:
        await asyncio.Event().wait()

    hanging = asyncio.create_task(bounds.find("acme", "x", hang))
    waiting = asyncio.create_task(bounds.find("acme", "x", store.look))
    await asyncio.sleep(0)
    hanging.cancel()

    async with asyncio.timeout(PATIENCE):
        assert await waiting is None
    assert store.looks == 1
