"""Live captures, as their producers write them: against a real service."""

from __future__ import annotations

import asyncio
import gc
import random
import sys
import threading
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import pytest
from overspill import Client, Spool, SyncClient
from overspill.errors import Absent, ClientClosed, NotLive
from overspill.execution.waiting import wait_blocking
from overspill.live import sync_capture
from overspill.redaction.redactor import Redactor
from overspill.wire import State

from tests.client.shell import run_code

if TYPE_CHECKING:
    from pathlib import Path

    from overspill import wire
    from overspill.live.live_capture import LiveCapture

    from tests.servers.overspill import ServiceProcess

NOWHERE = "http://127.0.0.1:1"
LINES = "".join(f"line {number}\n" for number in range(2_000))


async def test_what_was_written_can_be_read_while_the_tool_runs(service: ServiceProcess) -> None:
    async with Client(service.url, session="live") as client:
        async with client.live(tool="build", call_id="c1", labels={"a": "b"}) as out:
            await out.write(LINES)
            await out.flush()
            entry, tail = await client.get(out.id), await client.tail("call:c1", 2)

            assert (entry.state, entry.size, entry.tool, entry.labels["a"]) == (
                "live",
                len(LINES),
                "build",
                "b",
            )
            assert tail.content == "line 1998\nline 1999\n"
            assert (await client.live_status(out.id)).accepted == out.accepted == len(LINES)
        assert out.entry is not None
        assert (out.entry.state, out.durable <= len(LINES)) == (State.COMPLETE, True)
        assert (await client.content(out.id)).decode() == LINES


async def test_an_exception_leaves_a_partial_capture_with_its_class_as_the_status(
    service: ServiceProcess,
) -> None:
    async with Client(service.url) as client:
        out = client.live()

        async def fail() -> None:
            async with out:
                await out.write(b"so far\n")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail()

        entry = await client.get(out.id)
        assert (entry.state, entry.status, entry.size) == ("partial", "ZeroDivisionError", 7)


async def test_a_cancelled_producer_ends_its_capture(service: ServiceProcess) -> None:
    async with Client(service.url) as client:
        started, found = asyncio.Event(), []

        async def produce() -> None:
            async with client.live() as out:
                found.append(out.id)
                await out.write("begun\n")
                started.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(produce())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        entry = await client.get(found[0])
        assert (entry.state, entry.status, entry.size) == ("partial", "CancelledError", 6)


@pytest.mark.parametrize("steps", [0, 1, 2, 4, 8, 16])
async def test_a_producer_that_is_cancelled_while_it_ends_its_capture_ends_it_too(
    service: ServiceProcess, steps: int
) -> None:
    async with Client(service.url) as client:
        ended, found = asyncio.Event(), []

        async def produce() -> None:
            async with client.live() as out:
                found.append(out.id)
                await out.write("all of it\n")
                ended.set()

        task = asyncio.create_task(produce())
        await ended.wait()
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

        entry = await client.get(found[0])
        assert (entry.state, entry.size) == ("complete", 10)


def test_a_capture_of_a_task_that_ends_with_its_event_loop_has_all_and_is_ended(
    service: ServiceProcess,
) -> None:
    found, tasks = [], []

    async def produce(client: Client, written: asyncio.Event) -> None:
        async with client.live() as out:
            found.append(out.id)
            await out.write("sent\n")
            await out.flush()
            await out.write("not sent yet\n")
            written.set()
            await asyncio.Event().wait()

    async def leave() -> None:
        client, written = await Client(service.url).__aenter__(), asyncio.Event()
        tasks.append(asyncio.create_task(produce(client, written)))
        await written.wait()

    asyncio.run(leave())
    with SyncClient(service.url) as client:
        entry, content = client.get(found[0]), client.content(found[0])

    assert (entry.state, content) == ("partial", b"sent\nnot sent yet\n")


@pytest.mark.parametrize("calls", [["write", "more"], ["flush"]], ids=lambda calls: calls[0])
def test_a_capture_says_that_its_event_loop_has_ended_and_can_still_be_completed(
    service: ServiceProcess, calls: list[str]
) -> None:
    async def began() -> LiveCapture:
        capture = await Client(service.url).live().__aenter__()
        await capture.write("one\n")
        return capture

    async def ended(capture: LiveCapture) -> wire.Entry | None:
        with pytest.raises(RuntimeError, match="the event loop of this live capture has ended"):
            await getattr(capture, calls[0])(*calls[1:])
        return await capture.complete()

    entry = asyncio.run(ended(asyncio.run(began())))

    assert entry is not None
    assert (entry.state, entry.size) == ("complete", 4)


@pytest.mark.parametrize("call", ["write", "flush", "complete", "abort", "aclose"])
async def test_a_capture_is_of_no_use_to_another_event_loop(service: ServiceProcess, call: str) -> None:
    async def used(capture: LiveCapture) -> None:
        with pytest.raises(RuntimeError, match="in use by another event loop"):
            await getattr(capture, call)(*["more"] * (call == "write"))

    async with Client(service.url) as client, client.live() as capture:
        await capture.write("one\n")
        await asyncio.to_thread(asyncio.run, used(capture))
    entry = capture.entry

    assert entry is not None
    assert (entry.state, entry.size) == ("complete", 4)


LEFT_OPEN = """
import sys, threading
from overspill import Spool, SyncClient

client = SyncClient(sys.argv[1], retries=0)
out = client.live(patience=0.5, spool=Spool(sys.argv[2]) if sys.argv[2:] else None)
out.__enter__()
out.write("before the end\\n")
main = threading.main_thread()
threading.Thread(target=lambda: (main.join(), out.write("a thread goes on\\n"))).start()
print(out.id)
"""
WRITTEN = "before the end\na thread goes on\n"


def test_a_capture_keeps_the_client_that_nothing_else_refers_to(service: ServiceProcess) -> None:
    capture = SyncClient(service.url).live()
    gc.collect()
    with capture as out:
        out.write("one\n")

    assert capture.entry is not None
    assert (capture.entry.state, capture.entry.size) == ("complete", 4)


@pytest.mark.parametrize("others", [0, 1])
def test_a_capture_that_is_left_open_ends_with_its_client_and_has_all(
    service: ServiceProcess, others: int
) -> None:
    with ExitStack() as stack:
        for _ in range(others):  # which keep the loop thread
            stack.enter_context(SyncClient(service.url)).usage()
        client = SyncClient(service.url)
        with client.live() as out:
            out.write("before the end\n")
            client.close()
            with pytest.raises(ValueError, match="has ended"):
                out.write("too late\n")

    assert out.entry is not None
    assert (out.entry.state, out.entry.size, out.entry.status) == ("partial", 15, "its client was closed")


@pytest.mark.parametrize("use", ["flush", "complete", "abort"])
def test_what_uses_a_capture_whose_client_is_closed_says_so(service: ServiceProcess, use: str) -> None:
    with SyncClient(service.url) as client, client.live() as out:
        client.close()
        with pytest.raises(ClientClosed, match="its client was closed"):
            getattr(out, use)()


def test_closing_a_client_in_the_loop_thread_is_refused_while_a_capture_is_open(
    service: ServiceProcess,
) -> None:
    async def close(_: object) -> None:
        client.close()

    with SyncClient(service.url) as client, client.live() as out:
        out.write("one\n")
        closing = client.begin(close)
        wait_blocking(closing)
        with pytest.raises(RuntimeError, match="inside its own event loop"):
            closing.result()
        out.write("two\n")

    assert out.entry is not None
    assert (out.entry.state, out.entry.size) == ("complete", 8)


def test_a_client_can_be_closed_while_other_threads_begin_captures() -> None:
    with SyncClient(NOWHERE) as other, SyncClient(NOWHERE) as client:
        begun = [client.live(), *(other.live() for _ in range(1_000))]
        waiting = iter(begun)

        def begin_one(*_: object) -> None:
            """Do what a thread may do between any two steps of the one that closes."""
            if (capture := next(waiting, None)) is not None:
                sync_capture._end_with_process(capture)

        begin_one()
        sys.setprofile(begin_one)
        try:
            client.close()
        finally:
            sys.setprofile(None)


def test_a_capture_that_is_left_open_ends_with_its_process_and_has_all(service: ServiceProcess) -> None:
    done = run_code(LEFT_OPEN, service.url)
    with SyncClient(service.url) as client:
        entry, content = client.get(done.stdout.strip()), client.content(done.stdout.strip())

    assert (entry.state, entry.status, content) == ("partial", "its process ended", WRITTEN.encode())
    assert done.stderr == ""


def test_a_capture_that_is_left_open_without_a_service_goes_to_the_spool_with_its_process(
    tmp_path: Path,
) -> None:
    done = run_code(LEFT_OPEN, NOWHERE, tmp_path)
    [entry] = Spool(tmp_path).partition(NOWHERE, "").entries()

    assert (entry.id, entry.size) == (done.stdout.strip(), len(WRITTEN))


def test_what_a_capture_loses_that_is_left_open_is_said_in_one_line(own_service: ServiceProcess) -> None:
    killed = f"import os, signal; os.kill({own_service.pid}, signal.SIGKILL)"
    done = run_code(LEFT_OPEN + killed, own_service.url)
    own_service.kill()

    handle = done.stdout.strip()
    assert done.stderr == f"the end of the live capture {handle} is not stored: its process ended first\n"


async def test_status_and_exit_code_are_kept(service: ServiceProcess) -> None:
    async with Client(service.url) as client, client.live() as out:
        await out.write("no\n")
        entry = await out.complete(status="exit 3", exit_code=3)

    assert entry is not None
    assert (entry.status, entry.labels["overspill.exit_code"]) == ("exit 3", "3")


async def test_small_writes_go_together(service: ServiceProcess) -> None:
    random_ = random.Random(3)
    data = random_.randbytes(3_000_000)
    async with Client(service.url) as client:
        async with client.live(content_type="application/octet-stream") as out:
            at = 0
            while at < len(data):
                size = random_.randint(1, 4096)
                await out.write(data[at : at + size])
                at += size

        assert await client.content(out.id) == data


def test_synchronous_code_and_any_of_its_threads_can_write(service: ServiceProcess) -> None:
    with SyncClient(service.url) as client:
        with client.live(tool="threads") as out:
            threads = [
                threading.Thread(target=lambda n=n: [out.write(f"{n}\n") for _ in range(500)])
                for n in range(4)
            ]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
            print("the end", file=out.text_file())

        lines = client.content(out.id).decode().splitlines()
        assert sorted(lines) == sorted([*"0123" * 500, "the end"])
        assert lines[-1] == "the end"


def test_secrets_never_leave_this_machine(service: ServiceProcess) -> None:
    token = "ghp_" + "aB3" * 12
    with SyncClient(service.url) as client, client.live(redactor=Redactor()) as out:
        for character in f"the token {token} is here\n":
            out.write(character)
            out.flush() if character == " " else None
        entry = out.complete()

        assert entry is not None
        assert client.content(out.id) == b"the token [REDACTED github-token] is here\n"


async def test_a_capture_that_was_deleted_meanwhile_ends_its_producer(service: ServiceProcess) -> None:
    async with Client(service.url) as client:
        out = client.live()
        await out.begin()
        await out.write("one\n")
        await out.flush()
        await client.delete(out.id)
        await out.write("two\n")
        with pytest.raises((NotLive, Absent)):
            await out.flush()
        await out.aclose()


def test_a_service_that_is_restarted_loses_nothing(own_service: ServiceProcess) -> None:
    with SyncClient(own_service.url) as client:
        with client.live() as out:
            for number in range(2_000):
                out.write(f"line {number}\n")
                if number in (500, 1_500):
                    out.flush()
                    own_service.kill()
                    own_service.start()

        assert client.content(out.id).decode() == LINES
