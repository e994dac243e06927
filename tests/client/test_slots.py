"""Slots: who waits gets one in turn, gives up after a time, and leaves no trace when it is cancelled."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NoReturn

import pytest
from overspill import Guard, Policy, Spool, SyncClient
from overspill.delivery import slots, state_log
from overspill.delivery.slots import Slots
from overspill.delivery.storage import Storage
from overspill.execution.submissions import NoLoop
from overspill.execution.waiting import wait_blocking
from overspill.wire import Outcome

from tests.client.spooling import put_sync, spilled
from tests.waiting import PATIENCE, until

if TYPE_CHECKING:
    from collections.abc import Callable
    from logging import LogRecord
    from pathlib import Path

    from overspill.execution.waiting import Reply

TEXT = "a line of an output that is too long for a conversation\n" * 160
POLICY = Policy(max_bytes=5_000, preview_bytes=500, wait=3600)


class Waiter:
    """Notes what becomes of it."""

    def __init__(self, *, wants: bool = True) -> None:
        self.release: Callable[[], None] | None = None
        self.refusals: list[str] = []
        self._wants = wants

    def granted(self, release: Callable[[], None]) -> bool:
        self.release = release if self._wants else None
        return self._wants

    def refused(self, why: str) -> None:
        self.refusals.append(why)


async def test_a_slot_that_is_given_back_goes_to_the_next_who_still_wants_it() -> None:
    one = Slots(1, max_waiting=100)
    waiters = [Waiter(), Waiter(wants=False), Waiter()]
    places = [one.ask(waiter, "flow", 1, is_patient=True) for waiter in waiters]
    assert waiters[0].release is not None
    waiters[0].release()

    assert [place is None for place in places] == [True, False, False]
    assert waiters[2].release is not None
    assert one.waiting == 0
    waiters[2].release()
    assert one.ask(Waiter(), "flow", 1) is None


async def test_who_leaves_the_queue_gets_no_slot() -> None:
    one, first, second = Slots(1, max_waiting=100), Waiter(), Waiter()
    one.ask(first, "flow", 1)
    place = one.ask(second, "flow", 1)
    assert place is not None
    assert first.release is not None
    one.leave(place)
    one.leave(place)
    first.release()

    assert second.release is None
    assert one.waiting == 0


async def test_a_cancelled_coroutine_gives_its_slot_back() -> None:
    one = Slots(1, max_waiting=100)
    release = await one.take("flow", 1)
    waiting = [asyncio.create_task(one.take("flow", 1)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    release()
    waiting[1].cancel()
    third = await waiting[2]

    assert one.waiting == 0
    third()
    await asyncio.wait_for(one.take("flow", 1), PATIENCE)


async def test_those_who_have_waited_too_long_are_refused_and_patient_ones_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slots, "QUEUE_SECONDS", 0.05)
    one, patient = Slots(1, max_waiting=100), Waiter()
    hurried = [Waiter() for _ in range(3)]
    await one.take("flow", 1)
    one.ask(patient, "flow", 1, is_patient=True)
    for waiter in hurried:
        one.ask(waiter, "flow", 1)
    assert await asyncio.to_thread(until, lambda: all(waiter.refusals for waiter in hurried))

    assert {why for waiter in hurried for why in waiter.refusals} == {
        "the outputs before it took more than 0.05 s"
    }
    assert (one.waiting, patient.refusals, patient.release) == (1, [], None)


async def test_an_output_that_has_waited_too_long_goes_to_the_spool(
    hanging: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slots, "QUEUE_SECONDS", 0.3)
    with SyncClient(hanging, retries=0) as client, Guard(client, POLICY, spool=Spool(tmp_path)) as guard:
        tasks = [
            asyncio.create_task(guard.process(f"output {number}\n{TEXT}", tool="t", session=f"s{number}"))
            for number in range(slots.MAX_OUTPUTS + 40)
        ]
        done, sent = await asyncio.wait(tasks, timeout=20, return_when=asyncio.FIRST_COMPLETED)
        while len(done) < 40:
            more, sent = await asyncio.wait(sent, timeout=20, return_when=asyncio.FIRST_COMPLETED)
            done |= more
        for task in sent:
            task.cancel()
        guarded = [task.result() for task in done]
        assert {each.outcome for each in guarded} == {Outcome.SPOOLED}
        assert all("took more than 0.3 s" in str(each.reason) for each in guarded)
        assert guard._storage.slots.overfull == 40


def test_outputs_that_cannot_begin_leave_their_slots_to_others(tmp_path: Path) -> None:
    storage = Storage(None, spool=Spool(tmp_path))

    def fail(_: object) -> NoReturn:
        raise MemoryError

    failed: list[Reply[object]] = [storage.begin("flow", 1, fail) for _ in range(slots.MAX_OUTPUTS + 1)]

    assert all(wait_blocking(reply, 10) for reply in failed)
    with pytest.raises(NoLoop):
        failed[0].result()
    assert put_sync(storage, spilled("an output", "c1")).outcome is Outcome.SPOOLED


async def test_an_output_is_kept_though_the_log_of_missing_slots_fails(
    hanging: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slots, "QUEUE_SECONDS", 0.1)
    monkeypatch.setattr(state_log._states, "_overfull_until", 0.0)  # nothing was said in the last minute

    def refuse(_: LogRecord) -> NoReturn:
        raise ValueError("a filter of the program")

    state_log.log.addFilter(refuse)
    try:
        with SyncClient(hanging, retries=0) as client, Guard(client, POLICY, spool=Spool(tmp_path)) as guard:
            tasks = [
                asyncio.create_task(guard.process(f"output {number}\n{TEXT}", tool="t"))
                for number in range(slots.MAX_OUTPUTS + 2)
            ]
            done, sent = await asyncio.wait(tasks, timeout=20, return_when=asyncio.FIRST_COMPLETED)
            for task in sent:
                task.cancel()
    finally:
        state_log.log.removeFilter(refuse)

    assert {task.result().outcome for task in done} == {Outcome.SPOOLED}
