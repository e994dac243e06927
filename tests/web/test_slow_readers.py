"""Readers that are slow, stalled, or read what breaks: the answer ends or the connection does, never else."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from aiohttp.http_writer import StreamWriter
from overspill.wire import Code
from overspill_service.errors import StoreUnavailable
from overspill_service.resources.fair_places import FairPlaces
from overspill_service.web import header_fields, streaming

from tests.faults.traffic import PATIENCE, noise, until
from tests.web.conftest import Api, path_of, problem
from tests.web.live_producer import Producer

LARGE = noise(12 * 2**20)
"""More than the buffers of two sockets hold."""
SHORT = noise(100_000)
END = b"HTTP/1.1 "


@asynccontextmanager
async def asking(api: Api, path: str, *headers: str, first: str = "") -> AsyncIterator[asyncio.StreamReader]:
    """A client that has asked for a path and reads nothing by itself. `first`: what it has asked before."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.setblocking(False)
    await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", api.port))
    reader, writer = await asyncio.open_connection(sock=connection, limit=1024)
    lines = "".join(f"{line}\r\n" for line in ("Host: localhost", *headers))
    for each in filter(None, (first, path)):
        writer.write(f"GET {each} HTTP/1.1\r\n{lines}\r\n".encode())
    try:
        yield reader
    finally:
        writer.transport.abort()


async def rest_of(reader: asyncio.StreamReader) -> bytes:
    """What still comes until the connection ends, in whatever way."""
    received = bytearray()
    async with asyncio.timeout(PATIENCE):
        try:
            while piece := await reader.read(2**16):
                received += piece
        except ConnectionError:
            pass
    return bytes(received)


class Failing:
    """Lets a service's store answer some reads, and fails those that follow."""

    def __init__(self, api: Api, error: Exception, after: int) -> None:
        self._read = api.service.archive.store.read
        self._left, self._error = after, error
        api.service.archive.store.read = self.read  # type: ignore[method-assign]

    async def read(self, key: str, start: int, length: int) -> bytes:
        if not self._left:
            raise self._error
        self._left -= 1
        return await self._read(key, start, length)


FAILURES = [StoreUnavailable("gone"), RuntimeError("a bug"), TimeoutError(), OSError("disk"), KeyError("key")]


@pytest.mark.parametrize("encoding", ["identity", "zstd"])
@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
async def test_a_failure_behind_the_first_byte_ends_the_connection(
    api: Api, failure: Exception, encoding: str
) -> None:
    await api.put(LARGE)
    Failing(api, failure, after=2)
    async with asking(api, f"{path_of(LARGE)}/content", f"Accept-Encoding: {encoding}") as reader:
        head = await reader.readuntil(b"\r\n\r\n")
        body = await rest_of(reader)

    assert head.startswith(b"HTTP/1.1 200 ")
    assert 0 < len(body) < len(LARGE)
    assert END not in body
    assert encoding == "zstd" or LARGE.startswith(body)
    assert (await api.get("/healthz")).status == 200


async def test_content_shorter_than_it_was_said_ends_the_connection(api: Api) -> None:
    await api.put(LARGE)
    archive = api.service.archive
    reader_of = archive.reader

    async def shortened(entry: Any, workers: Any = None) -> Any:
        found = await reader_of(entry, workers)
        content = found.content
        found.content = lambda start, stop: content(start, stop - 1)  # type: ignore[method-assign]
        return found

    archive.reader = shortened  # type: ignore[method-assign]
    async with asking(api, f"{path_of(LARGE)}/content") as reader:
        await reader.readuntil(b"\r\n\r\n")

        assert await rest_of(reader) == LARGE[:-1]


async def test_a_client_that_takes_nothing_is_cut_off(start_api: Callable[..., Any]) -> None:
    api: Api = await start_api(write_timeout=0.1)
    await api.put(LARGE)
    async with asking(api, f"{path_of(LARGE)}/content") as reader:
        await reader.readuntil(b"\r\n\r\n")
        await until(lambda: at_rest(api))

        assert len(await rest_of(reader)) < len(LARGE)


@pytest.mark.parametrize("is_second", [False, True])
async def test_a_follower_that_takes_nothing_is_cut_off(
    start_api: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, *, is_second: bool
) -> None:
    """Also if there was another answer on its connection, which was written without a buffer."""
    # Each write waits if it has to, not only each that fills another 64 KiB.
    monkeypatch.setattr(StreamWriter.write, "__kwdefaults__", {"drain": True, "LIMIT": 0})
    api: Api = await start_api(write_timeout=0.1)
    await api.put(SHORT)
    producer = Producer(api)
    await producer.begin()
    first = f"{path_of(SHORT)}/content" if is_second else ""
    async with asking(api, f"{producer.path}/follow", first=first):
        await until(lambda: is_followed(api))

        await until(lambda: is_cut_off(producer))


async def is_followed(api: Api) -> bool:
    return bool(api.service.streams._streams)


async def is_cut_off(producer: Producer) -> bool:
    """Whether nobody follows any more, after more appends, each of which makes one small event."""
    for _ in range(50):
        await producer.append(b"x" * 30_000 + b"\n")
    return not await is_followed(producer.api)


async def at_rest(api: Api) -> bool:
    memory = api.service.archive.memory
    return memory.free == memory.size and api.service.in_flight.count == 0


async def test_a_client_that_takes_something_is_not_cut_off() -> None:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_connection(asyncio.Protocol, sock=ours)
    with streaming.ProgressWatch(transport, stall_seconds=1e-9) as watch:
        watch._timer.cancel()  # the test looks instead
        transport.write(noise(2**20))
        watch.sent = 2**20
        for _ in range(10):
            await loop.sock_recv(theirs, 2**16)
            watch._check()
            watch._timer.cancel()

            assert not transport.is_closing()
        watch._check()

        assert transport.is_closing()
    theirs.close()


async def test_a_client_that_has_taken_all_is_not_cut_off_however_long_the_service_takes() -> None:
    ours, theirs = socket.socketpair()
    transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, sock=ours)
    with streaming.ProgressWatch(transport, stall_seconds=1e-9) as watch:
        for _ in range(3):
            watch._check()

        assert not transport.is_closing()
    transport.abort()
    theirs.close()


async def test_a_read_that_finds_no_memory_is_told_to_come_again(
    start_api: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overspill_service.resources.memory_budget.QUEUE_SECONDS", 0.05)
    api: Api = await start_api(memory=2 * 2**20)
    api.service.places.answers = FairPlaces(8, "long answers")
    await api.put(LARGE)
    async with asking(api, f"{path_of(LARGE)}/content") as stalled:
        await stalled.readuntil(b"\r\n\r\n")
        for read in ("content", "grep?pattern=x", "head"):
            refused = await api.get(f"{path_of(LARGE)}/{read}")

            assert (refused.status, (await problem(refused)).code) == (503, Code.OVERLOADED)
            assert refused.headers["Retry-After"] == "2"
        assert (await api.get(path_of(LARGE))).status == 200
    await until(lambda: at_rest(api))

    assert await (await api.get(f"{path_of(LARGE)}/content")).read() == LARGE


ESCAPED = b"\x01" * 60_000
"""Each byte is six in JSON."""


async def test_of_clients_that_take_nothing_of_bounded_reads_a_tenant_has_few(
    start_api: Callable[..., Any],
) -> None:
    api: Api = await start_api(memory=64 * 2**20)
    send_little(api)
    await api.put(ESCAPED)
    unsent = api.service.unsent
    async with AsyncExitStack() as stack:
        for _ in range(60):
            await stack.enter_async_context(asking(api, f"{path_of(ESCAPED)}/head"))
        await until(lambda: _is(unsent.total > unsent.share // 2))
        await until(lambda: _is(api.service.in_flight.count < 60 // 2))
        whole = await api.get(f"{path_of(ESCAPED)}/head")

        assert unsent.total <= unsent.share
        assert (await whole.json())["total_bytes"] == len(ESCAPED)
    await until(lambda: at_rest(api))
    assert unsent.total == 0


async def test_a_client_that_takes_nothing_of_a_bounded_read_is_cut_off(
    start_api: Callable[..., Any],
) -> None:
    api: Api = await start_api(write_timeout=0.1)
    send_little(api)
    await api.put(ESCAPED)
    async with asking(api, f"{path_of(ESCAPED)}/head") as reader:
        await reader.readuntil(b"\r\n\r\n")
        await until(lambda: at_rest(api))

        assert len(await rest_of(reader)) < 6 * len(ESCAPED)


async def test_of_followers_that_take_nothing_a_tenant_has_few(start_api: Callable[..., Any]) -> None:
    api: Api = await start_api(memory=64 * 2**20)
    send_little(api)
    producer, unsent = Producer(api), api.service.unsent
    await producer.begin()
    async with AsyncExitStack() as stack:
        for _ in range(60):
            await stack.enter_async_context(asking(api, f"{producer.path}/follow"))
        await until(lambda: _is(api.service.in_flight.count == 60))
        for _ in range(4):
            await producer.append(ESCAPED)
        await until(lambda: _is(unsent.total > unsent.share // 2))
        await until(lambda: _is(api.service.in_flight.count < 60 // 2))

        assert unsent.total <= unsent.share
    await until(lambda: at_rest(api))
    assert unsent.total == 0


def send_little(api: Api) -> None:
    """Let the system take little of what the service sends from now on."""
    for site in api._runner.sites:
        for listener in site._server.sockets:  # type: ignore[union-attr]
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)


async def test_an_answer_is_kept_no_longer_than_it_takes_to_send_it(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    await api.put(ESCAPED)
    sent: list[Any] = []

    async def note(request: Any, response: Any, *rest: Any) -> None:
        await streaming.send_made(request, response, *rest)
        sent.append(response)

    monkeypatch.setattr("overspill_service.web.registry.send_made", note)
    answer = await api.get(f"{path_of(ESCAPED)}/head")

    assert len(await answer.read()) > 6 * len(ESCAPED)
    assert [each.body for each in sent] == [None]


async def test_a_request_with_a_long_head_is_the_last_of_its_connection(api: Api) -> None:
    names = "x" * header_fields.LONG_HEAD_BYTES
    answers = [await api.get(f"/v1/captures?session={each}") for each in ("x", names)]

    assert [each.headers.get("Connection") for each in answers] == [None, "close"]


@pytest.mark.parametrize("what", ["follow", "wait"])
async def test_what_lasts_has_a_shorter_head(api: Api, what: str) -> None:
    producer = Producer(api)
    await producer.begin()
    long = {"X-Long": "x" * header_fields.MAX_LASTING_HEAD_BYTES}
    answer = await api.get(f"{producer.path}/{what}", headers=long)

    assert (answer.status, (await problem(answer)).code) == (431, Code.HEADERS_TOO_LARGE)


async def _is(found: object) -> bool:
    return bool(found)
