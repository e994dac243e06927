"""A failure of one output, one guard or the loop thread itself costs the other outputs nothing."""

from __future__ import annotations

import asyncio
import errno
import gc
import threading
import warnings
from typing import TYPE_CHECKING

import pytest
from overspill import Guard, Policy, Spool, SyncClient, Workspace
from overspill.delivery import slots, state_log
from overspill.execution import loop_thread
from overspill.spools import own_directory
from overspill.wire import Outcome

from tests.client.shell import printed_by
from tests.client.spooling import spilled
from tests.client.test_fleet import NOWHERE, outcomes
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from overspill.guard.guarded import Guarded

    from tests.servers.overspill import ServiceProcess

THREADS = 30
TEXT = "a line of an output that is too long for a conversation\n" * 1_200


def in_threads(guard: Guard, count: int = THREADS) -> tuple[list[Guarded], list[BaseException]]:
    """What became of so many outputs, each of a thread of its own, and what was raised."""
    guarded: list[Guarded] = []
    raised: list[BaseException] = []

    def one(number: int) -> None:
        try:
            guarded.append(guard.process_sync(f"output {number}\n{TEXT}", tool="t"))
        except BaseException as error:  # noqa: BLE001  (the test looks at it)
            raised.append(error)

    threads = [threading.Thread(target=one, args=[number]) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return guarded, raised


def test_who_asks_to_end_the_process_does_not_end_the_loop_thread_of_all(
    service: ServiceProcess, tmp_path: Path
) -> None:
    def tokens(text: str) -> int:
        if text.startswith("output 7\n"):
            raise SystemExit(3)
        return len(text) // 4

    with (
        SyncClient(service.url, session="fleet-exit") as client,
        Guard(client, Policy(wait=60, tokenizer=tokens), spool=Spool(tmp_path)) as guard,
    ):
        guarded, raised = in_threads(guard)

    assert [type(each) for each in raised] == [SystemExit]
    assert outcomes(guarded) == {Outcome.CAPTURED: THREADS - 1}


def test_outputs_whose_loop_thread_ends_go_on_with_another(hanging: str, tmp_path: Path) -> None:
    with (
        SyncClient(hanging, retries=0) as client,
        Guard(client, Policy(wait=2), spool=Spool(tmp_path)) as guard,
    ):
        ended: list[threading.Thread] = []

        def end() -> None:
            assert until(
                lambda: (
                    guard._storage.loop.calls is not None and bool(guard._storage.loop.calls.ongoing.tasks)
                )
            )
            thread = guard._storage.loop.calls.thread  # type: ignore[union-attr]
            thread.loop.call_soon_threadsafe(thread._stop.set)
            ended.append(thread._thread)

        ending = threading.Thread(target=end)
        ending.start()
        guarded, raised = in_threads(guard)
        ending.join()

    assert not ended[0].is_alive()
    assert not raised
    assert outcomes(guarded) == {Outcome.SPOOLED: THREADS}


def test_an_output_of_the_loop_thread_itself_does_not_wait_for_that_thread(
    service: ServiceProcess, tmp_path: Path
) -> None:
    async def inside() -> Outcome:
        return guard.process_sync(TEXT, tool="log handler").outcome

    with SyncClient(service.url) as client, Guard(client, spool=Spool(tmp_path)) as guard:
        guard.process_sync(TEXT, tool="t")
        calls = guard._storage.loop.calls
        assert calls is not None

        assert calls.run(inside()) is Outcome.SPOOLED


@pytest.mark.parametrize("is_kept", [True, False])
async def test_without_descriptors_for_an_event_loop_an_output_is_kept_here_or_cut(
    is_kept: bool, nowhere: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with SyncClient(nowhere) as client, Guard(client, spool=is_kept and Spool(tmp_path)) as guard:
        # an earlier test may have left a client open, and so the thread
        monkeypatch.setattr("overspill.execution.calls.shared", loop_thread._Shared())
        monkeypatch.setattr(loop_thread, "_new_loop", refuse)
        guarded = [guard.process_sync(TEXT, tool="t"), await guard.process(TEXT, tool="t")]
        monkeypatch.undo()

    assert outcomes(guarded) == {Outcome.SPOOLED if is_kept else Outcome.TRUNCATED: 2}
    assert all("Too many open files" in (each.reason or "") for each in guarded)


async def test_what_is_cancelled_before_it_begins_says_nothing(hanging: str, tmp_path: Path) -> None:
    async def never() -> None:
        raise AssertionError

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with SyncClient(hanging, retries=0) as client, Guard(client, spool=Spool(tmp_path)) as guard:
            tasks = [asyncio.create_task(guard.process(TEXT, tool="t")) for _ in range(50)]
            for turns in range(8):
                await asyncio.sleep(0)
                for task in tasks[turns::8]:
                    task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            calls = guard._storage.loop.join()
            for _ in range(50):
                calls.submit(never()).cancel()
            assert await asyncio.to_thread(until, lambda: not calls.ongoing.tasks)
        gc.collect()

    assert not [each for each in said if "never awaited" in str(each.message)]


async def test_many_guards_that_are_closed_at_once_all_upload_what_waits(
    service: ServiceProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERSPILL_EXIT_SECONDS", "60")
    spool = Spool(tmp_path)
    clients = [SyncClient(service.url, f"key-{number}-of-a-fleet-that-closes") for number in range(24)]
    guards = [Guard(client, spool=spool) for client in clients]
    parts = [spool.partition(client.address.url, client.address.key) for client in clients]
    for number, part in enumerate(parts):
        part.keep(spilled(TEXT, f"closing {number}"), "the service is down")

    async with asyncio.timeout(50):
        await asyncio.gather(*(guard.aclose() for guard in guards))
    for client in clients:
        client.close()

    assert sum(len(part.entries()) for part in parts) == 0


@pytest.mark.parametrize("state", ["up", "down"])
async def test_keys_and_folders_that_come_and_go_leave_nothing_in_memory(
    state: str, service: ServiceProcess, tmp_path: Path
) -> None:
    url = service.url if state == "up" else NOWHERE

    async def conversation(number: int) -> None:
        (tmp_path / f"workspace {number}").mkdir()
        workspace = Workspace(tmp_path / f"workspace {number}")
        with SyncClient(url, f"key-{number}-that-comes-and-goes", retries=0) as client:
            async with Guard(client, spool=Spool(tmp_path)) as guard, Guard(spool=workspace) as other:
                assert (await guard.process(TEXT, tool="t")).capture
                assert (await other.process(TEXT, tool="t")).outcome is Outcome.SPOOLED

    with SyncClient(service.url) as keeper:  # keeps the loop thread, and what is kept with it
        keeper.ready()
        await asyncio.gather(*(conversation(number) for number in range(20)))

        assert await asyncio.to_thread(until, lambda: not own_directory._own._locks)
        assert not [name for each in slots._of_loops.values() for name in each]
        failing = [folder for folder in state_log._states.failing.get(url, ()) if str(tmp_path) in folder]
        assert state == "down" or not failing


def test_an_interrupt_while_the_loop_thread_starts_leaves_no_thread_behind(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started: list[threading.Thread] = []

    class Interrupted(threading.Thread):
        def start(self) -> None:
            super().start()
            if self.name == "overspill-loop":
                started.append(self)
                raise KeyboardInterrupt

    assert until(lambda: "overspill-loop" not in [each.name for each in threading.enumerate()])
    with SyncClient(NOWHERE) as client, Guard(client, spool=Spool(tmp_path)) as guard:
        monkeypatch.setattr(threading, "Thread", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            guard.process_sync(TEXT, tool="t")
        monkeypatch.undo()

        assert started
        assert until(lambda: not started[0].is_alive())
        assert guard.process_sync(TEXT, tool="t").outcome is Outcome.SPOOLED


SILENT_NAMES = """
import asyncio, socket, sys, threading, time
from overspill import Guard, Policy, Spool, SyncClient

socket.getaddrinfo = lambda *_, **__: threading.Event().wait()
clients = [SyncClient(f"http://host-{number}.example", retries=0) for number in range(12)]
guards = [Guard(client, Policy(wait=0.5), spool=Spool(sys.argv[1])) for client in clients]

async def main():
    return await asyncio.gather(*(guard.process("a long line\\n" * 9_000, tool="t") for guard in guards))

print(*{guarded.outcome for guarded in asyncio.run(main())})
if sys.argv[2] == "closed":
    for user in guards + clients:
        user.close()
    deadline = time.monotonic() + 30
    while (names := {each.name for each in threading.enumerate()} & {"overspill-loop"}) and (
        time.monotonic() < deadline
    ):
        time.sleep(0.01)
    print(*names)
"""


@pytest.mark.parametrize("end", ["closed", "left open"])
def test_a_silent_name_server_holds_up_neither_closing_nor_the_end_of_the_process(
    end: str, tmp_path: Path
) -> None:

    assert printed_by(SILENT_NAMES, tmp_path, end).split() == ["spooled"]
