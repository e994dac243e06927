"""Many outputs at once in one process: none is lost, and they share threads, connections and turns."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from overspill import Guard, Policy, Spool, SyncClient
from overspill.delivery import slots
from overspill.wire import Outcome

from tests.waiting import until

if TYPE_CHECKING:
    from overspill.guard.guarded import Guarded

    from tests.servers.overspill import ServiceProcess

MANY: Final = 90
"""Several times as many as have slots at once."""
TEXT: Final = "a line of an output that is too long for a conversation\n" * 160
LIMIT: Final = 5_000
"""Bytes above which an output spills in these tests: it is their number that counts here, not their size."""
NOWHERE: Final = "http://127.0.0.1:1"
MAX_THREADS: Final = 21
"""The loop has one, pure work three, blocking work eight, one of which starts seven, background two."""

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="this system lists no threads")


def waiting_for(seconds: float = 2.0) -> Policy:
    """The policy of these tests, with so many seconds that an agent waits for the service."""
    return Policy(max_bytes=LIMIT, preview_bytes=500, wait=seconds)


def texts(count: int = MANY) -> list[str]:
    return [f"output {number}\n{TEXT}" for number in range(count)]


class Watch:
    """The most threads and sockets that this process had in the block, beyond those before it.

    The system lists a thread for a moment after it was joined, beside the one that follows it. So threads
    count if two looks in a row see as many.
    """

    def __init__(self) -> None:
        self.threads = self.sockets = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Watch:  # noqa: PYI034
        self._before = _threads(), _sockets()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _look(self) -> None:
        last = 0
        while not self._is_over.wait(0.02):
            now = _threads() - self._before[0] - 1
            self.threads, last = max(self.threads, min(now, last)), now
            self.sockets = max(self.sockets, _sockets() - self._before[1])


def _threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def _sockets() -> int:
    return sum(_target(name).startswith("socket:") for name in os.listdir("/proc/self/fd"))  # noqa: PTH208


def _target(name: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{name}")  # noqa: PTH115
    except FileNotFoundError:  # that of the listing itself
        return ""


def outcomes(guarded: list[Guarded]) -> Counter[Outcome]:
    return Counter(each.outcome for each in guarded)


async def all_processed(guard: Guard, policy: Policy | None = None) -> list[Guarded]:
    return await asyncio.gather(
        *(
            guard.process(text, tool="t", call_id=f"c{number}", policy=policy)
            for number, text in enumerate(texts())
        )
    )


async def test_what_spills_at_once_is_all_stored_with_a_few_threads_and_connections(
    service: ServiceProcess, tmp_path: Path
) -> None:
    with SyncClient(service.url, session="fleet-up") as client:
        with Guard(client, waiting_for(60), spool=Spool(tmp_path)) as guard, Watch() as watch:
            guarded = await all_processed(guard)
        stored = sum(1 for _ in client.iterate(session="fleet-up"))

    assert (outcomes(guarded), stored) == ({Outcome.CAPTURED: MANY}, MANY)
    assert watch.threads <= MAX_THREADS
    assert (
        watch.sockets <= slots.MAX_OUTPUTS + 6
    )  # and those of event loops and of what is sent in the background


@pytest.mark.parametrize("state", ["down", "hanging"])
async def test_where_the_service_takes_nothing_all_is_spooled(
    state: str, hanging: str, tmp_path: Path
) -> None:
    url = hanging if state == "hanging" else NOWHERE
    spool = Spool(tmp_path / "spool")
    with (
        SyncClient(url, retries=0) as client,
        Guard(client, waiting_for(0.3), spool=spool) as guard,
        Watch() as watch,
    ):
        guarded = await all_processed(guard)
    waiting = {entry.id for entry in spool.partition(url, "").entries()}

    assert outcomes(guarded) == {Outcome.SPOOLED: MANY}
    assert waiting == {each.capture for each in guarded}
    assert watch.threads <= MAX_THREADS


@pytest.mark.parametrize("state", ["up", "down"])
def test_threads_without_an_event_loop_lose_nothing_either(
    state: str, service: ServiceProcess, tmp_path: Path
) -> None:
    guarded: list[Guarded] = []

    def work(first: int) -> None:
        guarded.extend(
            guard.process_sync(f"output {number}\n{TEXT}", tool="t", call_id=f"c{number}")
            for number in range(first, MANY, 30)
        )

    with (
        SyncClient(service.url if state == "up" else NOWHERE, session="fleet-threads", retries=0) as client,
        Guard(client, waiting_for(60), spool=Spool(tmp_path)) as guard,
        Watch() as watch,
    ):
        threads = [threading.Thread(target=work, args=[first]) for first in range(30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert outcomes(guarded) == {Outcome.CAPTURED if state == "up" else Outcome.SPOOLED: MANY}
    assert watch.threads <= MAX_THREADS + len(threads)


async def test_threads_end_when_there_is_nothing_left_to_do(tmp_path: Path) -> None:
    before = _threads()
    with (
        SyncClient(NOWHERE, retries=0) as client,
        Guard(client, waiting_for(), spool=Spool(tmp_path)) as guard,
    ):
        await all_processed(guard)

    assert await asyncio.to_thread(until, lambda: _threads() <= before + 1)  # the one that looks


def test_clients_with_keys_of_their_own_share_threads_and_connections(tmp_path: Path) -> None:
    keys = [f"key-{number}-of-a-tenant-of-this-service" for number in range(60)]
    listening = socket.create_server(("127.0.0.1", 0), backlog=500)
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    clients = [SyncClient(url, key, retries=0) for key in keys]
    guards = [Guard(client, waiting_for(0.3), spool=Spool(tmp_path / "spool")) for client in clients]

    async def all_guards() -> list[Guarded]:
        return await asyncio.gather(*(guard.process(TEXT, tool="t") for guard in guards))

    with listening, Watch() as watch:
        guarded = asyncio.run(all_guards())
        for guard in guards:
            guard.close()
        for client in clients:
            client.close()

    assert outcomes(guarded) == {Outcome.SPOOLED: len(keys)}
    assert watch.threads <= MAX_THREADS
    assert watch.sockets <= 40


async def test_a_small_output_of_another_session_does_not_wait_for_all_others(
    service: ServiceProcess, tmp_path: Path
) -> None:
    done: list[str] = []

    async def one(session: str, text: str) -> None:
        guarded = await guard.process(text, tool="t", session=session)
        assert guarded.outcome is Outcome.CAPTURED
        done.append(session)

    with (
        SyncClient(service.url) as client,
        Guard(client, waiting_for(60), spool=Spool(tmp_path)) as guard,
    ):
        greedy = [asyncio.create_task(one("fleet-greedy", text)) for text in texts()]
        assert await asyncio.to_thread(until, lambda: bool(done))
        modest = asyncio.create_task(one("fleet-modest", TEXT[: LIMIT + 1]))
        await asyncio.gather(modest, *greedy)

    assert done.index("fleet-modest") < MANY // 2


async def test_a_cancelled_task_leaves_the_queue(hanging: str, tmp_path: Path) -> None:
    with (
        SyncClient(hanging, retries=0) as client,
        Guard(client, waiting_for(3600), spool=Spool(tmp_path)) as guard,
    ):
        tasks = [asyncio.create_task(guard.process(text, tool="t")) for text in texts(100)]
        await asyncio.sleep(0.5)
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        calls = guard._storage.loop.calls
        assert calls is not None

        assert {type(each) for each in results} == {asyncio.CancelledError}
        assert await asyncio.to_thread(until, lambda: not calls.ongoing.tasks and not calls.ongoing.held)


async def test_that_too_much_waits_is_said_and_nothing_is_lost(
    hanging: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OVERSPILL_WAITING_BYTES", "500KB")
    with (
        SyncClient(hanging, retries=0) as client,
        Guard(client, waiting_for(2), spool=Spool(tmp_path)) as guard,
    ):
        guarded = await all_processed(guard)
        overfull = guard._storage.slots.overfull

    said = [each for each in guarded if each.reason and "of outputs wait already" in each.reason]
    assert outcomes(guarded) == {Outcome.SPOOLED: MANY}
    assert len(said) == overfull > 0
    assert sum("more outputs come than the service takes" in line for line in caplog.messages) <= 1


async def test_without_a_spool_what_waits_for_its_turn_is_stored_all_the_same(
    service: ServiceProcess,
) -> None:
    policy = waiting_for(60.0)
    with (
        SyncClient(service.url, session="fleet-deadline") as client,
        Guard(client, policy, spool=False) as guard,
    ):
        guarded = await all_processed(guard)

    assert outcomes(guarded) == {Outcome.CAPTURED: MANY}


async def test_a_guard_that_is_closed_meanwhile_loses_nothing(
    service: ServiceProcess, tmp_path: Path
) -> None:
    with SyncClient(service.url, session="fleet-closed") as client:
        guard = Guard(client, waiting_for(60), spool=Spool(tmp_path))
        waiting = asyncio.create_task(all_processed(guard))
        await asyncio.sleep(0.2)
        await guard.aclose()
        guarded = await waiting

    assert not outcomes(guarded)[Outcome.TRUNCATED]


async def test_a_client_that_is_closed_meanwhile_leaves_the_outputs_to_the_spool(
    hanging: str, tmp_path: Path
) -> None:
    client = SyncClient(hanging, retries=0)
    with Guard(client, waiting_for(60), spool=Spool(tmp_path)) as guard:
        waiting = asyncio.create_task(all_processed(guard))
        await asyncio.sleep(0.5)
        client.close()
        guarded = await waiting

    assert outcomes(guarded) == {Outcome.SPOOLED: MANY}
