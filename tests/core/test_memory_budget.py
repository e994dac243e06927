"""`MemoryBudget`: what has begun never waits, what waits is served, and all comes back."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest
from overspill_service.errors import Overloaded
from overspill_service.resources.memory_budget import SMALL_UPLOAD_BYTES, WAITING_BYTES, MemoryBudget

if TYPE_CHECKING:
    from collections.abc import Iterator

    from overspill_service.resources.memory_budget import MemoryQueue

SIZE = 160
"""Of which small uploads are sure of 10, reads and large uploads of 40 each."""
LARGEST_READ = SIZE - 50


ANYONE: Iterator[str] = map(str, itertools.count())
"""Tenants that ask for nothing else."""


async def held(stack: AsyncExitStack, queue: MemoryQueue, amount: int, tenant: str = "") -> None:
    await stack.enter_async_context(queue.shares(tenant or next(ANYONE), amount))


async def waiting(queue: MemoryQueue, amount: int, tenant: str = "") -> asyncio.Task[None]:
    """A request that waits in a queue."""

    async def ask() -> None:
        async with queue.shares(tenant or next(ANYONE), amount):
            pass

    task = asyncio.create_task(ask())
    await asyncio.sleep(0)
    assert not task.done()
    return task


async def test_a_read_has_what_it_needs_and_gives_it_back() -> None:
    budget = MemoryBudget(SIZE)
    async with budget.reads.shares(next(ANYONE), 60, 20):
        assert budget.free == SIZE - 80

    assert budget.free == SIZE


async def test_a_request_larger_than_all_has_all_but_what_others_are_sure_of() -> None:
    budget = MemoryBudget(SIZE)
    async with budget.reads.shares(next(ANYONE), 1000):
        assert budget.free == SIZE - LARGEST_READ

    assert budget.free == SIZE


@pytest.mark.parametrize("name", ["small", "reads", "large"])
async def test_each_line_is_sure_of_a_part_whatever_the_others_hold(name: str) -> None:
    budget = MemoryBudget(SIZE)
    sure: MemoryQueue = getattr(budget, name)
    async with AsyncExitStack() as stack:
        for queue in (budget.small, budget.reads, budget.large):
            if queue is not sure:
                while budget.available_to(queue):
                    await held(stack, queue, 1)
        await held(stack, sure, sure.guaranteed)

        assert budget.available_to(sure) == 0
    assert budget.free == SIZE


async def test_who_waits_is_served_in_order() -> None:
    budget = MemoryBudget(SIZE)
    async with AsyncExitStack() as stack:
        await held(stack, budget.reads, LARGEST_READ - 10)
        first = await waiting(budget.reads, 50)
        second = await waiting(budget.reads, 10)
    await asyncio.gather(first, second)

    assert budget.free == SIZE


async def test_a_small_upload_passes_by_large_ones_that_wait() -> None:
    budget = MemoryBudget(SIZE)
    async with AsyncExitStack() as stack:
        await held(stack, budget.large, LARGEST_READ)
        large = await waiting(budget.large, 50)
        async with budget.queue_for(10).shares(next(ANYONE), 10):
            assert not large.done()
    await large


async def test_who_waits_too_long_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("overspill_service.resources.memory_budget.QUEUE_SECONDS", 0.01)
    budget = MemoryBudget(SIZE)
    async with AsyncExitStack() as stack:
        await held(stack, budget.reads, LARGEST_READ - 10)
        with pytest.raises(Overloaded, match="no memory for one more read"):
            await held(stack, budget.reads, 50)

        assert budget.free == SIZE - LARGEST_READ + 10


async def test_where_too_many_wait_one_more_is_sent_away_at_once() -> None:
    budget = MemoryBudget(16 * WAITING_BYTES)
    async with AsyncExitStack() as stack:
        await held(stack, budget.large, budget.large.largest_grant)
        waiters = [
            await waiting(budget.queue_for(SMALL_UPLOAD_BYTES + 1), SMALL_UPLOAD_BYTES + 1) for _ in range(2)
        ]
        with pytest.raises(Overloaded, match="2 uploads wait") as refused:
            await held(stack, budget.large, SMALL_UPLOAD_BYTES + 1)

        assert refused.value.retry_after
    await asyncio.gather(*waiters)


async def test_who_leaves_the_line_stands_in_nobodys_way() -> None:
    budget = MemoryBudget(SIZE)
    async with AsyncExitStack() as stack:
        await held(stack, budget.reads, LARGEST_READ - 10)
        first = await waiting(budget.reads, 50)
        second = await waiting(budget.reads, 10)
        first.cancel()
        await second

        assert budget.free == SIZE - LARGEST_READ + 10
    assert first.cancelled()


async def test_what_is_granted_to_one_who_leaves_in_that_moment_comes_back() -> None:
    budget = MemoryBudget(SIZE)
    async with AsyncExitStack() as stack:
        await held(stack, budget.reads, LARGEST_READ - 10)
        late = await waiting(budget.reads, 50)
    late.cancel()
    await asyncio.wait([late])

    assert budget.free == SIZE


async def test_a_share_takes_more_only_while_half_is_free() -> None:
    budget = MemoryBudget(SIZE)
    async with (
        budget.reads.shares(next(ANYONE), 20) as [share],
        budget.reads.shares(next(ANYONE), 20) as [other],
    ):
        assert share.try_use(20)
        assert other.try_use(40)
        assert share.try_use(20)
        assert not share.try_use(1)
        other.release(20)
        assert share.try_use(5)

        assert budget.free == SIZE - 65


@pytest.mark.parametrize("queue", ["reads", "large"])
async def test_a_share_takes_nothing_more_while_others_wait(queue: str) -> None:
    budget = MemoryBudget(SIZE)
    async with AsyncExitStack() as stack:
        [share] = await stack.enter_async_context(budget.reads.shares(next(ANYONE), 60))
        task = await waiting(getattr(budget, queue), LARGEST_READ)

        assert not share.try_use(61)
        assert share.try_use(60)
    await task


async def test_what_a_share_took_beyond_its_least_comes_back_with_it() -> None:
    budget = MemoryBudget(SIZE)
    async with budget.reads.shares(next(ANYONE), 10) as [share]:
        assert share.try_use(40)

    assert budget.free == SIZE


# --- tenants ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["small", "reads", "large"])
async def test_whatever_one_tenant_takes_another_can_take_as_much_of_each_line(name: str) -> None:
    budget = MemoryBudget(SIZE)
    queues = {each: getattr(budget, each) for each in ("small", "reads", "large")}
    async with AsyncExitStack() as stack:
        for queue in (queues.pop(name), *queues.values()):
            while queue.try_begin("greedy", 1):
                stack.push_async_callback(given_back, queue, "greedy")
        sure: MemoryQueue = getattr(budget, name)
        taken = sure.held_by["greedy"]
        for _ in range(taken):
            assert sure.try_begin("modest", 1)
            stack.push_async_callback(given_back, sure, "modest")

        assert taken >= SIZE // 4
        assert not sure.try_begin("greedy", 1)
    assert budget.free == SIZE
    assert not sure.held_by


async def given_back(queue: MemoryQueue, tenant: str) -> None:
    queue.give_back(tenant, 1)


async def test_a_tenant_s_reads_are_sure_of_a_part_whatever_its_uploads_hold() -> None:
    budget = MemoryBudget(SIZE)
    while budget.large.try_begin("one", 1):
        pass

    assert budget.reads.try_begin("one", budget.reads.guaranteed // 2)


async def test_who_waits_for_what_its_own_tenant_holds_is_in_nobody_s_way() -> None:
    budget = MemoryBudget(SIZE)
    async with AsyncExitStack() as stack:
        await held(stack, budget.reads, 50, "greedy")
        own = await waiting(budget.reads, 50, "greedy")
        await held(stack, budget.reads, 50, "modest")

        assert not own.done()
    await own


async def test_of_those_who_wait_the_tenant_that_holds_the_least_comes_first() -> None:
    budget = MemoryBudget(SIZE)
    async with AsyncExitStack() as stack:
        await held(stack, budget.reads, LARGEST_READ - 15)
        await held(stack, budget.reads, 5, "greedy")
        async with budget.reads.shares("other", 10):
            waiters = [await waiting(budget.reads, 10, tenant) for tenant in ("greedy", "modest")]

        assert budget.reads.held_by["modest"] == 10
        assert budget.reads.held_by["greedy"] == 5
    await asyncio.gather(*waiters)


async def test_a_tenant_that_holds_nothing_may_have_a_request_beyond_its_share() -> None:
    budget = MemoryBudget(SIZE)
    async with budget.reads.shares("one", LARGEST_READ):
        assert budget.available_to(budget.reads) == 0


async def test_one_tenant_s_uploads_leave_half_of_the_places_to_wait_to_others() -> None:
    budget = MemoryBudget(32 * WAITING_BYTES)
    async with AsyncExitStack() as stack:
        await held(stack, budget.large, budget.large.largest_grant)
        own = [await waiting(budget.large, 10, "greedy") for _ in range(2)]
        with pytest.raises(Overloaded):
            await held(stack, budget.large, 10, "greedy")
        other = await waiting(budget.large, 10, "modest")
    await asyncio.gather(*own, other)


async def test_more_than_the_least_counts_too() -> None:
    budget = MemoryBudget(SIZE)
    async with budget.reads.shares("one", 1) as [share], budget.large.shares("one", 50):
        assert not share.try_use(30)
        assert share.try_use(20)
