"""The many requests of one tenant let those of others come in between."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from overspill_service.errors import Overloaded
from overspill_service.resources import admission as admission_module
from overspill_service.resources.admission import (
    BUSY,
    FEW,
    LATE_SECONDS,
    MIXED_SECONDS,
    NEW_SECONDS,
    RUNNING_NEW_SECONDS,
    STRAINED_TIMES,
    TICK_SECONDS,
    Admission,
    Admitted,
    Strain,
)

from tests.clock import Clock
from tests.waiting import PATIENCE


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def admission(clock: Clock) -> Admission:
    return Admission(clock)


def mixed(admission: Admission) -> None:
    """Let another tenant than the tests' own have sent a request."""
    for tenant in ("a", "b"):
        if admitted := admission.try_admit(tenant):
            admitted.end()


def begun(admission: Admission, tenant: str, count: int) -> list[Admitted]:
    """Those of so many requests that begin at once."""
    return [admitted for _ in range(count) if (admitted := admission.try_admit(tenant)) is not None]


def waiting(admission: Admission, tenant: str, count: int) -> list[asyncio.Task[Admitted]]:
    return [asyncio.create_task(admission.wait(tenant)) for _ in range(count)]


async def until(task: asyncio.Task[Admitted]) -> Admitted:
    return await asyncio.wait_for(task, PATIENCE)


async def test_the_first_tenant_of_a_process_is_alone(admission: Admission) -> None:
    assert len(begun(admission, "a", FEW + 10)) == FEW + 10


async def test_the_requests_of_a_tenant_that_is_alone_all_begin_at_once(
    admission: Admission, clock: Clock
) -> None:
    mixed(admission)
    assert admission.try_admit("loud") is not None
    clock.now += MIXED_SECONDS

    assert len(begun(admission, "loud", 50)) == 50


async def test_beside_another_tenant_few_begin_and_the_other_one_never_waits(admission: Admission) -> None:
    mixed(admission)

    assert len(begun(admission, "loud", 50)) == FEW
    quiet = admission.try_admit("quiet")
    assert quiet is not None
    assert begun(admission, "loud", 50) == []


async def test_a_request_that_ends_at_once_keeps_its_place_for_a_moment(admission: Admission) -> None:
    mixed(admission)
    for admitted in begun(admission, "loud", FEW):
        admitted.end()

    assert begun(admission, "loud", 1) == []
    await asyncio.sleep(2 * NEW_SECONDS)
    assert len(begun(admission, "loud", 5)) == FEW


async def test_a_flood_of_small_requests_begins_so_many_a_second_and_no_more() -> None:
    admission, loop, count = Admission(), asyncio.get_running_loop(), 0
    start = loop.time()
    while (seconds := loop.time() - start) < 20 * NEW_SECONDS:
        mixed(admission)
        for admitted in begun(admission, "loud", 5):
            admitted.end()
            count += 1
        await asyncio.sleep(0)

    assert FEW < count <= FEW * (seconds / NEW_SECONDS + 1)


async def test_those_that_wait_begin_in_their_order_as_others_end(admission: Admission) -> None:
    mixed(admission)
    first, second = begun(admission, "loud", 3)
    tasks = waiting(admission, "loud", 4)
    await asyncio.sleep(0)
    first.end()
    third = await until(tasks[0])

    assert begun(admission, "loud", 1) == []  # it would pass those that wait
    assert not tasks[1].done()
    for admitted in (second, third):
        admitted.end()
    await until(tasks[1])
    await until(tasks[2])
    assert not tasks[3].done()
    tasks[3].cancel()


async def test_a_request_that_takes_long_holds_up_no_other_one(admission: Admission, clock: Clock) -> None:
    mixed(admission)
    long = begun(admission, "loud", 3)
    tasks = waiting(admission, "loud", 2)
    clock.now += NEW_SECONDS
    await asyncio.sleep(0.01)
    assert not any(task.done() for task in tasks)
    clock.now += RUNNING_NEW_SECONDS - NEW_SECONDS

    for task in tasks:
        await until(task)
    for admitted in long:
        admitted.end()
    assert begun(admission, "loud", 1) == []  # the two that came instead are new


async def test_while_the_loop_comes_late_fewer_begin(admission: Admission, clock: Clock) -> None:
    mixed(admission)
    begun(admission, "loud", 2)
    admission._strain.lateness = LATE_SECONDS
    clock.now += RUNNING_NEW_SECONDS
    assert begun(admission, "loud", 1) == []
    clock.now += STRAINED_TIMES * RUNNING_NEW_SECONDS

    assert len(begun(admission, "loud", 5)) == FEW


async def test_while_the_loop_is_busy_requests_that_end_at_once_keep_their_places_for_longer(
    admission: Admission, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = list[float]()
    monkeypatch.setattr(
        asyncio.get_running_loop(), "call_later", lambda seconds, *_: kept.append(round(seconds, 6))
    )
    mixed(admission)
    kept.clear()
    [first, second] = begun(admission, "loud", FEW)
    first.end()
    admission._strain.busy = BUSY
    second.end()

    assert kept == [NEW_SECONDS, STRAINED_TIMES * NEW_SECONDS]


def test_ticks_tell_how_busy_the_loop_is() -> None:
    spent = 0.0
    strain = Strain(lambda: spent)
    for tick in range(100):
        strain.begin_tick(tick * TICK_SECONDS)
        spent += 0.7 * TICK_SECONDS
        strain.end_tick((tick + 1) * TICK_SECONDS)

    assert strain.busy == pytest.approx(0.7, rel=0.01)
    assert strain.times == STRAINED_TIMES


async def test_who_asks_in_turn_over_one_connection_never_waits_and_over_others_does(
    admission: Admission,
) -> None:
    mixed(admission)
    for _ in range(5 * FEW):
        admitted = admission.try_admit("quiet", "one connection")
        assert admitted is not None
        admitted.end()

    assert admission.try_admit("quiet", "another connection") is None
    running = admission.try_admit("quiet", "one connection")
    assert running is not None
    assert admission.try_admit("quiet", "one connection") is None


async def test_ticks_tell_how_late_the_loop_comes(admission: Admission, clock: Clock) -> None:
    mixed(admission)
    begun(admission, "loud", 2)
    [task] = waiting(admission, "loud", 1)
    await asyncio.sleep(0)
    for _ in range(50):
        assert admission._timer is not None
        admission._timer.cancel()
        clock.now = admission._strain._began + TICK_SECONDS + 2 * LATE_SECONDS
        admission._mixed_until = clock.now + MIXED_SECONDS
        for admitted in begun(admission, "loud", 1):
            admitted.end()
        admission._new["loud"] = {Admitted(admission, "loud", clock.now): None for _ in range(FEW)}
        admission._tick()

    assert admission._strain.lateness > LATE_SECONDS
    task.cancel()


async def test_all_that_wait_begin_once_their_tenant_is_alone(admission: Admission, clock: Clock) -> None:
    mixed(admission)
    assert len(begun(admission, "loud", 2)) == 2
    tasks = waiting(admission, "loud", 50)
    clock.now += MIXED_SECONDS

    assert len(await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)) == 50


async def test_those_that_wait_do_not_begin_at_once_while_another_tenant_goes_on(
    admission: Admission, clock: Clock
) -> None:
    mixed(admission)
    begun(admission, "loud", FEW)
    tasks = waiting(admission, "loud", 20 * FEW)
    await asyncio.sleep(0)
    for _ in range(4):
        clock.now += MIXED_SECONDS / 2
        quiet = admission.try_admit("quiet")
        assert quiet is not None
        quiet.end()
        admission._tick()
        await asyncio.sleep(0)

    assert sum(task.done() for task in tasks) <= 4 * FEW
    for task in tasks:
        task.cancel()


async def test_a_request_that_is_given_up_is_never_begun(admission: Admission) -> None:
    mixed(admission)
    first, _ = begun(admission, "loud", 2)
    given_up, last = waiting(admission, "loud", 20), waiting(admission, "loud", 1)[0]
    await asyncio.sleep(0)
    for task in given_up:
        task.cancel()
    first.end()

    await until(last)


async def test_a_place_that_comes_as_its_request_is_given_up_goes_to_the_next(admission: Admission) -> None:
    mixed(admission)
    first, _ = begun(admission, "loud", 2)
    given_up, last = waiting(admission, "loud", 2)
    await asyncio.sleep(0)
    first.end()
    given_up.cancel()

    await until(last)


async def test_who_waits_too_long_is_refused(admission: Admission, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission_module, "QUEUE_SECONDS", 0.01)
    mixed(admission)
    begun(admission, "loud", 2)

    with pytest.raises(Overloaded, match="this process is busy"):
        await admission.wait("loud")


async def test_nothing_is_kept_of_requests_that_have_ended(admission: Admission, clock: Clock) -> None:
    for number in range(1000):
        admitted = admission.try_admit(f"tenant-{number}")
        assert admitted is not None
        admitted.end()
        clock.now += 1
    await asyncio.sleep(20 * NEW_SECONDS)

    assert (admission._new, admission._waiting, admission._timer) == ({}, {}, None)


async def test_a_flood_and_a_quiet_tenant_on_a_real_loop() -> None:
    """At each step of the quiet tenant's request, few of the flood's are under way."""
    admission, under_way, seen = Admission(), Counter[str](), list[int]()

    async def request(tenant: str, steps: int) -> None:
        admitted = admission.try_admit(tenant) or await admission.wait(tenant)
        under_way[tenant] += 1
        for _ in range(steps):
            if tenant == "quiet":
                seen.append(under_way["loud"])
            await asyncio.sleep(0)
        under_way[tenant] -= 1
        admitted.end()

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
