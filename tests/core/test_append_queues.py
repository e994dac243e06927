"""The queue of the appends of one capture."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

import pytest
from overspill_service.live import append_queues
from overspill_service.live.append_queues import AppendQueues

NAME = "default", "cap_" + "a" * 20
OTHER = "default", "cap_" + "b" * 20


async def is_waiting(task: asyncio.Task[None]) -> bool:
    for _ in range(5):
        await asyncio.sleep(0)
    return not task.done()


async def test_an_append_is_stored_after_the_one_before_and_a_third_has_no_body_until_then() -> None:
    queues, held = AppendQueues(), ExitStack()
    first = held.enter_context(queues.join(NAME, 0))
    with queues.join(NAME, 10) as second, queues.join(NAME, 20) as third:
        receiving = asyncio.create_task(second.until_body())
        assert await is_waiting(receiving)
        first.note_body()
        await receiving
        second.note_body()
        storing = asyncio.create_task(second.until_alone())
        last = asyncio.create_task(third.until_body())

        assert await is_waiting(storing)
        assert await is_waiting(last)
        held.close()
        await storing
        await last


@pytest.mark.parametrize("offset", [0, 10])
async def test_an_append_that_is_sent_again_waits_for_none(offset: int) -> None:
    queues = AppendQueues()
    with queues.join(NAME, 10), queues.join(NAME, offset) as again:
        await again.until_body()
        await again.until_alone()

        assert again.before is None


async def test_captures_do_not_wait_for_each_other() -> None:
    queues = AppendQueues()
    with queues.join(NAME, 0), queues.join(OTHER, 10) as other:
        assert other.before is None


async def test_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(append_queues, "WAIT_SECONDS", 0.01)
    queues = AppendQueues()
    with queues.join(NAME, 0), queues.join(NAME, 10) as second:
        await second.until_body()
        await second.until_alone()

        assert second.before is None
    assert not queues._last
