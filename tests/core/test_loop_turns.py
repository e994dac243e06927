"""Who sends many requests at once lets those of others come in between."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from overspill_service.errors import Overloaded
from overspill_service.resources import loop_turns
from overspill_service.resources.loop_turns import (
    FEW,
    LATE_NEW_SECONDS,
    LATE_SECONDS,
    MIXED_SECONDS,
    NEW_SECONDS,
    RUNNING_NEW_SECONDS,
    LoopTurns,
    Turn,
)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def turns(clock: Clock) -> LoopTurns:
    return LoopTurns(clock)


def mixed(turns: LoopTurns) -> None:
    """Let another tenant than the tests' own have sent a request."""
    for tenant in ("a", "b"):
        if turn := turns.try_begin(tenant):
            turn.end()


def begun(turns: LoopTurns, tenant: str, count: int) -> list[Turn]:
    """Those of so many requests that begin at once."""
    return [turn for _ in range(count) if (turn := turns.try_begin(tenant)) is not None]


def waiting(turns: LoopTurns, tenant: str, count: int) -> list[asyncio.Task[Turn]]:
    return [asyncio.create_task(turns.wait(tenant)) for _ in range(count)]


async def until(task: asyncio.Task[Turn]) -> Turn:
    return await asyncio.wait_for(task, 10)


async def test_the_first_tenant_of_a_process_is_alone(turns: LoopTurns) -> None:
    assert len(begun(turns, "a", FEW + 10)) == FEW + 10


async def test_the_requests_of_a_tenant_that_is_alone_all_begin_at_once(
    turns: LoopTurns, clock: Clock
) -> None:
    mixed(turns)
    assert turns.try_begin("loud") is not None
    clock.now += MIXED_SECONDS

    assert len(begun(turns, "loud", 50)) == 50


async def test_beside_another_tenant_few_begin_and_the_other_one_never_waits(turns: LoopTurns) -> None:
    mixed(turns)

    assert len(begun(turns, "loud", 50)) == FEW
    quiet = turns.try_begin("quiet")
    assert quiet is not None
    assert begun(turns, "loud", 50) == []


async def test_a_request_that_ends_at_once_keeps_its_place_for_a_moment(turns: LoopTurns) -> None:
    mixed(turns)
    for turn in begun(turns, "loud", FEW):
        turn.end()

    assert begun(turns, "loud", 1) == []
    await asyncio.sleep(2 * NEW_SECONDS)
    assert len(begun(turns, "loud", 5)) == FEW


async def test_a_flood_of_small_requests_begins_so_many_a_second_and_no_more() -> None:
    turns, loop, count = LoopTurns(), asyncio.get_running_loop(), 0
    start = loop.time()
    while (seconds := loop.time() - start) < 20 * NEW_SECONDS:
        mixed(turns)
        for turn in begun(turns, "loud", 5):
            turn.end()
            count += 1
        await asyncio.sleep(0)

    assert FEW < count <= FEW * (seconds / NEW_SECONDS + 1)


async def test_those_that_wait_begin_in_their_order_as_others_end(turns: LoopTurns) -> None:
    mixed(turns)
    first, second = begun(turns, "loud", 3)
    tasks = waiting(turns, "loud", 4)
    await asyncio.sleep(0)
    first.end()
    third = await until(tasks[0])

    assert begun(turns, "loud", 1) == []  # it would pass those that wait
    assert not tasks[1].done()
    for turn in (second, third):
        turn.end()
    await until(tasks[1])
    await until(tasks[2])
    assert not tasks[3].done()
    tasks[3].cancel()


async def test_a_request_that_takes_long_holds_up_no_other_one(turns: LoopTurns, clock: Clock) -> None:
    mixed(turns)
    long = begun(turns, "loud", 3)
    tasks = waiting(turns, "loud", 2)
    clock.now += NEW_SECONDS
    await asyncio.sleep(0.01)
    assert not any(task.done() for task in tasks)
    clock.now += RUNNING_NEW_SECONDS - NEW_SECONDS

    for task in tasks:
        await until(task)
    for turn in long:
        turn.end()
    assert begun(turns, "loud", 1) == []  # the two that came instead are new


async def test_while_the_loop_comes_late_fewer_begin(turns: LoopTurns, clock: Clock) -> None:
    mixed(turns)
    begun(turns, "loud", 2)
    turns._lateness = LATE_SECONDS
    clock.now += RUNNING_NEW_SECONDS
    assert begun(turns, "loud", 1) == []
    clock.now += LATE_NEW_SECONDS - RUNNING_NEW_SECONDS

    assert len(begun(turns, "loud", 5)) == FEW


async def test_ticks_tell_how_late_the_loop_comes(turns: LoopTurns, clock: Clock) -> None:
    mixed(turns)
    begun(turns, "loud", 2)
    [task] = waiting(turns, "loud", 1)
    await asyncio.sleep(0)
    for _ in range(50):
        assert turns._timer is not None
        turns._timer.cancel()
        clock.now = turns._due + 2 * LATE_SECONDS
        turns._mixed_until = clock.now + MIXED_SECONDS
        for turn in begun(turns, "loud", 1):
            turn.end()
        turns._new["loud"] = {Turn(turns, "loud", clock.now): None for _ in range(FEW)}
        turns._tick()

    assert turns._lateness > LATE_SECONDS
    task.cancel()


async def test_all_that_wait_begin_once_their_tenant_is_alone(turns: LoopTurns, clock: Clock) -> None:
    mixed(turns)
    assert len(begun(turns, "loud", 2)) == 2
    tasks = waiting(turns, "loud", 50)
    clock.now += MIXED_SECONDS

    assert len(await asyncio.wait_for(asyncio.gather(*tasks), 10)) == 50


async def test_a_request_that_is_given_up_takes_no_turn(turns: LoopTurns) -> None:
    mixed(turns)
    first, _ = begun(turns, "loud", 2)
    given_up, last = waiting(turns, "loud", 20), waiting(turns, "loud", 1)[0]
    await asyncio.sleep(0)
    for task in given_up:
        task.cancel()
    first.end()

    await until(last)


async def test_a_turn_that_comes_as_its_request_is_given_up_goes_to_the_next(turns: LoopTurns) -> None:
    mixed(turns)
    first, _ = begun(turns, "loud", 2)
    given_up, last = waiting(turns, "loud", 2)
    await asyncio.sleep(0)
    first.end()
    given_up.cancel()

    await until(last)


async def test_who_waits_too_long_is_refused(turns: LoopTurns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_turns, "QUEUE_SECONDS", 0.01)
    mixed(turns)
    begun(turns, "loud", 2)

    with pytest.raises(Overloaded, match="this process is busy"):
        await turns.wait("loud")


async def test_nothing_is_kept_of_requests_that_have_ended(turns: LoopTurns, clock: Clock) -> None:
    for number in range(1000):
        turn = turns.try_begin(f"tenant-{number}")
        assert turn is not None
        turn.end()
        clock.now += 1
    await asyncio.sleep(20 * NEW_SECONDS)

    assert (turns._new, turns._waiting, turns._timer) == ({}, {}, None)


async def test_a_flood_and_a_quiet_tenant_on_a_real_loop() -> None:
    """At each step of the quiet tenant's request, few of the flood's are under way."""
    turns, under_way, seen = LoopTurns(), Counter[str](), list[int]()

    async def request(tenant: str, steps: int) -> None:
        turn = turns.try_begin(tenant) or await turns.wait(tenant)
        under_way[tenant] += 1
        for _ in range(steps):
            if tenant == "quiet":
                seen.append(under_way["loud"])
            await asyncio.sleep(0)
        under_way[tenant] -= 1
        turn.end()

    async def flood() -> None:
        while True:
            await request("loud", 5)

    floods = [asyncio.create_task(flood()) for _ in range(50)]
    for _ in range(100):
        await request("quiet", 5)
    for each in floods:
        each.cancel()
    await asyncio.gather(*floods, return_exceptions=True)

    assert sorted(seen)[len(seen) // 2] <= FEW
