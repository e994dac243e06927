"""Accepted bytes of live captures in a process: counted while somebody reads them, and not held after."""

from __future__ import annotations

import asyncio
import gzip
import sys
from collections.abc import Callable
from typing import Any

import pytest
from overspill import wire
from overspill.wire import Code, Header
from overspill_service.live import views
from overspill_service.live.buffer_memory import COPIES
from overspill_service.store_format.frames import compress

from tests.contracts.entries import capture_id
from tests.faults.traffic import until
from tests.web.conftest import Api, problem
from tests.web.live_producer import CAPTURE, Producer
from tests.web.test_follow import following, text_until

PIECE = b"a line like any other\n" * 20_000


@pytest.fixture
async def producer(start_api: Callable[..., Any]) -> Producer:
    """One whose bytes stay in the catalog."""
    api: Api = await start_api(live_flush_seconds=600.0, memory=64 * 2**20)
    made = Producer(api)
    await made.begin()
    for _ in range(3):
        await made.append(PIECE)
    return made


def path(what: str) -> str:
    return f"/v1/captures/{CAPTURE}{what}"


READS = ["", "/head", "/tail", "/grep?pattern=other", "/content", "/wait?timeout=0", "/summary"]


@pytest.mark.parametrize("what", READS)
async def test_who_reads_what_is_accepted_holds_memory_for_it(
    producer: Producer, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    memory, held = producer.api.service.archive.memory, []
    compressed = views._compressed

    def noted(data: bytes) -> Any:
        held.append(memory.buffers.held // COPIES)
        return compressed(data)

    monkeypatch.setattr(views, "_compressed", noted)
    answer = await producer.api.get(path(what))

    assert answer.status == 200
    assert held
    assert min(held) >= 3 * len(PIECE)
    assert memory.free == memory.size


async def test_who_finds_no_memory_for_it_is_told_to_come_again(
    producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overspill_service.resources.memory_budget.QUEUE_SECONDS", 0.05)
    memory = producer.api.service.archive.memory
    async with memory.buffers.shares("another", memory.buffers.largest_grant):
        refused = await producer.api.get(path("/tail"))

        assert (refused.status, (await problem(refused)).code) == (503, Code.OVERLOADED)
        assert refused.headers["Retry-After"]
    assert (await producer.api.get(path("/tail"))).status == 200


async def test_who_waits_or_follows_holds_nothing_of_it(producer: Producer) -> None:
    api, memory = producer.api, producer.api.service.archive.memory
    waiting = asyncio.create_task(api.get(path("/wait?timeout=600&pattern=never")))
    async with following(api, path("/follow?offset=0")) as events:
        await text_until(events, 3 * len(PIECE))
        await until(lambda: _is(api.service.places.followers.free == api.service.places.followers.total - 2))
        await until(lambda: _is(memory.free == memory.size))
        (remembered,) = api.service.live_views._remembered.values()
        holders = sys.getrefcount(remembered.view)

        assert holders <= 2  # of what remembers it, and of the question
        await producer.append(b"never\n")
        assert (await (await waiting).json())["reason"] == "pattern"
    assert memory.free == memory.size


async def test_the_note_of_a_first_read_holds_nothing_of_what_is_accepted(producer: Producer) -> None:
    service = producer.api.service
    await producer.api.get(path("/tail"))
    ((noted, _, _),) = service.metrics._reads._waiting.values()

    assert noted == await service.archive.catalog.get("default", CAPTURE)


async def test_a_wait_in_vain_tells_what_came_before(producer: Producer) -> None:
    answer = await (await producer.api.get(path("/wait?timeout=0.01&pattern=never"))).json()

    assert (answer["reason"], answer["total_bytes"]) == ("timeout", 3 * len(PIECE))


@pytest.mark.parametrize("offset", [0, 3 * len(PIECE)])
async def test_an_end_holds_memory_for_it_and_a_wrong_one_needs_none(
    producer: Producer, monkeypatch: pytest.MonkeyPatch, offset: int
) -> None:
    monkeypatch.setattr("overspill_service.resources.memory_budget.QUEUE_SECONDS", 0.05)
    api, memory = producer.api, producer.api.service.archive.memory
    headers = {Header.PRODUCER: "me", "Content-Type": "application/json"}
    async with memory.buffers.shares("another", memory.buffers.largest_grant):
        body = b'{"offset": %d}' % offset
        refused = await api.send("POST", path("/complete"), data=body, headers=headers)

    assert refused.status == (503 if offset else 409)
    ended = await api.send(
        "POST", path("/complete"), data=b'{"offset": %d}' % (3 * len(PIECE)), headers=headers
    )
    assert ended.status == 200
    assert memory.free == memory.size


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
async def test_an_append_that_may_decode_to_much_needs_memory_for_that(
    api: Api, monkeypatch: pytest.MonkeyPatch, coding: str
) -> None:
    monkeypatch.setattr("overspill_service.resources.memory_budget.QUEUE_SECONDS", 0.05)
    producer, memory = Producer(api), api.service.archive.memory
    await producer.begin()
    bodies = {"gzip": gzip.compress(bytes(wire.MAX_APPEND)), "zstd": compress(b"a few lines\n") * 2}
    headers = {Header.PRODUCER: "me", Header.UPLOAD_OFFSET: "0", "Content-Encoding": coding}
    async with memory.large.shares("another", memory.large.largest_grant):
        refused = await api.send("POST", path("/append"), data=bodies[coding], headers=headers)

        assert (refused.status, (await problem(refused)).code) == (503, Code.OVERLOADED)
        small = headers | {"Content-Encoding": "zstd"}
        taken = await api.send("POST", path("/append"), data=compress(b"a line\n"), headers=small)
        assert taken.status == 200
    assert memory.free == memory.size


async def test_what_is_remembered_of_many_short_captures_is_bounded_too(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "CACHED_BYTES", 16 * 1024)
    for number in range(20):
        made = Producer(api, capture_id(number))
        await made.begin()
        assert (await made.entry()).durable == 0

    assert 0 < len(api.service.live_views._remembered) < 20


async def test_a_capture_that_is_read_after_its_end_is_remembered_no_more(producer: Producer) -> None:
    await producer.entry()
    assert producer.api.service.live_views._remembered
    await producer.complete()
    await producer.entry()

    assert not producer.api.service.live_views._remembered


async def _is(found: object) -> bool:
    return bool(found)
