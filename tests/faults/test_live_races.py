"""Two replicas that work on one live capture at once, in a store that lets a put replace an object."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from overspill import wire
from overspill_service.archive.recovery.rebuild import rebuild_if_due
from overspill_service.catalog.records import Entry
from overspill_service.errors import StoreUnavailable
from overspill_service.live.flusher import SEGMENT_BYTES

from tests.faults.live_replicas import Replica, Replicas, SqliteCopies
from tests.faults.test_live_faults import begun, content
from tests.faults.traffic import log_lines
from tests.web.live_producer import CAPTURE, Producer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

SMALL = log_lines(500_000)
LARGE = log_lines(SEGMENT_BYTES, seed=1)[:-1] + b"\n"


@pytest.fixture
async def replicas(tmp_path: Path) -> AsyncIterator[Replicas]:
    made = Replicas(tmp_path, SqliteCopies(tmp_path))
    await made.start()
    for each in made.both:
        let_puts_replace(each)
    yield made
    await made.stop()


def let_puts_replace(replica: Replica) -> None:
    store = replica.service.archive.store
    put = store.put

    async def replace(key: str, pieces: Sequence[bytes]) -> bool:
        await store.delete([key])
        return await put(key, pieces)

    store.put = replace  # type: ignore[method-assign]


class HeldPut:
    """A replica's next put: it has begun once `begun` is set, and reaches the store after `land` is."""

    def __init__(self, replica: Replica) -> None:
        self.begun, self.land = asyncio.Event(), asyncio.Event()
        self._store = replica.service.archive.store
        self._put = self._store.put
        self._store.put = self._late  # type: ignore[method-assign]

    async def _late(self, key: str, pieces: Sequence[bytes]) -> bool:
        self._store.put = self._put  # type: ignore[method-assign]
        self.begun.set()
        await self.land.wait()
        return await self._put(key, pieces)


@asynccontextmanager
async def append_under_way(replica: Replica, data: bytes, status: int) -> AsyncIterator[Producer]:
    """An append whose segment reaches the store only at the end of the block, long after its lease."""
    held, sender = HeldPut(replica), Producer(replica.api)
    sending = asyncio.create_task(sender.append(data, expected=status))
    await held.begun.wait()
    catalog: Any = replica.service.archive.catalog
    entry = await catalog.get("default", CAPTURE)
    await catalog.release(f"live:{entry.upload}", replica.service.flusher._holder)
    yield sender
    held.land.set()
    await sending


async def test_a_segment_that_lands_late_replaces_none_that_others_have_stored(replicas: Replicas) -> None:
    first, second = replicas.both
    producer = await begun(second)
    async with append_under_way(first, LARGE, 200):
        await producer.append(LARGE[:500_000])
        await second.flush(CAPTURE)
        durable = (await producer.append(b""))["durable"]
        await producer.append(LARGE[500_000:])
    ended = await producer.complete()
    stored = await content(second.api, producer.path)
    await replicas.disturb(replicas.catalog.lose)
    await rebuild_if_due(replicas.both[0].service.archive, "test")

    assert durable >= 500_000 - 100
    assert ended["size"] == len(LARGE)
    assert stored == LARGE
    assert await content(replicas.both[0].api, producer.path) == LARGE


async def test_a_segment_that_lands_late_is_found_by_a_catalog_that_was_lost(replicas: Replicas) -> None:
    first, second = replicas.both
    producer = await begun(second)
    with first.dying("before replace"):
        async with append_under_way(first, LARGE, 409):
            await producer.append(LARGE[:500_000])
            await second.flush(CAPTURE)
    await replicas.disturb(replicas.catalog.lose)
    await rebuild_if_due(replicas.both[0].service.archive, "test")
    producer.api = replicas.both[0].api
    refused = await producer.append(LARGE[500_000:], expected=409)
    producer.offset = refused["offset"]
    ended = await producer.complete()

    assert refused["offset"] == len(LARGE)
    assert ended["size"] == len(LARGE)
    assert await content(producer.api, producer.path) == LARGE


async def test_an_append_that_is_under_way_at_the_end_adds_nothing_to_it(replicas: Replicas) -> None:
    first, second = replicas.both
    producer = await begun(second)
    async with append_under_way(first, LARGE, 409):
        ended = await producer.complete(state="partial", status="gone")
    entry = await producer.entry()
    await replicas.disturb(replicas.catalog.lose)
    await rebuild_if_due(replicas.both[0].service.archive, "test")
    producer.api = replicas.both[0].api

    assert (ended["state"], ended["size"]) == ("partial", 0)
    assert entry.state is wire.State.PARTIAL
    assert (await producer.entry()).sha256 == entry.sha256
    assert await content(producer.api, producer.path) == b""


async def test_a_segment_of_an_append_without_an_answer_adds_nothing_to_an_end(replicas: Replicas) -> None:
    first, second = replicas.both
    producer = await begun(first)
    await producer.append(SMALL)
    with first.dying("after put"):
        await lost_append(first, len(SMALL))
    producer.api = second.api
    ended = await producer.complete()

    assert ended["size"] == len(SMALL)
    assert await content(second.api, producer.path) == SMALL


async def lost_append(replica: Replica, offset: int) -> None:
    """An append whose segment is stored, and no entry has it. The catalog does not get its bytes either."""
    catalog: Any = replica.service.archive.catalog

    async def fail(*_: Any, **__: Any) -> Any:
        raise StoreUnavailable("the process dies here")

    catalog.append_live = fail
    sender = Producer(replica.api)
    sender.offset = offset
    await sender.append(LARGE, expected=503)
    await replica.settle()
    del catalog.append_live


async def test_a_segment_that_nobody_needs_is_gone_at_once(replicas: Replicas) -> None:
    first, second = replicas.both
    producer = await begun(second)
    async with append_under_way(first, LARGE, 409):
        await producer.append(SMALL)
        await second.flush(CAPTURE)
    keys = [each.key async for each in second.service.archive.store.list("v1/")]
    entry = await second.service.archive.catalog.get("default", CAPTURE)

    assert isinstance(entry, Entry)
    assert keys == entry.keys


async def test_a_segment_that_was_left_makes_no_ended_capture_live_again(replicas: Replicas) -> None:
    first, second = replicas.both
    producer = await begun(first)
    with first.dying("after put"):
        await lost_append(first, 0)
    producer.api = second.api
    for number in range(4):
        await producer.append(b"line %d\n" % number)
        await second.flush(CAPTURE)
    ended = await producer.complete(state="partial")
    await second.flush(CAPTURE)  # into one object, under another upload
    await replicas.disturb(replicas.catalog.lose)
    await rebuild_if_due(replicas.both[0].service.archive, "test")
    producer.api = replicas.both[0].api
    entry = await producer.entry()

    assert (entry.state, entry.size, entry.sha256) == (wire.State.PARTIAL, 28, ended["sha256"])
    assert await content(producer.api, producer.path) == b"line 0\nline 1\nline 2\nline 3\n"


async def test_segments_of_which_the_first_is_missing_are_no_capture(replicas: Replicas) -> None:
    first, second = replicas.both
    producer = await begun(second)
    await producer.append(SMALL)
    await second.flush(CAPTURE)
    with first.dying("after put"):
        await lost_append(first, len(SMALL))
    entry = await second.service.archive.catalog.get("default", CAPTURE)
    assert isinstance(entry, Entry)
    await producer.append(LARGE[:500_000])
    await second.flush(CAPTURE)
    await second.service.archive.store.delete(entry.keys)
    await replicas.disturb(replicas.catalog.lose)
    await rebuild_if_due(replicas.both[0].service.archive, "test")
    response = await replicas.both[0].api.get(producer.path)

    assert response.status == 404
