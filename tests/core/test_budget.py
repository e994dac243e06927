"""`Budget`: what has begun never waits, what waits has its turn, and all comes back."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest
from overspill_service.budget import Budget
from overspill_service.errors import DeadlineExceeded


async def held(stack: AsyncExitStack, budget: Budget, amount: int) -> None:
    await stack.enter_async_context(budget.shares(amount))


async def waiting(budget: Budget, amount: int) -> asyncio.Task[None]:
    """A read that waits in line."""

    async def read() -> None:
        async with budget.shares(amount):
            pass

    task = asyncio.create_task(read())
    await asyncio.sleep(0)
    assert not task.done()
    return task


async def test_a_read_has_what_it_needs_and_gives_it_back() -> None:
    budget = Budget(100)
    async with budget.shares(60, 20):
        assert budget.free == 20

    assert budget.free == 100


async def test_a_read_larger_than_all_has_all() -> None:
    budget = Budget(100)
    async with budget.shares(1000):
        assert budget.free == 0

    assert budget.free == 100


async def test_who_waits_is_served_in_order() -> None:
    budget = Budget(100)
    async with AsyncExitStack() as stack:
        await held(stack, budget, 90)
        large = await waiting(budget, 50)
        small = await waiting(budget, 10)
    await asyncio.gather(large, small)

    assert budget.free == 100


async def test_who_waits_too_long_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("overspill_service.budget.QUEUE_SECONDS", 0.01)
    budget = Budget(100)
    async with AsyncExitStack() as stack:
        await held(stack, budget, 90)
        with pytest.raises(DeadlineExceeded, match="no memory for one more read"):
            await held(stack, budget, 50)

        assert budget.free == 10


async def test_who_leaves_the_line_stands_in_nobodys_way() -> None:
    budget = Budget(100)
    async with AsyncExitStack() as stack:
        await held(stack, budget, 90)
        large = await waiting(budget, 50)
        small = await waiting(budget, 10)
        large.cancel()
        await small

        assert budget.free == 10
    assert large.cancelled()


async def test_what_is_granted_to_one_who_leaves_in_that_moment_comes_back() -> None:
    budget = Budget(100)
    async with AsyncExitStack() as stack:
        await held(stack, budget, 90)
        late = await waiting(budget, 50)
    late.cancel()
    await asyncio.wait([late])

    assert budget.free == 100


async def test_a_share_takes_more_only_while_half_is_free() -> None:
    budget = Budget(100)
    async with budget.shares(20) as [share]:
        assert share.try_use(20)
        assert share.try_use(30)
        assert not share.try_use(1)
        share.release(30)
        assert share.try_use(5)

        assert budget.free == 75


async def test_a_share_takes_nothing_more_while_others_wait() -> None:
    budget = Budget(100)
    async with AsyncExitStack() as stack:
        [share] = await stack.enter_async_context(budget.shares(10))
        task = await waiting(budget, 95)

        assert not share.try_use(11)
        assert share.try_use(10)
    await task


async def test_what_a_share_took_beyond_its_least_comes_back_with_it() -> None:
    budget = Budget(100)
    async with budget.shares(10) as [share]:
        assert share.try_use(40)

    assert budget.free == 100
