"""Readers that are slower than the capture: it ends, and is moved to other objects, while they read it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from overspill import wire
from overspill_service.archive.moved import is_scattered
from overspill_service.catalog.records import Entry
from overspill_service.live import flusher as flushing

from tests import zstd
from tests.faults.traffic import MIB, noise
from tests.web.conftest import Api
from tests.web.live_producer import CAPTURE, Producer
from tests.web.raw import parsed

PIECES = [noise(400_000, seed=number) for number in range(16)]
WHOLE = b"".join(PIECES)
"""More than the sockets and what is read ahead hold, in segments that are worth to be moved."""
MOVED_SEGMENT = 5 * MIB // 2
"""Bytes of the segments that it is moved to: there are three."""
SOCKET_BUFFER = 64 * 1024
ENCODINGS = ["identity", "zstd"]
ON_BOTH_STORES = pytest.mark.parametrize("api", ["folder", "s3_url"], indirect=True)
"""Where an object is missed: the others differ in how the capture moves, which no store has a part in."""


@pytest.fixture
async def api(
    request: pytest.FixtureRequest,
    start_api: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Api:
    monkeypatch.setattr("overspill_service.archive.uploading.SEGMENT_SIZE", MOVED_SEGMENT)
    name = getattr(request, "param", "folder")
    store = f"file:{tmp_path}" if name == "folder" else request.getfixturevalue(name)
    started: Api = await start_api(store=store, live_flush_seconds=3600.0)
    for listener in started.sockets:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER)  # of all that it accepts
    return started


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    """The session of a slow reader, whose system takes little before it is read."""
    connector = aiohttp.TCPConnector(socket_factory=little_socket)
    async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as opened:
        yield opened


def little_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    made = socket.socket(*address[:3])
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BUFFER)
    return made


@pytest.fixture
async def producer(api: Api) -> Producer:
    """The producer of a live capture of many segments."""
    made = Producer(api)
    await made.begin()
    for piece in PIECES:
        await made.append(piece)
        await api.service.flusher.start("default", CAPTURE)
    return made


async def entry_of(api: Api) -> Entry:
    found = await api.service.archive.catalog.get("default", CAPTURE)
    assert isinstance(found, Entry)
    return found


async def move(api: Api) -> None:
    """Move the capture, once it has ended, and see that its old objects are gone."""
    store = api.service.archive.store
    assert is_scattered(await entry_of(api))
    while is_scattered(await entry_of(api)):
        await api.service.flusher.start("default", CAPTURE)
    stored = [each.key async for each in store.list("")]

    assert [key for key in stored if CAPTURE in key] == list((await entry_of(api)).segment_keys)


class Slow:
    """Reads an answer: first little of it, and the rest when the test says so."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self._first = b""

    async def begin(self) -> None:
        self._first = await self._response.content.readexactly(MIB)

    async def content(self) -> bytes:
        body = self._first + await self._response.content.read()
        is_plain = self._response.headers.get("Content-Encoding") is None
        return body if is_plain else zstd.decompress(body)


def reading(session: aiohttp.ClientSession, producer: Producer, encoding: str) -> Any:
    url = producer.api.url(f"{producer.path}/content")
    return session.get(url, headers={"Accept-Encoding": encoding})


@ON_BOTH_STORES
@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_a_slow_reader_gets_all_of_a_capture_that_is_moved_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
    api: Api,
    producer: Producer,
    session: aiohttp.ClientSession,
    encoding: str,
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(flushing, "is_worth_compacting", lambda entry: False)
        await producer.complete()
    async with reading(session, producer, encoding) as response:
        slow = Slow(response)
        await slow.begin()
        await move(api)

        assert await slow.content() == WHOLE


@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_who_began_to_read_a_live_capture_gets_what_it_had_then(
    api: Api, producer: Producer, session: aiohttp.ClientSession, encoding: str
) -> None:
    await producer.append(b"accepted, not stored\n")
    async with reading(session, producer, encoding) as response:
        slow = Slow(response)
        await slow.begin()
        await producer.append(b"later\n")
        await producer.complete()
        await move(api)

        assert await slow.content() == WHOLE + b"accepted, not stored\n"


@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_a_slow_reader_goes_on_when_a_partial_capture_is_completed(
    api: Api, producer: Producer, session: aiohttp.ClientSession, encoding: str
) -> None:
    await producer.complete(state="partial")
    async with reading(session, producer, encoding) as response:
        slow = Slow(response)
        await slow.begin()
        whole = WHOLE + b"the end\n"
        completed = await api.send("PUT", producer.path, data=whole, headers={wire.Header.CALL_ID: ""})

        assert (await completed.json())["state"] == "complete"
        assert await slow.content() == WHOLE


async def test_a_client_of_http_1_0_that_knows_no_chunks_is_told_the_length(
    api: Api, producer: Producer
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    request = f"GET {producer.path}/content HTTP/1.0\r\nHost: localhost\r\nAccept-Encoding: zstd\r\n\r\n"
    writer.write(request.encode())
    answer = parsed(await reader.read())
    writer.close()

    assert answer.headers["Content-Length"] == str(len(answer.body))
    assert zstd.decompress(answer.body) == WHOLE


@ON_BOTH_STORES
async def test_a_removed_capture_breaks_a_slow_answer_off(
    api: Api, producer: Producer, session: aiohttp.ClientSession
) -> None:
    async with reading(session, producer, "zstd") as response:
        slow = Slow(response)
        await slow.begin()
        assert (await api.send("DELETE", producer.path)).status == 200

        with pytest.raises(aiohttp.ClientPayloadError):
            await slow.content()
