"""A tenant's long listings and reports take a part of the event loop's time, and no more."""

from __future__ import annotations

import asyncio

import pytest
from overspill_service.errors import TooManyRequests
from overspill_service.resources import loop_time
from overspill_service.resources.loop_time import LoopTime

from tests.waiting import PATIENCE


class Clock:
    """The loop's own time, which no test waits for: each pause moves it."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def take(share: LoopTime, tenant: str, seconds: float) -> None:
    async with share.account(tenant) as account:
        account.charge(seconds)


async def test_a_tenant_has_a_fifth_of_the_time(clock: Clock) -> None:
    share = LoopTime(clock, clock.sleep)
    for _ in range(100):
        await take(share, "hostile", 0.010)

    assert clock.now == pytest.approx(100 * 0.010 * 5, rel=0.05)


async def test_small_requests_hardly_wait(clock: Clock) -> None:
    share = LoopTime(clock, clock.sleep)
    for _ in range(100):
        await take(share, "fleet", 0.0001)

    assert clock.now < 0.1


async def test_tenants_do_not_wait_for_each_other(clock: Clock) -> None:
    share = LoopTime(clock, clock.sleep)
    await take(share, "hostile", 60.0)
    await take(share, "quiet", 0.001)

    assert clock.now == 0


async def test_few_begin_at_once(clock: Clock) -> None:
    share = LoopTime(clock, clock.sleep)
    async with share.account("a"), share.account("a"), share.account("a"):
        assert clock.now == 0
        async with share.account("a"), share.account("a"):
            assert clock.now > 0


async def test_who_waits_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_time, "QUEUE_SECONDS", 0.01)
    share = LoopTime()
    await take(share, "hostile", 60.0)

    with pytest.raises(TooManyRequests, match="long listings and reports"):
        await take(share, "hostile", 0.001)
    await asyncio.wait_for(take(share, "quiet", 0.001), PATIENCE)
