"""`resources.scans` and `resources.fair_places`: who comes next, and what a tenant may use."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Iterator

import pytest
from overspill.wire import GrepQuery
from overspill_service.archive.inspection import compiled
from overspill_service.errors import CpuTimeUsed, InvalidPattern, TooManyRequests
from overspill_service.resources import fair_threads
from overspill_service.resources.fair_places import FairPlaces
from overspill_service.resources.scans import MAX_PLACES, Scan, ScanThreads, scan_places
from overspill_service.resources.threads import NICENESS

from tests.clock import Clock

HOSTILE, OTHER, QUIET = "hostile", "other", "quiet"


class Jobs:
    """Work that runs until the test ends it, and the order in which it began."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self._gates: list[threading.Event] = []
        self._changed = threading.Condition()

    def held(self, name: str) -> Callable[[], str]:
        def work() -> str:
            gate = threading.Event()
            with self._changed:
                self.begun.append(name)
                self._gates.append(gate)
                self._changed.notify_all()
            gate.wait(30)
            return name

        return work

    async def wait_for(self, count: int) -> list[str]:
        """The names of what has begun, once that many have."""

        def wait() -> None:
            with self._changed:
                assert self._changed.wait_for(lambda: len(self.begun) >= count, 30)

        await asyncio.to_thread(wait)
        return list(self.begun)

    def end(self, number: int) -> None:
        self._gates[number].set()

    def end_all(self) -> None:
        for gate in self._gates:
            gate.set()


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    held = Jobs()
    yield held
    held.end_all()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def scans(jobs: Jobs, clock: Clock) -> Iterator[ScanThreads]:
    """Three threads, of which a tenant uses two."""
    threads = ScanThreads(8, clock=clock, threads=2)
    yield threads
    jobs.end_all()
    threads.close()


async def test_a_tenant_waits_for_no_batch_of_another_one(scans: ScanThreads, jobs: Jobs) -> None:
    async with scans.scan(HOSTILE, 0) as hostile, scans.scan(QUIET, 0) as quiet:
        waiting = [hostile.start(jobs.held(HOSTILE)) for _ in range(50)]
        await jobs.wait_for(2)

        assert await quiet.run(lambda: "done") == "done"
        assert jobs.begun == [HOSTILE] * 2
        for each in waiting:
            each.cancel()


async def test_the_next_free_thread_goes_to_the_tenant_with_the_fewest_batches(
    scans: ScanThreads, jobs: Jobs
) -> None:
    async with scans.scan(HOSTILE, 0) as first, scans.scan(OTHER, 0) as second, scans.scan(QUIET, 0) as quiet:
        waiting = [scan.start(jobs.held(HOSTILE)) for scan in (first, second) for _ in range(20)]
        await jobs.wait_for(3)
        waiting.append(quiet.start(jobs.held(QUIET)))
        jobs.end(0)

        assert (await jobs.wait_for(4))[3] == QUIET
        for each in waiting:
            each.cancel()


async def test_of_tenants_alike_the_one_that_used_less_cpu_time_goes_first(
    scans: ScanThreads, jobs: Jobs
) -> None:
    async with scans.scan(OTHER, 0) as other, scans.scan("fourth", 0) as fourth:
        held = [scan.start(jobs.held(OTHER)) for scan in (other, other, fourth)]
        await jobs.wait_for(3)
        async with scans.scan(HOSTILE, 0) as hostile, scans.scan(QUIET, 0) as quiet:
            hostile._tenant.charge(5.0)
            waiting = [hostile.start(jobs.held(HOSTILE)), quiet.start(jobs.held(QUIET))]
            jobs.end(0)

            assert (await jobs.wait_for(4))[3] == QUIET
            for each in (*held, *waiting):
                each.cancel()


async def test_time_without_work_earns_no_threads(scans: ScanThreads, jobs: Jobs) -> None:
    async with scans.scan(HOSTILE, 0) as hostile, scans.scan(QUIET, 0) as quiet:
        hostile._tenant.charge(100.0)
        held = hostile.start(jobs.held(HOSTILE))
        await quiet.run(lambda: None)

        assert quiet._tenant.used >= 100.0
        held.cancel()


async def test_work_that_nobody_waits_for_does_not_begin(scans: ScanThreads, jobs: Jobs) -> None:
    async with scans.scan(HOSTILE, 0) as hostile:
        running = [hostile.start(jobs.held("running")) for _ in range(2)]
        abandoned = hostile.start(jobs.held("abandoned"))
        last = hostile.start(jobs.held("last"))
        await jobs.wait_for(2)
        abandoned.cancel()
        jobs.end(0)

        assert (await jobs.wait_for(3))[2] == "last"
        jobs.end_all()
        assert await asyncio.gather(*running, last) == ["running", "running", "last"]


async def test_what_work_raises_reaches_its_caller(scans: ScanThreads) -> None:
    async with scans.scan(QUIET, 0) as quiet:
        with pytest.raises(ZeroDivisionError):
            await quiet.run(lambda: 1 // 0)

        assert await quiet.run(lambda: 1) == 1


async def test_a_scan_ends_with_its_request(scans: ScanThreads) -> None:
    begun: list[Scan] = []

    async def request() -> None:
        async with scans.scan(QUIET, 0) as scan:
            begun.append(scan)
            await asyncio.Event().wait()

    task = asyncio.create_task(request())
    while not begun:  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert not begun[0].is_over
    task.cancel()
    await asyncio.wait([task])

    assert begun[0].is_over
    assert scans.places.free == scans.places.total


async def test_cpu_time_is_counted_down_by_the_minute(scans: ScanThreads, clock: Clock) -> None:
    async with scans.scan(HOSTILE, 30) as hostile:
        hostile._tenant.charge(33.0)
    with pytest.raises(CpuTimeUsed, match="30 s of CPU time a minute") as refused:
        async with scans.scan(HOSTILE, 30):
            pass

    assert refused.value.retry_after == 7
    async with scans.scan(QUIET, 30), scans.scan(HOSTILE, 0):
        pass
    async with scans.scan(HOSTILE, 30) as hostile:
        hostile._tenant.charge(30.0)
    clock.now += 0.5
    async with scans.scan(HOSTILE, 30):
        pass


async def test_what_other_replicas_used_counts_too_and_all_regain_it_together(
    scans: ScanThreads, clock: Clock
) -> None:
    async with scans.scan(HOSTILE, 30) as hostile:
        hostile._tenant.charge(10.0)
        hostile._tenant.spent_elsewhere = 25.0
    with pytest.raises(CpuTimeUsed) as refused:
        async with scans.scan(HOSTILE, 30):
            pass
    clock.now += 14
    async with scans.scan(HOSTILE, 30):
        pass

    assert refused.value.retry_after == 11
    assert hostile._tenant.spent == pytest.approx(8.0)
    assert hostile._tenant.spent_elsewhere == pytest.approx(20.0)


async def test_replicas_need_to_know_of_tenants_alone_that_come_near_their_limit(
    scans: ScanThreads, clock: Clock
) -> None:
    for name, limit, seconds in ((HOSTILE, 30, 20.0), (OTHER, 30, 0.1), (QUIET, 30, 0.0), ("free", 0, 99.0)):
        async with scans.scan(name, limit) as scan:
            if seconds:
                scan._tenant.charge(seconds)
    found = [[each.name for each in scans.spenders(clock.now)] for _ in range(2)]
    clock.now += 60

    assert found == [[HOSTILE, OTHER], [HOSTILE]]
    assert scans.spenders(clock.now) == []


async def test_a_scan_that_finds_no_place_is_refused(scans: ScanThreads) -> None:
    scans.places.wait_seconds = 0.01
    places = [scans.scan(HOSTILE, 0) for _ in range(4)]
    for each in places:
        await each.__aenter__()
    with pytest.raises(TooManyRequests, match="4 greps and summaries at once"):
        await scans.scan(HOSTILE, 0).__aenter__()

    async with scans.scan(QUIET, 0):
        pass
    for each in places:
        await each.__aexit__(None, None, None)


@pytest.mark.parametrize(("memory", "places"), [(0, 2), (512 * 2**20, 8), (2**40, MAX_PLACES)])
def test_scans_take_a_quarter_of_the_memory(memory: int, places: int) -> None:
    assert scan_places(memory) == places


async def hold(places: FairPlaces, tenant: str, order: list[str], leave: asyncio.Event) -> None:
    async with places.hold(tenant):
        order.append(tenant)
        await leave.wait()


async def test_a_free_place_goes_to_the_tenant_with_the_fewest() -> None:
    places, order, leave, first = FairPlaces(4, "tests"), list[str](), asyncio.Event(), asyncio.Event()
    tasks = [asyncio.create_task(hold(places, "a", order, first))]
    tasks += [asyncio.create_task(hold(places, name, order, leave)) for name in "aaaaabbbbc"]
    while len(order) < 4:  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert sorted(order) == ["a", "a", "b", "b"]
    first.set()
    while len(order) < 5:  # noqa: ASYNC110
        await asyncio.sleep(0)

    assert order[4] == "c"
    leave.set()
    await asyncio.gather(*tasks)
    assert (places.free, places._waiting, +places._held) == (4, {}, {})


async def test_who_stops_waiting_leaves_nothing_behind() -> None:
    places, order, leave = FairPlaces(1, "tests"), list[str](), asyncio.Event()
    holder = asyncio.create_task(hold(places, "a", order, leave))
    await asyncio.sleep(0)
    waiting = [asyncio.create_task(hold(places, name, order, leave)) for name in "ab"]
    await asyncio.sleep(0)
    for each in waiting:
        each.cancel()
    await asyncio.wait(waiting)
    leave.set()
    await holder

    assert (order, places.free, places._waiting) == (["a"], 1, {})


async def test_a_place_that_is_granted_to_a_request_that_just_left_is_free_again() -> None:
    places, order, leave = FairPlaces(1, "tests"), list[str](), asyncio.Event()
    leave.set()
    async with places.hold("a"):
        late = asyncio.create_task(hold(places, "b", order, leave))
        await asyncio.sleep(0)
    late.cancel()
    await asyncio.wait([late])

    assert (order, places.free) == ([], 1)


async def test_who_is_given_up_as_a_place_comes_free_disturbs_none_of_those_behind() -> None:
    places, order, leave = FairPlaces(1, "tests"), list[str](), asyncio.Event()
    async with places.hold("a"):
        given_up, *behind = [asyncio.create_task(hold(places, "b", order, leave)) for _ in range(3)]
        await asyncio.sleep(0)
        given_up.cancel()
    await asyncio.wait([given_up])
    leave.set()
    await asyncio.gather(*behind)

    assert (given_up.cancelled(), order, places.free, places._waiting) == (True, ["b", "b"], 1, {})


async def test_work_that_holds_the_interpreter_is_one_at_a_time_for_a_tenant_and_pauses(
    scans: ScanThreads, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fair_threads, "PAUSES", 10**9)
    async with scans.scan(HOSTILE, 0) as hostile, scans.scan(QUIET, 0) as quiet:
        first = asyncio.create_task(hostile.run_locking(jobs.held("first")))
        second = asyncio.create_task(hostile.run_locking(jobs.held("second")))
        await jobs.wait_for(1)
        jobs.end(0)
        await first

        assert await quiet.run_locking(lambda: "at once") == "at once"
        assert jobs.begun == ["first"]
        second.cancel()


async def test_others_get_the_interpreter_between_the_two_steps_of_a_compilation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fair_threads, "PAUSES", 0)
    steps = list[str]()
    threads = ScanThreads(8, note=lambda name, *_: steps.append(name), threads=2)
    async with threads.scan(HOSTILE, 0) as scan:
        with pytest.raises(InvalidPattern):
            await compiled(GrepQuery(pattern=r"(seen)\1"), scan)
        refused = len(steps)
        await compiled(GrepQuery(pattern=r"error \d+"), scan)
    threads.close()

    assert (refused, len(steps)) == (1, 3)


async def test_abandoned_work_that_holds_the_interpreter_is_waited_for_too(
    scans: ScanThreads, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fair_threads, "PAUSES", 0)
    async with scans.scan(HOSTILE, 0) as hostile:
        first = asyncio.create_task(hostile.run_locking(jobs.held("first")))
        await jobs.wait_for(1)
        first.cancel()
        second = asyncio.create_task(hostile.run_locking(jobs.held("second")))
        await asyncio.wait([first])
        assert hostile._tenant.locking.locked()
        jobs.end(0)

        assert await jobs.wait_for(2) == ["first", "second"]
        jobs.end_all()
        assert await second == "second"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a niceness is a process's")
async def test_scans_give_way_to_other_threads(scans: ScanThreads) -> None:
    async with scans.scan(QUIET, 0) as quiet:
        own = await quiet.run(lambda: os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    assert own == max(NICENESS, os.getpriority(os.PRIO_PROCESS, 0))
