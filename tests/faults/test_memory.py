"""Memory stays flat: the peak while a large capture is stored and read, over what the idle service takes."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import aiohttp
import pytest
from overspill.transfer.client import Client
from overspill.wire import Header

from tests.bench.uploads import all_stored
from tests.faults.traffic import MIB, PATIENCE, log_lines, noise, until
from tests.servers import cgroup
from tests.servers.overspill import ServiceProcess

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager
    from urllib.parse import SplitResult

    from tests.faults.conftest import StartServices

SIZE = 80 * MIB
PIECE = 20 * MIB
ALLOWED = 64 * MIB

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process's peak")


class Memory:
    """How far a service's process grows over what it takes now, out of /proc."""

    def __init__(self, service: ServiceProcess) -> None:
        self._folder = Path(f"/proc/{service.pid}")
        self._idle = self._read("VmRSS")
        self.growth()

    def growth(self) -> int:
        """The peak since this was asked last, over the idle process, in bytes."""
        peak = self._read("VmHWM")
        (self._folder / "clear_refs").write_text("5")
        return peak - self._idle

    async def is_below(self, limit: int) -> bool:
        """Whether the process takes less than `limit` bytes more now than the idle one."""
        return self._read("VmRSS") - self._idle < limit

    def _read(self, name: str) -> int:
        lines = (self._folder / "status").read_text().splitlines()
        (line,) = (line for line in lines if line.startswith(f"{name}:"))
        return 1024 * int(line.split()[1])


def letters(size: int, seed: int) -> bytes:
    """Lines that hardly compress, and that a search goes through far faster than through noise."""
    return base64.encodebytes(noise(size * 3 // 4, seed))[:size]


@pytest.mark.parametrize(("store", "make"), [("file", noise), ("file", log_lines), ("s3", letters)])
async def test_memory_is_flat_while_a_large_capture_is_stored_and_read(
    start_services: StartServices,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    store: str,
    make: Callable[[int, int], bytes],
) -> None:
    settings = {"store": request.getfixturevalue("s3_url")} if store == "s3" else {}
    (service,) = start_services(program=ServiceProcess.program, **settings)
    large = written(tmp_path / "large", make)
    async with Client(service.url, timeout=PATIENCE, compress=False) as client:
        warm = await client.put(log_lines(MIB), call_id="warm")
        await client.content(warm.id)
        memory = Memory(service)

        entry = await client.put(large, call_id="large")
        stored = memory.growth()
        await read_all(f"{service.url}/v1/captures/{entry.id}/content")
        await client.grep(entry.id, "never to be found")
        read = memory.growth()

    assert stored // MIB <= ALLOWED // MIB
    assert read // MIB <= ALLOWED // MIB


@pytest.mark.parametrize("store", ["file", "s3"])
async def test_memory_is_flat_while_a_large_capture_is_posted(
    start_services: StartServices, request: pytest.FixtureRequest, tmp_path: Path, store: str
) -> None:
    settings = {"store": request.getfixturevalue("s3_url")} if store == "s3" else {}
    (service,) = start_services(program=ServiceProcess.program, **settings)
    large = written(tmp_path / "large", noise)
    async with aiohttp.ClientSession() as session:
        for content in (log_lines(MIB), large):  # the first warms the service up
            memory = Memory(service)
            data = content if isinstance(content, bytes) else content.open("rb")
            async with session.post(f"{service.url}/v1/captures", data=data) as response:
                assert response.status == 201
        posted = memory.growth()

    assert posted // MIB <= ALLOWED // MIB


UPLOADS = 10
LIMIT = 192 * MIB


async def test_more_uploads_than_fit_wait_or_come_again_and_none_is_lost(
    start_services: StartServices,
) -> None:
    with ExitStack() as stack:
        try:
            group = stack.enter_context(cgroup.limited(f"overspill-test-{os.getpid()}", LIMIT))
        except cgroup.CannotLimit:  # then the budget is the one that such a cgroup gives
            (service,) = start_services(program=ServiceProcess.program, memory=32 * MIB)
        else:
            (service,) = start_services(program=group.program)
            stack.callback(service.stop)
        memory = Memory(service)
        told = await all_stored(service, UPLOADS, 20 * MIB)

        assert told["201"] == UPLOADS
        assert set(told) <= {"201", "503"}
        assert memory.growth() // MIB <= 80


SCANS = 8
LISTS = 64
LISTED = 250  # of 7 kB each


async def test_memory_is_bounded_while_many_search_sum_up_list_and_observe(
    start_services: StartServices,
) -> None:
    (service,) = start_services(program=ServiceProcess.program, memory=32 * MIB)
    async with aiohttp.ClientSession(service.url) as session:
        await stored_with_labels(session, LISTED)
        async with Client(service.url, timeout=PATIENCE) as client:
            entry = await client.put(b'one long "line ' * (9 * MIB // 15), call_id="line")
        content = f"/v1/captures/{entry.id}"
        batch = {"batch": "x" * 20, "observations": [OBSERVATION] * 1000}
        memory = Memory(service)
        statuses = await asyncio.gather(
            *(status_of(session.get(f"{content}/grep?pattern=%22[^%22]*%22q{n}")) for n in range(SCANS)),
            *(status_of(session.get(f"{content}/summary")) for _ in range(SCANS)),
            *(status_of(session.get(f"/v1/captures?limit={LISTED}")) for _ in range(LISTS)),
            *(status_of(session.post("/v1/observations", json=batch)) for _ in range(SCANS)),
        )

        assert set(statuses) <= {200, 429, 503}
        assert 200 in statuses
        assert memory.growth() // MIB <= 96


OBSERVATION = {"tool": "t" * 800, "outcome": "inline", "count": 1, "bytes_before": 1, "bytes_after": 1}


async def status_of(answer: AbstractAsyncContextManager[aiohttp.ClientResponse]) -> int:
    async with answer as response:
        await response.read()
        return response.status


async def stored_with_labels(session: aiohttp.ClientSession, count: int) -> None:
    labels = {f"{Header.LABEL}{number}": "x" * 240 for number in range(30)}
    answers = (
        session.post("/v1/captures", data=b"x", headers={**labels, Header.CALL_ID: str(number)})
        for number in range(count)
    )
    statuses = await asyncio.gather(*map(status_of, answers))
    assert set(statuses) == {201}


READERS = 300
AT_ONCE = 200 * MIB
LEFT = 64 * MIB


async def test_memory_is_bounded_while_many_clients_take_nothing_and_is_given_back(
    start_services: StartServices, tmp_path: Path
) -> None:
    (service,) = start_services(program=ServiceProcess.program, memory=96 * MIB)
    async with Client(service.url, timeout=PATIENCE, compress=False) as client:
        entry = await client.put(noise(32 * MIB), call_id="large")
        memory = Memory(service)
        address = urlsplit(service.url)
        async with AsyncExitStack() as stack:
            clients = [await stalled(stack, address, entry.id) for _ in range(READERS)]
            async with asyncio.timeout(PATIENCE):
                heads = await asyncio.gather(*(each.readuntil(b"\r\n\r\n") for each in clients))
            held = memory.growth()

        await until(lambda: memory.is_below(LEFT))
    statuses = {head.split()[1] for head in heads}
    assert statuses <= {b"200", b"429", b"503"}
    assert b"200" in statuses
    assert held // MIB <= AT_ONCE // MIB


async def stalled(stack: AsyncExitStack, address: SplitResult, capture: str) -> asyncio.StreamReader:
    """A client that asks for content and leaves it to its system to take any."""
    reader, writer = await asyncio.open_connection(address.hostname, address.port, limit=1024)
    stack.callback(abort, writer)
    writer.write(f"GET /v1/captures/{capture}/content HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return reader


def abort(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


def written(path: Path, make: Callable[[int, int], bytes]) -> Path:
    piece = make(PIECE, 0)  # far longer than what a compressor looks back at
    with path.open("wb") as file:
        for _ in range(SIZE // PIECE):
            file.write(piece)
    return path


async def read_all(url: str) -> None:
    headers = {"Accept-Encoding": "identity"}
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as response:
        size = 0
        async for piece in response.content.iter_any():
            size += len(piece)
        assert size == SIZE
