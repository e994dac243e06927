"""Live captures when the store fails, when steps overlap, and when clients misbehave."""

from __future__ import annotations

import asyncio
import io
import sqlite3
from contextlib import closing, suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from overspill import wire
from overspill.live.ports import Description
from overspill.transfer.client import Client
from overspill.transfer.live_calls import give_up, live_service
from overspill.wire import Header
from overspill_service.errors import StoreUnavailable
from overspill_service.live import flusher as flushing
from overspill_service.live import schedule
from overspill_service.live.ending import Ending

from tests import zstd
from tests.faults.live_replicas import TIMEOUT, Replica, Replicas, SqliteCopies
from tests.faults.test_disk_full import limit_files, resource
from tests.faults.traffic import MIB, advance, noise, until
from tests.waiting import PATIENCE
from tests.web.conftest import Api
from tests.web.live_producer import CAPTURE, Producer
from tests.web.test_follow import following, text_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess


@pytest.fixture
async def api(start_api: Callable[..., Any]) -> Api:
    """A service that stores accepted bytes when a test says so."""
    started: Api = await start_api(live_flush_seconds=3600.0, live_timeout=TIMEOUT)
    return started


@pytest.fixture
async def replicas(tmp_path: Path) -> AsyncIterator[Replicas]:
    made = Replicas(tmp_path, SqliteCopies(tmp_path))
    await made.start()
    yield made
    await made.stop()


def break_store(api: Api) -> Callable[[], None]:
    """Refuse every put, until what this returns is called."""
    store = api.service.archive.store

    async def refuse(key: str, pieces: Sequence[bytes]) -> bool:
        raise StoreUnavailable("down")

    store.put = refuse  # type: ignore[method-assign]
    return lambda: delattr(store, "put")


async def content(api: Api, path: str) -> bytes:
    response = await api.get(f"{path}/content")
    assert response.status == 200, await response.text()
    return await response.read()


async def due(api: Api) -> float:
    """In how many seconds the capture is looked at next."""
    catalog, now = api.service.archive.catalog, api.service.archive.clock()
    for seconds in range(0, 7200, 10):
        if await catalog.due(now + seconds, 9):
            return seconds
    raise AssertionError("never")


async def test_while_the_store_is_away_bytes_are_accepted_up_to_a_bound_and_stored_once_it_is_back(
    api: Api, producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "MAX_UNSTORED", 1000)
    await producer.append(b"before\n")
    await api.service.flusher.start("default", CAPTURE)
    heal = break_store(api)
    async with following(api, f"{producer.path}/follow") as events:
        durable = [(await producer.append(b"a line..\n" * 50))["durable"] for _ in range(2)]
        refused = [await producer.append(b"much too much " * 9, expected=429) for _ in range(3)]
        accepted = (await producer.append(b""))["accepted"]
        seen = await text_until(events, 907)  # readers need no store
    with suppress(StoreUnavailable):
        await api.service.flusher.start("default", CAPTURE)
    is_tried_again = await due(api) <= flushing.RETRY_SECONDS + 10
    heal()
    await api.service.flusher.start("default", CAPTURE)
    stored = (await producer.append(b""))["durable"]
    await producer.append(b"after\n")
    ended = await producer.complete()

    assert durable == [7, 7]
    assert [(each["code"], each["offset"], each["durable"]) for each in refused] == [
        ("buffer_full", 907, 7)
    ] * 3
    assert (accepted, seen) == (907, "before\n" + "a line..\n" * 100)
    assert is_tried_again
    assert (stored, ended["size"]) == (907, 913)
    assert await content(api, producer.path) == seen.encode() + b"after\n"


async def test_bytes_that_come_while_a_segment_is_stored_are_stored_soon_after(
    start_api: Callable[..., Any],
) -> None:
    api: Api = await start_api(live_flush_seconds=20.0, live_timeout=TIMEOUT)
    producer = Producer(api)
    await producer.begin()
    await producer.append(b"one\n")
    store = api.service.archive.store
    put = store.put

    async def slow(key: str, pieces: Sequence[bytes]) -> bool:
        await producer.append(b"two\n")
        return await put(key, pieces)

    store.put = slow  # type: ignore[method-assign]
    await api.service.flusher.start("default", CAPTURE)

    assert (await producer.append(b""))["durable"] == 4
    assert await due(api) <= 30


async def test_a_producer_that_comes_back_at_its_deadline_keeps_its_bytes(
    api: Api, producer: Producer
) -> None:
    await producer.append(b"one\n")
    advance([api], TIMEOUT + 1)
    catalog = api.service.archive.catalog
    end_live = catalog.end_live

    async def late(*args: Any) -> bool:
        del catalog.end_live
        await producer.append(b"two\n")
        return await end_live(*args)

    catalog.end_live = late  # type: ignore[method-assign, assignment]
    await api.service.flusher.start("default", CAPTURE)
    await producer.append(b"three\n")
    ended = await producer.complete()

    assert (ended["state"], ended["size"]) == ("complete", 14)
    assert await content(api, producer.path) == b"one\ntwo\nthree\n"


async def test_a_capture_whose_producer_is_gone_becomes_partial_with_all_accepted_bytes(
    api: Api, producer: Producer
) -> None:
    await producer.append(b"one\nhalf a li")
    advance([api], TIMEOUT + 1)
    await api.service.flusher.start("default", CAPTURE)
    entry = await producer.entry()

    assert (entry.state, entry.size, entry.gap) == (wire.State.PARTIAL, 13, None)
    assert (await producer.append(b"late", expected=409))["code"] == "not_live"


async def ended_by(replica: Replica, producer: Producer) -> wire.Entry:
    """The entry of a capture whose producer says nothing more, once its end was noticed.

    The other replica may rebuild the catalog too, or work on the capture: meanwhile no producer is gone.
    """
    replica.ahead += TIMEOUT + 1
    producer.api = replica.api
    async with asyncio.timeout(PATIENCE):
        while (entry := await producer.entry()).state is wire.State.LIVE:
            await replica.rebuilt()
            await replica.flush(CAPTURE)
    return entry


async def test_a_producer_that_vanishes_after_a_loss_leaves_a_gap_of_what_it_asked_to_append_behind(
    replicas: Replicas,
) -> None:
    producer = await begun(replicas.both[0])
    await producer.append(b"one\n")
    await replicas.both[0].flush(CAPTURE)
    await producer.append(b"two\nthree\n")
    await replicas.disturb(replicas.catalog.lose)
    producer.api = replicas.both[0].api
    refused = await producer.append(b"four\n", expected=409)
    entry = await ended_by(replicas.both[0], producer)
    tail = await (await producer.api.get(f"{producer.path}/tail")).json()
    status = await (await producer.api.get(f"{producer.path}/live")).json()
    waited = await (await producer.api.get(f"{producer.path}/wait")).json()
    async with following(producer.api, f"{producer.path}/follow") as events:
        await text_until(events, 4)
        end = (await anext(events))[2]

    assert refused["offset"] == 4
    assert (entry.state, entry.size, entry.gap) == (wire.State.PARTIAL, 4, wire.Gap(offset=4, size=10))
    assert tail["note"].endswith("10 bytes from byte 4 on were accepted and are lost.")
    assert status["gap"] == waited["gap"] == end["gap"] == {"offset": 4, "size": 10}


async def test_a_producer_that_vanishes_before_an_older_catalog_is_put_back_leaves_a_gap(
    replicas: Replicas,
) -> None:
    producer = await begun(replicas.both[0])
    await producer.append(b"one\n")
    await replicas.disturb(replicas.catalog.copy)
    producer.api = replicas.both[0].api
    await producer.append(b"two\n")
    await replicas.disturb(replicas.catalog.go_back)
    entry = await ended_by(replicas.both[1], producer)

    assert (entry.state, entry.size, entry.gap) == (wire.State.PARTIAL, 4, wire.Gap(offset=4))


async def test_no_producer_is_gone_because_nobody_could_hear_it(replicas: Replicas) -> None:
    producer = await begun(replicas.both[0])
    await producer.append(b"one\n")
    await replicas.disturb(replicas.catalog.copy)
    producer.api = replicas.both[0].api
    replicas.advance(TIMEOUT + 1)
    await replicas.disturb(replicas.catalog.go_back)
    for each in replicas.both:
        await each.flush(CAPTURE)
    producer.api = replicas.both[0].api

    assert (await producer.entry()).state is wire.State.LIVE


async def test_an_end_after_a_segment_that_only_the_store_knows_outlasts_the_catalog(
    replicas: Replicas,
) -> None:
    first, second = replicas.both
    producer = Producer(first.api)
    await producer.begin()
    await producer.append(b"one\n")
    await first.flush_until(CAPTURE, "after put")
    producer.api = second.api
    ended = await producer.complete(status="ok")
    await replicas.disturb(replicas.catalog.lose)
    producer.api = replicas.both[0].api
    entry = await producer.entry()

    assert (entry.state, entry.size, entry.sha256) == (wire.State.COMPLETE, 4, ended["sha256"])


async def test_a_catalog_of_before_a_segment_never_takes_its_place(replicas: Replicas) -> None:
    producer = await begun(replicas.both[0])
    await producer.append(b"one\n")
    await replicas.disturb(replicas.catalog.copy)
    producer.api = replicas.both[0].api
    await producer.append(b"two\n")
    await replicas.both[0].flush(CAPTURE)
    durable = (await producer.append(b""))["durable"]
    await replicas.disturb(replicas.catalog.go_back)
    producer.api = replicas.both[1].api
    for each in replicas.both:
        await each.flush(CAPTURE)
    await producer.append(b"three\n")

    assert durable == 8
    assert (await producer.complete())["size"] == 14
    assert await content(producer.api, producer.path) == b"one\ntwo\nthree\n"


@pytest.mark.parametrize("step", ["before replace", "after replace"])
async def test_a_whole_that_was_taking_the_place_of_a_partial_capture_outlasts_the_catalog(
    replicas: Replicas, step: str
) -> None:
    producer = await begun(replicas.both[0])
    await producer.append(b"one\ntw")
    await producer.complete(state="partial")
    with replicas.both[0].dying(step):
        died = await producer.api.send("PUT", producer.path, data=b"one\ntwo\n")
    await replicas.disturb(replicas.catalog.lose)
    producer.api = replicas.both[0].api
    entry = await producer.entry()
    again = await producer.api.send("PUT", producer.path, data=b"one\ntwo\n")

    assert (died.status, again.status) == (503, 200)
    assert (entry.state, entry.size) == (wire.State.COMPLETE, 8)
    assert await content(producer.api, producer.path) == b"one\ntwo\n"


async def begun(replica: Replica, ttl: int = 3600) -> Producer:
    producer = Producer(replica.api)
    await producer.begin(Overspill_TTL=str(ttl))
    return producer


async def test_a_live_capture_outlives_the_ttl_that_it_was_once_given(replicas: Replicas) -> None:
    producer = await begun(replicas.both[0], ttl=7200)
    await producer.append(b"one\n")
    for ttl in (3600, 3000):
        changed = await producer.api.send("PATCH", producer.path, data=b'{"ttl": %d}' % ttl)
        assert changed.status == 200, await changed.text()
    replicas.advance(2000)
    producer.api = replicas.both[0].api
    await producer.append(b"two\n")
    await replicas.both[0].flush(CAPTURE)
    replicas.advance(2000)
    await replicas.disturb(replicas.catalog.lose)
    producer.api = replicas.both[0].api

    assert await content(producer.api, producer.path) == b"one\ntwo\n"


async def test_two_replicas_that_store_at_once_store_each_byte_once(replicas: Replicas) -> None:
    producer = await begun(replicas.both[0])
    for number in range(8):
        await producer.append(b"line %d\n" % number)
        for each in replicas.both:  # as if the lease had run out
            await each.service.archive.catalog.lease("live", "nobody", 0.001)
        await asyncio.gather(*(each.flush(CAPTURE) for each in replicas.both))

    ended = await producer.complete()
    assert ended["size"] == 56
    assert await content(replicas.both[1].api, producer.path) == b"".join(
        b"line %d\n" % number for number in range(8)
    )


async def test_a_tenant_of_more_captures_than_are_read_at_once_does_not_hold_up_another(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "DUE_PAGE", 200)
    flusher, worked = api.service.flusher, list[str]()
    catalog, now = api.service.archive.catalog, api.service.archive.clock()

    def start(tenant: str, capture: str) -> None:
        worked.append(tenant)

    flusher.start = start  # type: ignore[method-assign, assignment]
    for number in range(537):
        await catalog.schedule("large", f"{number:03}", now - 2)
    await catalog.schedule("small", "first", now - 1)
    worked.clear()  # the service may have looked by itself before all were there
    await flusher._start_due()

    looks, rest = divmod(worked.count("large"), flushing.MAX_RUNNING)  # some may be the service's own
    assert looks >= 1
    assert rest == 0
    assert "small" in worked


async def test_an_append_whose_sender_leaves_half_way_adds_nothing(api: Api, producer: Producer) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", api.port)
    head = (
        f"POST {producer.path}/append HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n"
        f"{Header.PRODUCER}: me\r\n{Header.UPLOAD_OFFSET}: 0\r\n\r\n"
    )
    writer.write(head.encode() + b"x" * 500)
    await writer.drain()
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()

    assert (await producer.append(b"one\n"))["accepted"] == 4
    assert await content(api, producer.path) == b"one\n"


async def test_followers_that_come_and_go_at_once_leave_nothing_and_miss_nothing(
    api: Api, producer: Producer
) -> None:
    await producer.append(b"0\n")

    async def look() -> None:
        async with following(api, f"{producer.path}/follow") as events:
            await text_until(events, 2)

    for _ in range(10):
        await asyncio.gather(*(look() for _ in range(5)))
    async with following(api, f"{producer.path}/follow") as events:
        await text_until(events, 2)
        await producer.append(b"1\n")
        assert await text_until(events, 2) == "1\n"

    await until(_no_streams(api))


def _no_streams(api: Api) -> Any:
    async def are_gone() -> bool:
        return not api.service.streams._streams

    return are_gone


async def test_a_follower_of_bytes_that_the_catalog_lost_waits_for_them(replicas: Replicas) -> None:
    producer = await begun(replicas.both[0])
    await producer.append(b"one\n")
    await replicas.both[0].flush(CAPTURE)
    await producer.append(b"two\n")
    await replicas.disturb(replicas.catalog.lose)
    producer.api = replicas.both[0].api
    async with following(replicas.both[1].api, f"{producer.path}/follow", **{"Last-Event-ID": "8"}) as events:
        refused = await producer.append(b"three\n", expected=409)
        producer.offset = refused["offset"]
        await producer.append(b"two\nthree\n")

        assert refused["offset"] == 4
        assert await text_until(events, 6) == "three\n"


@pytest.mark.parametrize("ended_as", [wire.State.PARTIAL, wire.State.COMPLETE])
async def test_a_capture_whose_end_is_noted_and_not_stored_yet_has_ended_once_it_is_given_up(
    api: Api, ended_as: wire.State
) -> None:
    async with Client(str(api.url("")), retries=0) as client:
        service = live_service(client, Description(id=CAPTURE, session=""))
        await service.begin()
        await service.append(0, [b"one\n"])
        noted = Ending(state=ended_as, sha256=sha256(b"one\n").digest())
        await api.service.archive.catalog.end_live("default", CAPTURE, 4, noted.encode())
        before = await client.get(CAPTURE)
        await give_up(client, CAPTURE, service.producer)
        entry = await client.get(CAPTURE)

    assert (before.state, entry.state, entry.size) == (wire.State.LIVE, ended_as, 4)


async def test_the_client_begins_again_after_the_catalog_lost_all_of_a_capture(replicas: Replicas) -> None:
    url = str(replicas.both[0].api.url(""))
    await replicas.both[1].stop()
    async with Client(url, retries=0) as client, client.live() as out:
        await out.write("one\n")
        await out.flush()
        lose_rows(replicas)
        await out.write("two\n")
        await out.flush()
        lose_rows(replicas)

    assert out.entry is not None
    assert (out.entry.size, out.entry.state) == (8, wire.State.COMPLETE)


def lose_rows(replicas: Replicas) -> None:
    """Empty the catalog while a replica uses it."""
    (file,) = replicas.both[0].service.settings.data.glob("catalog.sqlite")
    with closing(sqlite3.connect(file, timeout=30)) as db, db:
        for table in ("captures", "live", "live_bytes", "live_due"):
            db.execute(f"DELETE FROM {table}")


async def test_a_live_capture_waits_for_room_on_a_full_disk(own_service: ServiceProcess) -> None:
    limit_files(own_service, MIB)
    url = own_service.url + f"/v1/captures/{CAPTURE}"
    piece, whole = noise(2 * MIB), b""
    async with aiohttp.ClientSession(headers={Header.PRODUCER: "me"}) as session:
        async with session.put(f"{url}/live") as begun:
            assert begun.status == 201

        async def is_refused() -> bool:
            nonlocal whole
            headers = {Header.UPLOAD_OFFSET: str(len(whole))}
            async with session.post(f"{url}/append", data=io.BytesIO(piece), headers=headers) as response:
                if response.status == 200:
                    whole += piece
                return response.status != 200

        await until(is_refused)
        limit_files(own_service, resource.RLIM_INFINITY)
        body = {"offset": len(whole)}

        async def has_ended() -> bool:
            async with session.post(f"{url}/complete", json=body) as response:
                return response.status == 200

        await until(has_ended)
        async with session.get(f"{url}/content") as response:
            assert await response.read() == whole


async def moved_while_read(api: Api, producer: Producer) -> bytes:
    """A capture of several segments, which is moved into one object when its third segment is read."""
    lines = [b"line %d\n" % number * 20_000 for number in range(5)]
    for line in lines:
        await producer.append(line)
        await api.service.flusher.start("default", CAPTURE)
    await producer.complete()
    store = api.service.archive.store
    read = store.read

    async def move(key: str, start: int, length: int) -> bytes:
        if "-00002-" in key and start >= 0:
            store.read = read  # type: ignore[method-assign]
            await api.service.flusher.start("default", CAPTURE)
        return await read(key, start, length)

    store.read = move  # type: ignore[method-assign]
    return b"".join(lines)


async def test_a_read_goes_on_while_what_it_reads_is_moved(
    monkeypatch: pytest.MonkeyPatch, api: Api, producer: Producer
) -> None:
    monkeypatch.setattr(flushing, "is_worth_compacting", lambda entry: False)
    whole = await moved_while_read(api, producer)
    monkeypatch.undo()

    assert await content(api, producer.path) == whole
    assert await content(api, producer.path) == whole


async def test_a_stored_answer_goes_on_while_what_it_reads_is_moved(
    monkeypatch: pytest.MonkeyPatch, api: Api, producer: Producer
) -> None:
    monkeypatch.setattr(flushing, "is_worth_compacting", lambda entry: False)
    whole = await moved_while_read(api, producer)
    monkeypatch.undo()
    moving = await api.get(f"{producer.path}/content", headers={"Accept-Encoding": "zstd"})
    moved = await api.get(f"{producer.path}/content", headers={"Accept-Encoding": "zstd"})

    assert zstd.decompress(await moving.read()) == whole
    assert zstd.decompress(await moved.read()) == whole
    assert "Content-Length" not in moving.headers
    assert int(moved.headers["Content-Length"]) == len(await moved.read())


async def test_a_follower_goes_on_while_what_it_reads_is_moved(
    monkeypatch: pytest.MonkeyPatch, api: Api, producer: Producer
) -> None:
    monkeypatch.setattr(flushing, "is_worth_compacting", lambda entry: False)
    whole = await moved_while_read(api, producer)
    monkeypatch.undo()
    async with following(api, f"{producer.path}/follow") as events:
        seen = await text_until(events, len(whole))
        kind = (await anext(events))[0]

    assert (seen.encode(), kind) == (whole, "end")


async def test_an_unexpected_failure_does_not_end_the_work_on_live_captures(
    start_api: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(flushing, "LOOK_SECONDS", 0.01)
    api: Api = await start_api(live_flush_seconds=0.01)
    catalog = api.service.archive.catalog
    due, failed = catalog.due, asyncio.Event()

    async def fail_once(*arguments: Any, **options: Any) -> Any:
        if failed.is_set():
            return await due(*arguments, **options)
        failed.set()
        raise ValueError("not expected")

    monkeypatch.setattr(catalog, "due", fail_once)
    producer = Producer(api)
    await producer.begin()
    await failed.wait()
    await producer.append(b"a line\n")

    await until(lambda: _is_durable(producer, 7))
    assert "looking at live captures failed unexpectedly" in caplog.text


async def _is_durable(producer: Producer, size: int) -> bool:
    return (await producer.entry()).durable == size
