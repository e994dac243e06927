"""Clients that break off at random points leave no place, file or task behind, and no wrong figure."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.faults.traffic import MIB, content_of, keys_in, noise, until, usage_of
from tests.web.conftest import Api, path_of

CLIENTS = 50
ROUNDS = 3
PIECE = 64 * 1024
LARGE = noise(3 * MIB)
WHOLE = b"all of it\n"


@pytest.fixture
async def api(start_api: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Api:
    monkeypatch.setattr("overspill_service.archive.uploading.SEGMENT_SIZE", 256 * 1024)
    started: Api = await start_api(
        store=f"file://{tmp_path}/objects", catalog=f"sqlite:///{tmp_path}/catalog", max_uploads=8
    )
    await until(started.service.archive.catalog.is_complete)
    await started.put(LARGE)
    return started


async def break_off_sending(api: Api, chance: random.Random, seed: int) -> None:
    content = noise(chance.choice((1, 1000, MIB)), seed)
    length = chance.choice((0, 1, len(content) // 2, chance.randrange(len(content)), len(content)))
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    writer.write(f"PUT {path_of(content)} HTTP/1.1\r\nHost: localhost\r\n".encode())
    writer.write(f"Content-Length: {len(content)}\r\n\r\n".encode())
    try:
        for start in range(0, length, PIECE):
            writer.write(content[start : min(start + PIECE, length)])
            await writer.drain()
        if length == len(content) and chance.random() < 0.5:
            await reader.read(100)
    finally:
        writer.transport.abort()


async def break_off_reading(api: Api, chance: random.Random) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    what = chance.choice(("content", "grep?pattern=x", "tail"))
    writer.write(f"GET {path_of(LARGE)}/{what} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    try:
        await reader.read(chance.choice((1, 1000, MIB)))
    finally:
        writer.transport.abort()


async def attack(api: Api, seed: int) -> None:
    chance = random.Random(seed)
    for number in range(ROUNDS):
        with suppress(ConnectionError):
            if chance.random() < 0.6:
                await break_off_sending(api, chance, seed * ROUNDS + number)
            else:
                await break_off_reading(api, chance)


async def test_clients_that_break_off_leave_nothing_behind(api: Api, tmp_path: Path) -> None:
    await asyncio.gather(*(warm_up(api) for _ in range(3)))
    before = {task.get_name() for task in asyncio.all_tasks()}
    await asyncio.gather(*(attack(api, seed) for seed in range(CLIENTS)))

    await until(lambda: is_at_rest(api))
    assert api.service.places.uploads.free == 8
    assert [path for path in (tmp_path / "objects").rglob("*~*") if path.is_file()] == []
    await figures_are_right(api)
    assert await content_of(api, path_of(LARGE)) == LARGE
    await until(lambda: only_known_tasks(before))


async def warm_up(api: Api) -> None:
    await api.get("/healthz")


async def is_at_rest(api: Api) -> bool:
    metrics = await (await api.get("/metrics")).text()
    return "overspill_uploads_in_progress 0.0" in metrics and api.service.in_flight.count == 0


async def only_known_tasks(known: set[str]) -> bool:
    return {task.get_name() for task in asyncio.all_tasks()} <= known


async def figures_are_right(api: Api) -> None:
    """The totals are those of the listing, and every object belongs to a capture that is listed whole."""
    captures: list[dict[str, Any]] = []
    cursor = ""
    while cursor is not None:
        page = await (await api.get(f"/v1/captures{cursor and '?cursor=' + cursor}")).json()
        captures += page["captures"]
        cursor = page["cursor"]
    usage = await usage_of(api)
    assert usage.captures == len(captures)
    assert usage.size == sum(each["size"] for each in captures)
    assert usage.stored_size == sum(each["stored_size"] for each in captures)
    assert {key.split("/")[2] for key in await keys_in(api)} == {each["id"] for each in captures}


class SlowStore:
    """Holds up what is put into a service's store until the test lets go; it goes on without its caller."""

    def __init__(self, api: Api) -> None:
        self.is_asked, self.go_on = asyncio.Event(), asyncio.Event()
        self.puts: list[asyncio.Task[bool]] = []
        self._put = api.service.archive.store.put
        api.service.archive.store.put = self.put  # type: ignore[method-assign]

    async def put(self, key: str, pieces: Sequence[bytes]) -> bool:
        self.puts.append(asyncio.create_task(self._later(key, pieces)))
        self.is_asked.set()
        return await asyncio.shield(self.puts[-1])

    async def _later(self, key: str, pieces: Sequence[bytes]) -> bool:
        await self.go_on.wait()
        return await self._put(key, pieces)


@pytest.fixture
def slow_store(api: Api) -> SlowStore:
    return SlowStore(api)


async def hang_up_while_storing(api: Api, store: SlowStore, content: bytes, length: int) -> None:
    """Send this much of the body, and hang up once a segment is on its way to the store."""
    _, writer = await asyncio.open_connection("127.0.0.1", api.port)
    writer.write(f"PUT {path_of(content)} HTTP/1.1\r\nHost: localhost\r\n".encode())
    writer.write(f"Content-Length: {len(content)}\r\n\r\n".encode() + content[:length])
    await store.is_asked.wait()
    writer.transport.abort()
    for _ in range(3):  # a loop that answers these has seen the connection end
        await api.get("/healthz")
    store.go_on.set()
    await asyncio.wait(store.puts)
    await until(lambda: is_at_rest(api))


async def test_a_client_that_hangs_up_after_its_last_byte_has_stored_its_capture(
    api: Api, slow_store: SlowStore
) -> None:
    await hang_up_while_storing(api, slow_store, WHOLE, len(WHOLE))

    assert await content_of(api, path_of(WHOLE)) == WHOLE
    await figures_are_right(api)


async def test_a_segment_that_arrives_after_its_client_has_gone_is_taken_away(
    api: Api, slow_store: SlowStore
) -> None:
    await hang_up_while_storing(api, slow_store, noise(3 * MIB, 1), 2 * MIB)

    assert slow_store.puts
    await figures_are_right(api)
