"""A stop lets what is under way end; workers are replaced, added up and stopped together."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
from contextlib import AsyncExitStack, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import pytest
from overspill_service.resources.connections import Connections

from tests.faults.traffic import MIB, PATIENCE, client_of, noise, until
from tests.web.conftest import path_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from overspill.wire import Entry

    from tests.faults.conftest import StartServices
    from tests.servers.overspill import ServiceProcess


@cache
def large() -> bytes:
    return noise(24 * MIB)


async def is_refusing(service: ServiceProcess) -> bool:
    """Whether a fresh connection is refused, or readiness answers 503."""
    async with aiohttp.ClientSession() as session:
        try:
            async with session.get(f"{service.url}/readyz") as response:
                return response.status == 503
        except aiohttp.ClientConnectionError:
            return True


async def has_ended(pid: int) -> bool:
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return True


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_stop_lets_uploads_and_downloads_in_flight_end(
    start_services: StartServices, workers: int
) -> None:
    (service,) = await asyncio.to_thread(start_services, workers=workers)
    go_on = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield large()[: 20 * MIB]
        await go_on.wait()
        yield large()[20 * MIB :]

    async with client_of(service) as client, aiohttp.ClientSession() as session:
        entry = await client.put(large(), call_id="download")
        upload = asyncio.create_task(session.put(service.url + path_of(large()), data=body()))
        async with session.get(f"{service.url}/v1/captures/{entry.id}/content") as download:
            first = await download.content.readexactly(1000)
            os.kill(service.pid, signal.SIGTERM)
            await until(lambda: is_refusing(service))
            go_on.set()
            rest = await download.read()
        async with await upload as stored:
            assert stored.status == 201
        assert first + rest == large()
    assert await asyncio.to_thread(service._ended, PATIENCE) == 0


async def test_requests_on_open_connections_are_served_and_the_connections_closed(
    start_services: StartServices,
) -> None:
    (service,) = await asyncio.to_thread(start_services)
    go_on = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield large()[:MIB]
        await go_on.wait()

    async with AsyncExitStack() as stack:
        entry = await stored(service)
        requests = [
            ("PUT", path_of(b"new"), b"new", 201),
            ("GET", f"/v1/captures/{entry.id}/content", None, 200),
            ("GET", "/v1/captures", None, 200),
            ("GET", "/readyz", None, 503),
            ("DELETE", f"/v1/captures/{entry.id}", None, 200),
        ]
        sessions = [await stack.enter_async_context(aiohttp.ClientSession()) for _ in requests]
        for session in sessions:  # which keeps its connection open
            async with session.get(f"{service.url}/healthz") as response:
                assert response.status == 200
        holding = await stack.enter_async_context(aiohttp.ClientSession())
        upload = asyncio.create_task(holding.put(service.url + path_of(large()[:MIB]), data=body()))
        await until(lambda: has_upload(service))
        os.kill(service.pid, signal.SIGTERM)
        await until(lambda: is_refusing(service))
        for session, (method, path, data, status) in zip(sessions, requests, strict=True):
            async with session.request(method, service.url + path, data=data) as response:
                assert (response.status, response.headers["Connection"]) == (status, "close")
        go_on.set()
        async with await upload as ended:
            assert (ended.status, ended.headers["Connection"]) == (201, "close")
    assert await asyncio.to_thread(service._ended, PATIENCE) == 0


async def stored(service: ServiceProcess) -> Entry:
    async with client_of(service) as client:
        return await client.put(b"stored", call_id="old")


class Upper(asyncio.Protocol):
    """Answers in capitals. `made` is called for each connection."""

    def __init__(self, made: Callable[[], object] = lambda: None) -> None:
        self._made = made

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._made()

    def data_received(self, data: bytes) -> None:
        self.transport.write(data.upper())


def unexpected(error: OSError) -> None:
    raise error


async def test_a_connection_that_is_accepted_while_the_service_stops_is_served() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> Upper:
            return Upper(made=accepting.cancel)  # as a stop does

        accepting = asyncio.create_task(Connections().accept(listener, serve, unexpected))
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(b"first")
        with pytest.raises(asyncio.CancelledError):
            await accepting
        assert await reader.read(5) == b"FIRST"
        writer.write(b"second")
        assert await reader.read(6) == b"SECOND"
        writer.close()


async def test_who_has_connected_when_the_service_stops_is_served() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        clients = [await asyncio.open_connection(*listener.getsockname()) for _ in range(5)]
        accepting = asyncio.create_task(Connections().accept(listener, Upper, unexpected))
        await asyncio.sleep(0)
        accepting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await accepting
    for reader, writer in clients:
        writer.write(b"x")
        assert await reader.read(1) == b"X"
        writer.close()


async def test_a_stop_ends_after_its_grace_whatever_clients_do(start_services: StartServices) -> None:
    (service,) = await asyncio.to_thread(start_services, grace=0.5)

    async def body() -> AsyncIterator[bytes]:
        yield large()[:MIB]
        await asyncio.Event().wait()

    async with aiohttp.ClientSession() as session:
        upload = asyncio.create_task(session.put(service.url + path_of(large()), data=body()))
        await until(lambda: has_upload(service))
        assert await asyncio.to_thread(service.stop) == 0
        with pytest.raises(aiohttp.ClientError):
            await upload


async def has_upload(service: ServiceProcess) -> bool:
    return "overspill_uploads_in_progress 1.0" in await metrics_of(service)


async def metrics_of(service: ServiceProcess) -> str:
    async with aiohttp.ClientSession() as session, session.get(f"{service.url}/metrics") as response:
        return await response.text()


# --- workers --------------------------------------------------------------------------------------


def workers_of(service: ServiceProcess) -> set[int]:
    pid = service.pid
    return {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


async def puts_counted(service: ServiceProcess) -> float:
    found = re.findall(r"^overspill_captures_total\{.*\} (.*)$", await metrics_of(service), re.MULTILINE)
    return sum(map(float, found))


async def test_workers_add_up_their_figures_and_are_replaced_when_killed(
    start_services: StartServices,
) -> None:
    (service,) = await asyncio.to_thread(start_services, workers=2)
    before = workers_of(service)
    assert len(before) == 2
    async with client_of(service, retries=3) as client:
        for number in range(20):
            await client.put(f"{number}", call_id="many")
        assert {await puts_counted(service) for _ in range(6)} == {20}

        victim = min(before)
        os.kill(victim, signal.SIGKILL)
        await until(lambda: is_replaced(service, victim))
        for number in range(20, 30):
            await client.put(f"{number}", call_id="many")
        assert {await puts_counted(service) for _ in range(6)} == {30}
        assert (await client.usage()).captures == 30

    workers = workers_of(service)
    assert await asyncio.to_thread(service.stop) == 0
    for pid in workers | before:
        assert await has_ended(pid)


async def is_replaced(service: ServiceProcess, victim: int) -> bool:
    return victim not in workers_of(service) and len(workers_of(service)) == 2


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files that services of this test use."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    return tmp_path / "temporary"


async def test_figures_of_workers_need_no_folder_of_temporary_files(
    start_services: StartServices, temporary: Path
) -> None:
    (service,) = await asyncio.to_thread(start_services, workers=2)
    temporary.rmdir()
    async with client_of(service) as client:
        for number in range(5):
            await client.put(f"{number}", call_id="many", tool=f"tool-{number}")

    assert await puts_counted(service) == 5


@pytest.fixture
def full(temporary: Path) -> Iterator[Path]:
    """A folder of temporary files on a disk of its own that is full."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(temporary)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root may mount a file system that is small enough to fill")
    yield temporary
    subprocess.run(["umount", "--lazy", str(temporary)], check=True)


async def test_a_full_disk_of_temporary_files_ends_no_worker(
    start_services: StartServices, full: Path
) -> None:
    (service,) = await asyncio.to_thread(start_services, workers=2)
    with suppress(OSError):
        (full / "file").write_bytes(bytes(2**20))
    before = workers_of(service)
    async with client_of(service) as client:
        for number in range(300):
            await client.put(f"{number}", call_id="many", tool=f"tool-{number}")

    assert await puts_counted(service) == 300
    assert workers_of(service) == before


async def test_workers_end_when_their_supervisor_is_killed(start_services: StartServices) -> None:
    (service,) = await asyncio.to_thread(start_services, workers=2)
    workers = workers_of(service)
    os.kill(service.pid, signal.SIGKILL)

    async def have_ended() -> bool:
        return all([await has_ended(pid) for pid in workers])

    await until(have_ended)
