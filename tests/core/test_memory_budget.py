"""`MemoryBudget`: what has begun never waits, what waits has its turn, and all comes back."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest
from overspill_service.errors import Overloaded
from overspill_service.resources.memory_budget import SMALL_UPLOAD_BYTES, WAITING_BYTES, MemoryBudget

if TYPE_CHECKING:
    from overspill_service.resources.memory_budget import MemoryQueue

SIZE = 160
"""Of which small uploads are sure of 10, reads and large uploads of 40 each."""
LARGEST_READ = SIZE - 50


async def held(stack: AsyncExitStack, queue: MemoryQueue, amount: int) -> None:
    await stack.enter_async_context(queue.shares(amount))


async def waiting(queue: MemoryQueue, amount: int) -> asyncio.Task[None]:
    """A request that waits in a queue."""

    async def ask() -> None:
        async with queue.shares(amount):
            pass

    task = asyncio.create_task(ask())
    await asyncio.sleep(0)
    assert not task.done()
    return task


async def test_a_read_has_what_it_needs_and_gives_it_back() -> None:
    budget = MemoryBudget(SIZE)
    async with budget.reads.shares(60, 20):
        assert budget.free == SIZE - 80

    assert budget.free == SIZE


async def test_a_request_larger_than_all_has_all_but_what_others_are_sure_of() -> None:
    budget = MemoryBudget(SIZE)
    async with budget.reads.shares(1000):
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
        async with budget.queue_for(10).shares(10):
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
    async with budget.reads.shares(20) as [share]:
        assert share.try_use(20)
        assert share.try_use(60)
        assert not share.try_use(1)
        share.release(60)
        assert share.try_use(5)

        assert budget.free == SIZE - 25


@pytest.mark.parametrize("queue", ["reads", "large"])
async def test_a_share_takes_nothing_more_while_others_wait(queue: str) -> None:
    budget = MemoryBudget(SIZE)
    async with AsyncExitStack() as stack:
        [share] = await stack.enter_async_context(budget.reads.shares(60))
        task = await waiting(getattr(budget, queue), LARGEST_READ)

        assert not share.try_use(61)
        assert share.try_use(60)
    await task


async def test_what_a_share_took_beyond_its_least_comes_back_with_it() -> None:
    budget = MemoryBudget(SIZE)
    async with budget.reads.shares(10) as [share]:
        assert share.try_use(40)

    assert budget.free == SIZE
