"""Sending in the background: when its thread starts, tries again, gives up for a while and ends."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Final

import pytest
from overspill.delivery.background import Background
from overspill.delivery.backgrounds import backgrounds
from overspill.errors import Unreachable
from overspill.guard.guard import Guard
from overspill.transfer.address import Address
from overspill.transfer.sync import SyncClient

from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE: Final = 30.0


def address(url: str = "http://127.0.0.1:9") -> Address:
    return Address(url=url, key="", timeout=30, connect_timeout=5, retries=0)


@pytest.fixture
def background() -> Iterator[Background]:
    background = Background(address(), first=0.001, longest=0.01)
    yield background
    background.close()


class Job:
    """Gives `pauses`, one a run; an exception among them is raised. Waits for nobody."""

    def __init__(self, *pauses: float | BaseException | None) -> None:
        self._pauses = list(pauses)
        self.runs = 0
        self.is_done = threading.Event()

    def __call__(self, client: SyncClient) -> float | None:
        pause = self._pauses[self.runs]
        self.runs += 1
        if self.runs == len(self._pauses):
            self.is_done.set()
        if isinstance(pause, BaseException):
            raise pause
        return pause

    def ended(self) -> bool:
        return self.is_done.wait(PATIENCE)


def test_what_has_nothing_to_do_has_no_thread(background: Background) -> None:
    background.register("job", Job(None))

    assert not background.is_running


def test_a_job_runs_until_it_has_nothing_left_and_the_thread_ends(background: Background) -> None:
    job = Job(0.0, 0.001, None)
    background.register("job", job)
    background.schedule("job")

    assert job.ended()
    assert until(lambda: not background.is_running)
    assert job.runs == 3


@pytest.mark.parametrize("failure", [Unreachable("down"), OSError("disk"), RuntimeError("closed")])
def test_a_job_that_fails_runs_again(background: Background, failure: Exception) -> None:
    job = Job(failure, failure, failure, None)
    background.register("job", job)
    background.schedule("job")

    assert job.ended()


@pytest.mark.parametrize(
    "failure", [ValueError("odd"), SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError()], ids=repr
)
def test_a_job_that_raises_what_nobody_expects_is_logged_counted_and_tried_again(
    background: Background, failure: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    job, other = Job(failure, None), Job(0.0, 0.0, None)
    background.register("job", job)
    background.register("other", other)
    background.schedule("job")
    background.schedule("other")

    assert job.ended()
    assert other.ended()
    assert background.failures == 1
    assert [record.message for record in caplog.records] == [
        "a background job failed and is tried again: job"
    ]


def test_a_job_that_fails_does_not_hold_up_another(background: Background) -> None:
    failing, working = Job(*[Unreachable("down")] * 50, None), Job(0.0, 0.0, None)
    background.register("failing", failing)
    background.register("working", working)
    background.schedule("failing")
    background.schedule("working")

    assert working.ended()
    assert failing.ended()


def test_waking_a_job_that_waits_long_lets_it_run_at_once(background: Background) -> None:
    job = Job(3600.0, None)
    background.register("job", job)
    background.schedule("job")
    assert until(lambda: job.runs == 1)
    background.schedule("job")

    assert job.ended()


def test_one_thread_serves_all_jobs_of_all_threads(background: Background) -> None:
    threads: set[int] = set()

    def job(client: SyncClient) -> None:
        threads.add(threading.get_ident())

    for number in range(20):
        background.register(f"job {number}", job)
    background.register("last", (last := Job(None)))
    wakers = [
        threading.Thread(target=background.schedule, args=[f"job {number}"], kwargs={"after": 0.05})
        for number in range(20)
    ]
    for waker in wakers:
        waker.start()
    for waker in wakers:
        waker.join()
    background.schedule("last", after=0.1)

    assert last.ended()
    assert len(threads) == 1


def test_closing_ends_the_thread_and_waking_starts_another(background: Background) -> None:
    job = Job(3600.0, 0.0, None)
    background.register("job", job)
    background.schedule("job")
    assert until(lambda: job.runs == 1)
    background.close()
    assert until(lambda: not background.is_running)
    background.schedule("job")

    assert job.ended()


def test_a_job_that_is_let_go_of_while_it_runs_does_not_run_again(background: Background) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def job(client: SyncClient) -> float:
        begun.set()
        go_on.wait(PATIENCE)
        return 3600.0

    background.register("job", job)
    background.schedule("job")
    assert begun.wait(PATIENCE)
    background.unregister("job")
    go_on.set()

    assert until(lambda: not background.is_running)


def test_a_job_that_ends_after_its_end_does_not_run_again(background: Background) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def job(client: SyncClient) -> float:
        begun.set()
        go_on.wait(PATIENCE)
        return 3600.0

    background.register("job", job)
    background.schedule("job")
    assert begun.wait(PATIENCE)
    background.close()
    go_on.set()

    assert until(lambda: not background.is_running)


def test_a_process_does_one_thing_after_another_for_a_service_which_ends_with_its_last_user() -> None:
    first, second = (
        backgrounds.acquire(address("http://127.0.0.1:8")),
        backgrounds.acquire(address("http://127.0.0.1:8")),
    )
    job = Job(3600.0, None)
    first.register("job", job)
    first.schedule("job")
    assert until(lambda: job.runs == 1)
    backgrounds.release(first)
    still = second.is_running
    backgrounds.release(second)

    assert first is second
    assert still
    assert until(lambda: not second.is_running)


def test_guards_that_are_dropped_unclosed_leave_no_jobs_and_need_no_thread() -> None:
    with SyncClient("http://127.0.0.1:7", retries=0) as client:
        background = backgrounds.acquire(client.address)
        for _ in range(200):
            Guard(client, spool=False).process_sync("short", tool="t")
        gc.collect()
        Guard(client, spool=False).process_sync("short", tool="t")
        gc.collect()
        left = len(background._jobs), len(background._due), backgrounds.users[client.address]
        backgrounds.release(background)

    assert max(left) <= 3


def test_the_thread_of_guards_that_were_all_dropped_ends_with_the_next_ones() -> None:
    with SyncClient("http://127.0.0.1:7", retries=0) as client:
        Guard(client, spool=False).process_sync("short", tool="t")
        gc.collect()
        with Guard(client, spool=False) as guard:
            guard.process_sync("short", tool="t")
            background = backgrounds.of_addresses[client.address]

    assert until(lambda: not background.is_running)
    assert client.address not in backgrounds.users


def test_a_forked_child_has_a_thread_of_its_own(background: Background) -> None:
    parent = Job(3600.0, 3600.0)
    background.register("job", parent)
    background.schedule("job")
    assert until(lambda: parent.runs == 1)
    child = os.fork()
    if child == 0:
        mine = Job(None)
        background.register("job", mine)
        idle = not background.is_running
        background.schedule("job")
        os._exit(0 if idle and mine.ended() else 1)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert background.is_running


def test_the_interpreter_ends_while_a_job_waits_and_another_runs() -> None:
    code = """
import threading
from overspill.transfer.address import Address
from overspill.delivery.background import Background
background = Background(Address(url="http://127.0.0.1:9", key="", timeout=30, connect_timeout=5, retries=0))
running = threading.Event()
def hangs(client):
    running.set()
    threading.Event().wait()
background.register("waits", lambda client: 3600.0)
background.register("hangs", hangs)
background.schedule("waits")
background.schedule("hangs")
running.wait()
print("ends")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "ends\n", "")
