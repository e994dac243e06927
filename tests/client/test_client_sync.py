"""The synchronous client: the same methods, from any thread, across forks and until the process ends."""

from __future__ import annotations

import asyncio
import gc
import inspect
import multiprocessing
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from overspill import errors, wire
from overspill.execution.calls import Calls
from overspill.execution.loop_thread import LoopThread
from overspill.execution.submissions import LoopEnded, Ongoing, Submission
from overspill.execution.waiting import wait_blocking
from overspill.transfer.client import Client
from overspill.transfer.iteration import Iteration
from overspill.transfer.sync import SyncClient
from overspill.wire import Code

from tests.client.scripted import answer, json, problem, scripted, scripted_in_thread, silence
from tests.client.shell import run_code
from tests.client.test_client_download import CONTENT, plain, stored
from tests.client.test_client_transport import CAPTURE, ENTRY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from multiprocessing.connection import Connection


def loop_threads() -> list[threading.Thread]:
    gc.collect()  # what other tests left to be collected has its own
    return [thread for thread in threading.enumerate() if thread.name == "overspill-loop"]


def public(kind: type) -> dict[str, Any]:
    return {name: value for name, value in inspect.getmembers(kind, callable) if not name.startswith("_")}


def test_it_has_every_method_of_the_asynchronous_client() -> None:
    asynchronous, synchronous = public(Client), public(SyncClient)
    asynchronous.pop("aclose")
    synchronous.pop("close")
    synchronous.pop("begin")  # how code of both kinds uses one client

    assert synchronous.keys() == asynchronous.keys()
    for name, method in asynchronous.items():
        assert inspect.signature(synchronous[name]) == inspect.signature(method)
        assert not inspect.iscoroutinefunction(synchronous[name])


def test_its_settings_are_those_of_the_asynchronous_client() -> None:
    assert inspect.signature(SyncClient.__init__) == inspect.signature(Client.__init__)


def test_a_method_answers_as_its_twin_does() -> None:
    with scripted_in_thread(json(ENTRY)) as service, SyncClient(service.url) as overspill:
        assert overspill.put("content", call_id="call_1") == ENTRY
        assert overspill.get(CAPTURE) == ENTRY


def test_a_method_raises_as_its_twin_does() -> None:
    with (
        scripted_in_thread(problem(Code.NOT_FOUND)) as service,
        SyncClient(service.url) as overspill,
        pytest.raises(errors.NotFound),
    ):
        overspill.get(CAPTURE)


def test_a_stream_is_an_iterator() -> None:
    with scripted_in_thread(stored(CONTENT)) as service, SyncClient(service.url) as overspill:
        assert b"".join(overspill.stream(CAPTURE)) == CONTENT


def test_all_captures_can_be_iterated_over() -> None:
    pages = (wire.Listing(captures=[ENTRY], cursor="more"), wire.Listing(captures=[ENTRY]))
    with scripted_in_thread(*map(json, pages)) as service, SyncClient(service.url) as overspill:
        assert list(overspill.iterate()) == [ENTRY] * 2


def test_an_iteration_keeps_the_client_that_nothing_else_refers_to() -> None:
    with scripted_in_thread(stored(CONTENT), json(wire.Listing(captures=[ENTRY]))) as service:
        pieces, entries = SyncClient(service.url).stream(CAPTURE), SyncClient(service.url).iterate()
        gc.collect()

        assert b"".join(pieces) == CONTENT
        assert list(entries) == [ENTRY]


def test_leaving_a_stream_early_ends_the_transfer() -> None:
    endless = answer(b"x" * 1000, headers={wire.Header.SIZE: "5000"}, length=5000)
    with scripted_in_thread(endless) as service, SyncClient(service.url, timeout=5) as overspill:
        with overspill.stream(CAPTURE) as pieces:
            assert next(pieces) == b"x" * 1000

        assert list(pieces) == []


def test_an_iteration_that_is_forgotten_is_closed() -> None:
    closed = threading.Event()

    async def numbers() -> AsyncIterator[int]:
        try:
            for number in range(10):
                yield number
        finally:
            closed.set()

    calls = Calls()
    iteration: Iteration[int] = Iteration(calls, numbers(), None)  # type: ignore[arg-type]  # an async generator
    assert next(iteration) == 0
    del iteration

    assert closed.wait(10)
    calls.close(lambda: asyncio.sleep(0))


async def test_it_works_from_a_thread_while_a_loop_runs() -> None:
    async with scripted(json(ENTRY)) as service:
        with SyncClient(service.url) as overspill:
            assert await asyncio.to_thread(overspill.get, CAPTURE) == ENTRY


async def test_it_works_inside_a_running_loop_which_it_blocks() -> None:
    with scripted_in_thread(json(ENTRY)) as service, SyncClient(service.url) as overspill:
        assert overspill.get(CAPTURE) == ENTRY


def test_many_threads_share_one() -> None:
    with scripted_in_thread(json(ENTRY)) as service, SyncClient(service.url) as overspill:
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(overspill.get, [CAPTURE] * 50)) == [ENTRY] * 50

        assert len(loop_threads()) == 1


def test_nothing_starts_before_the_first_call() -> None:
    with SyncClient("http://127.0.0.1:1"):
        assert loop_threads() == []


def test_closing_ends_the_thread() -> None:
    with scripted_in_thread(json(ENTRY)) as service, SyncClient(service.url) as overspill:
        overspill.get(CAPTURE)
        overspill.close()

        assert loop_threads() == []
        with overspill:  # it can be used again
            assert overspill.get(CAPTURE) == ENTRY


def test_the_last_reference_ends_the_thread() -> None:
    with scripted_in_thread(json(ENTRY)) as service:
        overspill = SyncClient(service.url)
        overspill.get(CAPTURE)
        del overspill

        assert loop_threads() == []


def test_closing_ends_a_call_that_another_thread_waits_for() -> None:
    with scripted_in_thread(silence) as service, ThreadPoolExecutor(1) as pool:
        overspill = SyncClient(service.url)
        waiting = pool.submit(overspill.get, CAPTURE)
        while not service.received:
            pass
        overspill.close()

        with pytest.raises(RuntimeError, match="closed while this call was running"):
            waiting.result()


def test_a_call_from_its_own_loop_is_refused() -> None:
    calls = Calls()

    async def inside() -> None:
        calls.run(asyncio.sleep(0))

    with pytest.raises(RuntimeError, match="use Client there"):
        calls.run(inside())
    calls.close(lambda: asyncio.sleep(0))


def test_what_is_submitted_while_the_loop_ends_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls()
    coroutine = asyncio.sleep(0)

    def submitted_too_late(*_: object) -> None:
        monkeypatch.undo()
        ended(calls.thread)

    monkeypatch.setattr(calls.thread.loop, "call_soon_threadsafe", submitted_too_late)
    reply = calls.submit(coroutine)
    calls.close(lambda: asyncio.sleep(0))

    with pytest.raises(LoopEnded):
        reply.result()
    assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED


def test_what_is_closed_refuses() -> None:
    calls = Calls()
    calls.close(lambda: asyncio.sleep(0))

    with pytest.raises(RuntimeError, match="closed"):
        calls.run(asyncio.sleep(0))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_and_its_parent_both_go_on() -> None:
    def child(report: Connection) -> None:
        report.send(overspill.get(CAPTURE) == ENTRY)
        overspill.close()

    with scripted_in_thread(json(ENTRY)) as service, SyncClient(service.url) as overspill:
        overspill.get(CAPTURE)
        context = multiprocessing.get_context("fork")
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=child, args=(sender,))
        process.start()

        assert receiver.recv()
        process.join(10)
        assert process.exitcode == 0
        assert overspill.get(CAPTURE) == ENTRY


def ended(thread: LoopThread) -> None:
    """End the loop thread behind its users' backs."""
    thread.loop.call_soon_threadsafe(thread._stop.set)
    thread._thread.join(30)


def test_what_is_submitted_before_the_loop_comes_to_it_takes_one_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def number(which: int) -> int:
        return which

    thread, is_free = LoopThread(), threading.Event()
    calls: list[object] = []
    ask = thread.loop.call_soon_threadsafe

    def counted(*args: Any) -> object:
        calls.append(args)
        return ask(*args)

    ask(is_free.wait, 30)
    monkeypatch.setattr(thread.loop, "call_soon_threadsafe", counted)
    replies = [thread.submit(Submission(number(which)), Ongoing()) for which in range(100)]
    is_free.set()

    assert all(wait_blocking(reply, 30) for reply in replies)
    assert [reply.result() for reply in replies] == list(range(100))
    assert len(calls) == 1
    assert wait_blocking(later := thread.submit(Submission(number(100)), Ongoing()), 30)
    assert later.result() == 100
    thread.end()


def test_a_client_whose_loop_thread_died_goes_on_with_another() -> None:
    with scripted_in_thread(json(ENTRY)) as service, SyncClient(service.url) as overspill:
        overspill.get(CAPTURE)
        assert overspill._calls is not None
        ended(overspill._calls.thread)

        assert overspill.get(CAPTURE) == ENTRY
        assert len(loop_threads()) == 1


def test_a_client_in_a_process_forked_without_pythons_knowledge_goes_on() -> None:
    with scripted_in_thread(json(ENTRY)) as service, SyncClient(service.url) as overspill:
        overspill.get(CAPTURE)
        assert overspill._calls is not None
        before = overspill._calls.thread
        before._process = -1

        assert overspill.get(CAPTURE) == ENTRY
        before._process = os.getpid()
        ended(before)


async def test_a_loop_that_cannot_run_in_its_thread_is_said_and_the_client_recovers(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As under gevent, where all threads are one, and that one runs an event loop already."""

    class SameThread(threading.Thread):
        def start(self) -> None:
            self.run()

    with scripted_in_thread(json(ENTRY)) as service, SyncClient(service.url) as overspill:
        with monkeypatch.context() as patched:
            patched.setattr("overspill.execution.loop_thread.threading.Thread", SameThread)
            with pytest.raises(RuntimeError, match="closed"):
                overspill.get(CAPTURE)

        assert await asyncio.to_thread(overspill.get, CAPTURE) == ENTRY
    assert "inside another event loop" in caplog.text


UNCLOSED = """
import logging, sys
from overspill import SyncClient
# on a busy machine a step takes its time, which asyncio's debug mode tells
logging.getLogger("asyncio").addFilter(lambda record: not record.getMessage().startswith("Executing "))
overspill = SyncClient(sys.argv[1])
print(overspill.get(sys.argv[2]).size)
pieces = overspill.stream(sys.argv[2])
print(len(next(pieces)))
"""


def test_a_process_ends_cleanly_with_a_client_left_open() -> None:
    with scripted_in_thread(json(ENTRY), plain(b"x" * 100)) as service:
        ended = subprocess.run(
            [sys.executable, "-W", "error", "-X", "dev", "-c", UNCLOSED, service.url, CAPTURE],
            capture_output=True,
            timeout=60,
            text=True,
            check=False,
        )

    assert (ended.stdout, ended.stderr, ended.returncode) == ("5\n100\n", "", 0)


INTERRUPTED = """
import os, signal, sys, threading
from overspill import SyncClient
overspill = SyncClient(sys.argv[1])
overspill.get(sys.argv[2])
signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs the tests may ignore it
threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGINT]).start()
try:
    overspill.get(sys.argv[2])
except KeyboardInterrupt:
    print("interrupted")
print(overspill.get(sys.argv[2]).size)
overspill.close()
"""


def test_an_interrupt_ends_the_wait_and_not_the_client() -> None:
    with scripted_in_thread(json(ENTRY), silence, json(ENTRY)) as service:
        ended = run_code(INTERRUPTED, service.url, CAPTURE)

    assert (ended.stdout, ended.stderr, ended.returncode) == ("interrupted\n5\n", "", 0)


ZSTD = ("backports.zstd", "compression.zstd")


def loaded_by(statement: str) -> set[str]:
    program = f"{statement}\nimport sys\nprint(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(ended.stdout.split())


def test_importing_the_package_loads_next_to_nothing() -> None:
    loaded = loaded_by("import overspill")

    assert not loaded & {
        "aiohttp",
        *ZSTD,
        "msgspec",
        "asyncio",
        "overspill.transfer.client",
        "overspill.wire",
    }


def test_http_and_compression_are_loaded_by_the_first_request() -> None:
    loaded = loaded_by("from overspill import Client, SyncClient; Client(), SyncClient()")

    assert not loaded & {"aiohttp", *ZSTD, "overspill.transfer.transport"}
