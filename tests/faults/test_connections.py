"""Clients that hold connections and send heads without end: others are served, and health always."""

from __future__ import annotations

import asyncio
import io
import tracemalloc
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import aiohttp
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill import wire
from overspill_service.resources import blocked_addresses, request_heads
from overspill_service.resources.blocked_addresses import BlockedAddresses
from overspill_service.resources.peers import address_of, network_of

from tests.clock import Clock
from tests.faults.traffic import until
from tests.servers.overspill import ForkedService, ServiceProcess, running
from tests.web.conftest import path_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

MOST = 40
HOSTILE = "127.0.0.2"
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ServiceProcess]:
    with running(ForkedService(tmp_path / "service", max_connections=MOST)) as service:
        yield service


@asynccontextmanager
async def connected(
    service: ServiceProcess, count: int, address: str = HOSTILE
) -> AsyncIterator[list[Stream]]:
    place = urlsplit(service.url)
    streams = [
        await asyncio.open_connection(place.hostname, place.port, local_addr=(address, 0))
        for _ in range(count)
    ]
    try:
        yield streams
    finally:
        for _, writer in streams:
            writer.transport.abort()


async def status(service: ServiceProcess, path: str, **kwargs: object) -> int:
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as session,
        session.request("PUT" if kwargs else "GET", service.url + path, **kwargs) as response,  # type: ignore[arg-type]
    ):
        return response.status


async def test_one_address_leaves_half_of_the_connections_to_others(service: ServiceProcess) -> None:
    async with connected(service, 3 * MOST) as streams:
        served = [await status(service, path_of(b"%d" % number), data=b"%d" % number) for number in range(10)]
        refused = await asyncio.wait_for(streams[-1][0].read(), 30)
        head, _, body = refused.partition(b"\r\n\r\n")
        problem = msgspec.json.decode(body, type=wire.Problem)

        assert set(served) == {201}
        assert head.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        assert b"Retry-After: 1" in head
        assert problem.code == wire.Code.OUT_OF_RESOURCES


async def test_health_is_answered_to_an_address_that_has_its_share(service: ServiceProcess) -> None:
    async with connected(service, MOST // 2, "127.0.0.1"):
        assert await status(service, "/healthz") == 200
        assert await status(service, path_of(b"x"), data=b"x") == 503
    assert f"your address has the {MOST // 2} connections that one address may have" in service.logged()


async def test_a_trusted_proxy_may_have_all_connections(tmp_path: Path) -> None:
    settings = {"max_connections": MOST, "trusted_proxies": HOSTILE}
    with running(ForkedService(tmp_path / "proxied", **settings)) as service:
        async with connected(service, MOST - 1) as streams:
            for _, writer in streams:
                writer.write(b"GET /v1/usage HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answers = [await asyncio.wait_for(reader.readline(), 30) for reader, _ in streams]

    assert set(answers) == {b"HTTP/1.1 200 OK\r\n"}


async def test_an_address_that_goes_has_its_share_again(service: ServiceProcess) -> None:
    for _ in range(3):
        async with connected(service, MOST, "127.0.0.1"):
            pass
    async with asyncio.timeout(30):
        while await status(service, path_of(b"x"), data=b"x") == 503:
            pass


async def test_long_heads_that_never_end_take_little_memory_and_stop_no_other_head(
    service: ServiceProcess,
) -> None:
    line = b"X-%d: " + b"x" * 30_000 + b"\r\n"
    async with connected(service, MOST // 2) as streams:
        for _, writer in streams:
            writer.write(b"GET /v1/captures HTTP/1.1\r\nHost: localhost\r\n")
            writer.writelines(line % number for number in range(100))
        ended = [asyncio.ensure_future(reader.read()) for reader, _ in streams]
        done, _ = await asyncio.wait(ended, timeout=30, return_when=asyncio.FIRST_COMPLETED)
        large = {"X-Large": "x" * 20_000}
        async with (
            aiohttp.ClientSession(headers=large) as session,
            session.get(f"{service.url}/v1/captures") as response,
        ):
            answer = response.status

        assert done
        assert answer == 200
        for each in ended:
            each.cancel()


async def test_a_head_with_far_too_many_fields_is_refused_before_its_end(service: ServiceProcess) -> None:
    async with connected(service, 1) as [(reader, writer)]:
        writer.write(b"GET /v1/captures HTTP/1.1\r\nHost: localhost\r\n")
        # No more than is refused: what comes to a closed connection resets it.
        for number in range(request_heads.MAX_FIELDS_BYTES // 20_000 + 1):
            writer.write(b"X-%d: " % number + b"x" * 20_000 + b"\r\n")
        head, _, body = (await asyncio.wait_for(reader.read(), 30)).partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 431 ")
    assert msgspec.json.decode(body, type=wire.Problem).code == wire.Code.HEADERS_TOO_LARGE
    assert {b"Cache-Control: no-store", b"X-Content-Type-Options: nosniff"} < set(head.splitlines())


@pytest.mark.parametrize("fields", [b"X: " + b"y" * 40_000, (b"X: " + b"y" * 20_000 + b"\r\n") * 7])
async def test_a_head_that_is_too_large_leaves_the_answer_before_it_whole(
    service: ServiceProcess, fields: bytes
) -> None:
    content = b"x" * (16 * 2**20)  # more than the sockets hold: the answer is on its way until it is read
    assert await status(service, path_of(content), data=io.BytesIO(content)) == 201

    async def is_refused() -> bool:
        return "its header fields are too long" in service.logged()

    async with connected(service, 1) as [(reader, writer)]:
        writer.write(f"GET {path_of(content)}/content HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"GET / HTTP/1.1\r\n" + fields)
        await until(is_refused)

        assert await asyncio.wait_for(reader.read(), 30) == content


async def test_the_log_says_that_heads_were_refused_but_once_for_many(service: ServiceProcess) -> None:
    for _ in range(3):
        async with connected(service, 1) as [(reader, writer)]:
            writer.write(b"GET / HTTP/1.1\r\nX: " + b"x" * 40_000)
            await asyncio.wait_for(reader.read(), 30)

    assert service.logged().count("its header fields are too long") == 1


async def test_a_long_request_line_comes_to_its_end(service: ServiceProcess) -> None:
    async with connected(service, 1) as [(reader, writer)]:
        writer.write(b"GET /v1/captures?session=" + b"x" * 300_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        status_line = await asyncio.wait_for(reader.readline(), 30)

    assert status_line == b"HTTP/1.1 200 OK\r\n"


async def test_bodies_of_refused_requests_are_not_taken_for_heads_without_end(
    service: ServiceProcess,
) -> None:
    body = b"x\n" * request_heads.MAX_FIELDS_BYTES
    target = b"PUT /v1/captures/cap_none HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
    answers = []
    for _ in range(blocked_addresses.BURST + 3):
        async with connected(service, 1) as [(reader, writer)]:
            writer.write(target % len(body))
            answers.append(await asyncio.wait_for(reader.readuntil(b"}"), 30))
            writer.write(body + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answers.append(await asyncio.wait_for(reader.readline(), 30))

    assert {each.split()[1] for each in answers[::2]} == {b"422"}
    assert {each.split()[1] for each in answers[1::2]} == {b"200"}


async def test_a_head_behind_the_body_of_a_refused_request_has_its_limit_too(service: ServiceProcess) -> None:
    async with connected(service, 1) as [(reader, writer)]:
        writer.write(b"PUT /v1/captures/cap_none HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n")
        await asyncio.wait_for(reader.readuntil(b"}"), 30)
        writer.write(b"x" * 9 + b"GET / HTTP/1.1\r\n")
        answer = asyncio.create_task(reader.readline())
        while not answer.done():
            writer.write(b"X: " + b"y" * 30_000 + b"\r\n")
            await asyncio.wait([answer], timeout=0.01)

    assert (await answer).startswith(b"HTTP/1.1 431 ")


async def test_an_address_that_sends_such_heads_again_and_again_is_left_alone_for_a_moment(
    service: ServiceProcess,
) -> None:
    async def answered(address: str) -> bool:
        try:
            async with connected(service, 1, address) as [(reader, writer)]:
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                return b" 200 " in await asyncio.wait_for(reader.readline(), 30)
        except ConnectionError:
            return False

    async def offend() -> None:
        with suppress(ConnectionError):
            async with connected(service, 1) as [(reader, writer)]:
                writer.write(b"GET / HTTP/1.1\r\nX: " + b"x" * 200_000)
                await asyncio.wait_for(reader.read(), 30)

    for _ in range(blocked_addresses.BURST):
        await offend()
    async with asyncio.timeout(30):  # on a busy machine the moment may be over when it is looked at
        while await answered(HOSTILE):
            await offend()

    assert await answered("127.0.0.1")
    async with asyncio.timeout(30):
        while not await answered(HOSTILE):
            pass


# --- the parts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pieces", "open_after"),
    [
        ([b"GET / HTTP/1.1\r\n", b"Host: a\r\n", b"\r\n"], [True, True, False]),
        ([b"GET / HTTP/1.1\r", b"\n\r", b"\nbody"], [True, True, False]),
        ([b"\r\n\r\n", b"\r\n\r\nGET / HTTP/1.1", b"\r\n\r\n"], [True, True, False]),
        ([b"GET / HTTP/1.1\r\n\r\nGET", b" / HTTP/1.1"], [False, False]),
    ],
)
def test_a_head_ends_at_its_empty_line_however_it_comes(pieces: list[bytes], open_after: list[bool]) -> None:
    count = request_heads.HeadCount()

    assert [count.take(each) for each in pieces] == open_after


@given(
    st.lists(st.sampled_from([10, 20_000, 32_700, 32_800, 70_000]), max_size=4),
    st.lists(st.integers(1, 200_000), max_size=6),
)
def test_a_field_is_too_long_however_it_comes_and_what_is_no_field_never(
    sizes: list[int], cuts: list[int]
) -> None:
    fields = b"".join(b"X: " + b"x" * (size - 3) + b"\r\n" for size in sizes)
    data = b"GET /" + b"x" * 40_000 + b" HTTP/1.1\r\n" + fields + b"\r\n" + b"body" * 20_000
    ends = [*sorted({each for each in cuts if each < len(data)}), len(data)]
    count = request_heads.HeadCount()

    for begin, end in pairwise([0, *ends]):
        count.take(data[begin:end])

    assert count.has_long_field == (max(sizes, default=0) > 32_768)


def test_fields_without_number_are_counted_without_a_copy_of_each() -> None:
    data = b"GET / HTTP/1.1\r\n" + b"xx\n" * 40_000
    count = request_heads.HeadCount()

    tracemalloc.start()
    try:
        count.take(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 3 * len(data)


def test_the_longest_head_goes_when_all_are_too_long_together() -> None:
    heads = request_heads.RequestHeads(limit=100_000)
    clients = [asyncio.Transport() for _ in range(5)]

    assert heads.note(clients[0], 16_000) is None
    assert [
        heads.note(each, size) for each, size in zip(clients[1:4], (60_000, 20_000, 19_000), strict=True)
    ] == [None] * 3
    assert heads.note(clients[4], 20_000) is clients[1]
    heads.forget(clients[1])
    assert heads.note(clients[2], 40_000) is None


@pytest.mark.parametrize(
    ("one", "other", "are_alike"),
    [
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:10.0.0.1", "::ffff:10.0.0.2", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
    ],
)
def test_one_machine_cannot_have_many_addresses(one: str, other: str, *, are_alike: bool) -> None:
    first, second = (network_of(address_of((each, 80))) for each in (one, other))

    assert (first == second) is are_alike


def test_an_address_is_blocked_for_a_moment_after_many_offences_in_short_time() -> None:
    clock = Clock()
    addresses = BlockedAddresses(clock)
    for _ in range(blocked_addresses.BURST):
        addresses.note_offence("a")
    is_patient = "a" not in addresses
    addresses.note_offence("a")

    assert is_patient
    assert "a" in addresses
    assert "b" not in addresses
    clock.now += blocked_addresses.SECONDS
    assert "a" not in addresses
    assert not addresses
    for _ in range(5):
        clock.now += 2 / blocked_addresses.RATE
        addresses.note_offence("a")
    assert not addresses
