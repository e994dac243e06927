"""Threads for blocking work: results, errors, cancelled work, and the end."""

from __future__ import annotations

import asyncio
import os
import sys
import threading

import pytest
from overspill_service.errors import OutOfResources
from overspill_service.resources import random_names
from overspill_service.resources.fair_threads import FairThreads
from overspill_service.resources.random_names import random_bytes
from overspill_service.resources.tenant_mix import TenantMix
from overspill_service.resources.threads import Pool, give_way


async def test_work_runs_in_threads_of_the_pool_and_its_result_or_error_comes_back() -> None:
    threads = FairThreads("work", threads=2)
    work = threads.of("somebody")
    names = await asyncio.gather(*(work.run(lambda: threading.current_thread().name) for _ in range(20)))
    with pytest.raises(ZeroDivisionError):
        await work.run(lambda: 1 // 0)
    with pytest.raises(SystemExit):
        await work.run(sys.exit)
    threads.close()

    assert set(names) <= {"work_0", "work_1", "work_2"}
    with pytest.raises(RuntimeError, match="closed"):
        work.start(lambda: None)


async def test_work_that_was_given_up_does_not_begin() -> None:
    threads, go_on, begun = FairThreads("work", threads=1), threading.Event(), list[str]()

    def work(name: str) -> None:
        begun.append(name)
        go_on.wait(30)

    first, second, third = (threads.of("one").start(work, name) for name in ("first", "second", "third"))
    second.cancel()
    go_on.set()
    await asyncio.gather(first, third)
    threads.close()

    assert begun == ["first", "third"]


async def test_the_end_waits_for_what_runs_and_cancels_what_waits() -> None:
    threads, begun, go_on = FairThreads("work", threads=1), threading.Event(), threading.Event()

    def work() -> bool:
        begun.set()
        return go_on.wait(30)

    running, waiting = threads.of("one").start(work), threads.of("one").start(lambda: None)
    await asyncio.to_thread(begun.wait, 30)
    threading.Timer(0.01, go_on.set).start()
    threads.close()

    assert waiting.cancelled()
    assert await running is True


async def test_a_tenant_uses_half_of_the_threads_while_another_one_asks_for_anything() -> None:
    now, go_on, running = 0.0, threading.Semaphore(0), threading.Semaphore(0)
    mix = TenantMix(lambda: now)
    threads = FairThreads("work", mix=mix, threads=4)

    def work() -> None:
        running.release()
        go_on.acquire(timeout=30)

    async def begins(most: int) -> bool:
        """Return whether of five pieces of work of one tenant just `most` begin, and end them all."""
        pieces = [threads.of("one").start(work) for _ in range(5)]
        begun = [await asyncio.to_thread(running.acquire, timeout=30) for _ in range(most)]
        is_more = await asyncio.to_thread(running.acquire, timeout=0.1)
        go_on.release(5)
        await asyncio.gather(*pieces)
        while running.acquire(blocking=False):
            pass
        return all(begun) and not is_more

    assert await begins(4)
    await threads.of("").run(lambda: None)
    assert await begins(4), "the work of the process itself counted as a tenant's"
    await threads.of("other").run(lambda: None)
    assert await begins(2)
    now = 2.0
    assert await begins(4)
    mix.note("third")
    assert await begins(2), "what another tenant asks for needs none of these threads"
    threads.close()


async def test_a_tenant_whose_work_has_ended_costs_the_others_nothing() -> None:
    threads = FairThreads("work", threads=1)
    for number in range(100):
        await threads.of(f"tenant {number}").run(lambda: None)
    held = threads.of("tenant 0").start(threading.Event().wait, 0.01)
    waiting = threads.of("tenant 1").start(lambda: None)
    waiting.cancel()
    await held

    assert threads._busy == {}
    threads.close()


async def test_a_system_without_threads_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    started = list[threading.Thread]()

    def start(self: threading.Thread) -> None:
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(self)

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(OutOfResources, match="raise the limit on"):
        Pool(3, "work")


def test_random_bytes_never_come_twice_also_in_a_process_that_was_forked() -> None:
    random_bytes(1)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, random_bytes(16))
        os._exit(0)
    mine = random_bytes(16)
    os.waitpid(child, 0)
    theirs = os.read(reading, 16)
    os.close(reading)
    os.close(writing)

    found = [random_bytes(8) for _ in range(3 * random_names.POOL_BYTES // 8)]
    assert len(set(found)) == len(found)
    assert mine != theirs


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a niceness is a process's")
def test_threads_that_give_way_stay_as_nice_as_the_process_is() -> None:
    """Only root may lower a niceness: as another user, threads would end, and searches wait for ever."""
    found: list[int] = []

    def be_nicer() -> None:
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, 19)
        give_way()
        found.append(os.getpriority(os.PRIO_PROCESS, thread))

    thread = threading.Thread(target=be_nicer)
    thread.start()
    thread.join()

    assert found == [19]
