"""The clock of a machine jumps by an hour while a live capture grows, and is set right again."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from overspill.wire import State

from tests.faults.live_replicas import TIMEOUT
from tests.faults.traffic import until
from tests.web.conftest import Api
from tests.web.live_producer import CAPTURE, Producer

HOUR = 3600.0
JUMPS = [HOUR, -HOUR]


class Machine:
    """One machine with a service, and perhaps with its Redis. `ahead` is by how much its clock is wrong."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self.api: Api

    def clock(self) -> float:
        return time.time() + self.ahead

    async def now(self) -> float:
        return self.clock()

    async def look(self) -> State:
        """Work on the capture as if it were due, and return its state."""
        found = await self.api.service.flusher.start("default", CAPTURE)
        assert found is not None
        return found.state


@pytest.fixture(params=["memory:", "redis_url"])
async def machine(request: pytest.FixtureRequest, start_api: Callable[..., Any]) -> Machine:
    name: str = request.param
    catalog = name if name.endswith(":") else request.getfixturevalue(name)
    made = Machine()
    made.api = await start_api(
        catalog=catalog, clock=made.clock, live_flush_seconds=20.0, live_timeout=TIMEOUT
    )
    made.api.service.flusher.producers.begun -= 2 * HOUR  # it has run for long
    if name == "redis_url":  # it runs on the same machine
        made.api.service.archive.catalog.now = made.now  # type: ignore[method-assign]
    return made


@pytest.fixture
async def producer(machine: Machine) -> Producer:
    made = Producer(machine.api)
    await made.begin()
    return made


@pytest.mark.parametrize("jump", JUMPS)
async def test_no_producer_is_gone_and_no_offset_decreases_because_a_clock_jumps(
    machine: Machine, producer: Producer, jump: float
) -> None:
    answers = [await producer.append(b"one\n")]
    for ahead in (jump, 0.0, jump, 0.0):
        machine.ahead = ahead
        assert await machine.look() is State.LIVE
        answers.append(await producer.append(b""))
        answers.append(await producer.append(b"more\n"))
        assert await machine.look() is State.LIVE
    ended = await producer.complete()

    for offset in ("accepted", "durable"):
        told = [each[offset] for each in answers]
        assert told == sorted(told)
    assert (ended["state"], ended["size"]) == ("complete", 24)


@pytest.mark.parametrize("jump", JUMPS)
async def test_a_silent_producer_has_its_time_by_the_clock_that_was_set(
    machine: Machine, producer: Producer, jump: float
) -> None:
    await producer.append(b"one\n")
    machine.ahead = jump
    await producer.append(b"")
    machine.ahead = 0.0
    assert await machine.look() is State.LIVE
    clock = machine.api.service.archive.clock
    machine.api.service.archive.clock = lambda: clock() + TIMEOUT - 10
    assert await machine.look() is State.LIVE

    machine.api.service.archive.clock = lambda: clock() + TIMEOUT + HOUR + 10
    assert await machine.look() is State.PARTIAL


async def test_what_began_by_a_clock_that_was_late_is_not_ended_when_the_clock_is_set_right(
    machine: Machine,
) -> None:
    await machine.api.service.archive.shared_clock.measure()
    machine.ahead = -HOUR
    producer = Producer(machine.api)
    await producer.begin()
    await producer.append(b"one\n")
    assert await machine.look() is State.LIVE
    machine.ahead = 0.0

    assert [await machine.look() for _ in range(3)] == [State.LIVE] * 3


@pytest.mark.parametrize("jump", JUMPS)
async def test_bytes_are_stored_as_soon_as_ever_after_a_jump(
    machine: Machine, producer: Producer, jump: float
) -> None:
    machine.api.service.flusher.schedule._age = 0.1
    await producer.append(b"one\n")
    machine.ahead = jump
    await machine.api.service.archive.shared_clock.measure()
    await machine.api.service.flusher._start_due()

    async def is_durable() -> bool:
        return (await producer.entry()).durable == 4

    await until(is_durable)


@pytest.mark.parametrize("jump", JUMPS)
async def test_lines_since_an_instant_are_never_too_few_by_the_clock_of_the_machine(
    machine: Machine, producer: Producer, jump: float
) -> None:
    await producer.append(b"one\n")
    machine.ahead = jump
    asked = datetime.fromtimestamp(machine.api.service.archive.clock() - 1, UTC).isoformat()
    await producer.append(b"two\n")
    path = f"{producer.path}/tail?since={asked.replace('+00:00', 'Z')}"
    live = await (await machine.api.get(path)).json()
    await producer.complete()
    ended = await (await machine.api.get(path)).json()

    assert live["content"].endswith("two\n")
    assert ended["content"].endswith("two\n")
