"""The threads that all guards of a process share: no work is slept over, whenever it comes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

import pytest
from overspill.execution import threads, workers
from overspill.execution.loop_thread import LoopThread
from overspill.execution.workers import Workers

from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

SEARCHING: Final = """
import re2, threading
from overspill.execution import workers

began, text, pattern = threading.Event(), b"nothing of that kind\\n" * 300, re2.compile(b"error|failed")

def search():
    began.set()
    for _ in range(2_000):
        pattern.search(text)

workers.SMALL.submit(search)
began.wait()
"""
"""A program that ends while a thread searches with RE2, again and again for some hundredths of a second."""


def idle(most: int) -> Workers:
    """Workers of whom all wait for work."""
    made, all_there = Workers(most), threading.Barrier(most + 1)
    for _ in range(most):
        made.submit(lambda: all_there.wait(30))
    all_there.wait(30)
    assert until(lambda: len(made._idle) == most)
    return made


@pytest.mark.parametrize("most", [2, 8])
def test_each_idle_thread_takes_a_piece_of_what_comes_at_once(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "IDLE_SECONDS", 3600.0)
    pool, together, met = idle(most), threading.Barrier(most), list[int]()
    for _ in range(most):
        pool.submit(lambda: met.append(together.wait(30)))

    assert until(lambda: len(met) == most)
    assert pool.running == most


def test_a_piece_that_waits_for_the_next_one_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def wait(before: threading.Event, then: threading.Event) -> None:
        assert before.wait(30)
        then.set()

    monkeypatch.setattr(workers, "IDLE_SECONDS", 3600.0)
    for _ in range(50):
        pool, done = Workers(8), [threading.Event() for _ in range(9)]
        done[8].set()
        for number in range(8):
            pool.submit(partial(wait, done[number + 1], done[number]))
        assert done[0].wait(30)


class Interrupting(deque[None]):
    """Calls `then` once, just before a thread says that it waits."""

    then: Callable[[], object] | None = None

    def append(self, item: None) -> None:
        then, self.then = self.then, None
        if then is not None:
            then()
        super().append(item)


@pytest.mark.parametrize("most", [1, 2])
def test_work_that_comes_as_a_thread_goes_idle_leaves_none_behind_that_is_not_there(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "IDLE_SECONDS", 0.05)
    pool, came = Workers(most), list[str]()
    pool._idle = Interrupting()
    pool._idle.then = lambda: pool.submit(lambda: came.append("meanwhile"))
    pool.submit(lambda: came.append("first"))
    assert until(lambda: len(came) == 2 and not pool.running)
    pool.submit(lambda: came.append("later"))

    assert until(lambda: came[-1] == "later")


def test_a_thread_that_ends_leaves_nothing_that_came_at_the_same_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workers, "IDLE_SECONDS", 0.0)
    pool, done, count = Workers(2), threading.Semaphore(0), 2_000
    for _ in range(count):
        pool.submit(done.release)

    assert all(done.acquire(timeout=30) for _ in range(count))
    assert until(lambda: not pool.running)


def test_what_an_interrupted_thread_began_to_hand_over_holds_up_nothing() -> None:
    pool, came = idle(1), list[str]()
    pool._inbox.append(workers._Work(lambda: came.append("interrupted"), "a", 0))
    pool.submit(lambda: came.append("next"), "b")

    assert until(lambda: sorted(came) == ["interrupted", "next"])


def test_without_threads_the_caller_does_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("_thread.start_new_thread", refuse)
    pool, came = Workers(2), list[int]()
    pool.submit(lambda: came.append(threading.get_ident()))

    assert came == [threading.get_ident()]
    assert not pool.running


@pytest.mark.parametrize(("size", "is_together"), [(64 * 1024, False), (16 * 1024 * 1024, True), (0, True)])
async def test_only_the_work_on_small_outputs_is_done_one_after_another(size: int, is_together: bool) -> None:
    meeting, met = threading.Barrier(2), list[int]()

    def work() -> None:
        with suppress(threading.BrokenBarrierError):
            met.append(meeting.wait(30 if is_together else 0.1))

    await asyncio.gather(*(threads.run_fairly("a session", size, work) for _ in range(2)))

    assert len(met) == (2 if is_together else 0)


async def test_inside_an_event_loop_a_loop_thread_that_cannot_be_started_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)

    with pytest.raises(RuntimeError, match="can't start new thread"):
        LoopThread()


def test_a_loop_thread_ends_where_no_other_can_be_started_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """As at the end of a process under Python 3.12.0 and 3.12.1."""

    def refuse(_: object) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    said: list[threading.ExceptHookArgs] = []
    thread = LoopThread()
    monkeypatch.setattr(threading, "excepthook", said.append)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    thread.end()

    assert said == []
    assert not thread.is_alive
    assert thread.loop.is_closed()


def test_a_loop_thread_whose_start_was_interrupted_ends_without_a_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[threading.Thread] = []
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        begun.append(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        LoopThread()
    start(begun[0])  # as a thread that the system has begun already, and that only now comes to run
    begun[0].join()

    assert not begun[0].is_alive()


def test_a_process_that_ends_while_a_thread_searches_with_re2_does_not_abort() -> None:
    done = subprocess.run([sys.executable, "-c", SEARCHING], capture_output=True, check=False, timeout=60)

    assert (done.returncode, done.stderr) == (0, b"")


def test_what_waits_for_a_thread_at_the_end_of_the_process_is_dropped() -> None:
    pool, came = Workers(1), list[str]()
    began, is_followed = threading.Event(), threading.Event()

    def first() -> None:
        began.set()
        assert is_followed.wait(30)
        assert until(lambda: not pool._tickets.qsize())
        came.append("first")

    pool.submit(first)
    assert began.wait(30)
    pool.submit(partial(came.append, "second"))
    is_followed.set()

    pool.finish()

    assert came == ["first"]
