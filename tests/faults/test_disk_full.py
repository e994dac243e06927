"""A disk without room for another object, as a limit on the size of the service's files."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from overspill.errors import Expired, StoreFull

from tests.faults.traffic import MIB, client_of, noise, until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess

resource = pytest.importorskip("resource", reason="only POSIX limits the size of files")


def limit_files(service: ServiceProcess, size: int) -> None:
    if sys.platform != "linux":
        pytest.skip("only Linux limits the files of another process")
    resource.prlimit(service.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def files_in(folder: Path) -> set[Path]:
    return {path for path in (folder / "v1").rglob("*") if path.is_file()}


async def test_a_full_disk_stores_nothing_by_halves_and_still_deletes(own_service: ServiceProcess) -> None:
    async with client_of(own_service) as client:
        kept = await client.put(noise(MIB), call_id="kept")
        before = files_in(own_service.data / "objects")
        limit_files(own_service, 8 * MIB)
        with pytest.raises(StoreFull, match="limit on the size of files"):
            await client.put(noise(24 * MIB), call_id="large")

        assert files_in(own_service.data / "objects") == before
        assert await client.content(kept.id) == noise(MIB)
        await client.delete(kept.id)
        assert files_in(own_service.data / "objects") == set()
        limit_files(own_service, resource.RLIM_INFINITY)
        entry = await client.put(noise(24 * MIB), call_id="large")
        assert await client.content(entry.id) == noise(24 * MIB)


def fill(service: ServiceProcess) -> None:
    with suppress(OSError), (service.data / "ballast").open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


async def test_captures_are_removed_from_a_disk_without_a_free_byte(on_a_tiny_disk: ServiceProcess) -> None:
    service = on_a_tiny_disk
    async with client_of(service) as client:
        captures = [await client.put(noise(MIB // 4 + number), session="s") for number in range(4)]
        fill(service)

        assert (await client.delete(captures[0].id)).captures == 1
        with pytest.raises(StoreFull):
            await client.put(noise(MIB))
        assert (await client.delete_session("s")).captures == 3
        assert files_in(service.data / "objects") == set()


async def test_a_service_starts_on_a_disk_without_a_free_byte_and_sweeps_it(
    on_a_tiny_disk: ServiceProcess,
) -> None:
    service = on_a_tiny_disk
    async with client_of(service) as client:
        kept = await client.put(b"kept")
        short = await client.put(noise(MIB), ttl=1)
    await asyncio.to_thread(service.kill)
    fill(service)
    await asyncio.to_thread(service.start)

    async with client_of(service) as client:

        async def has_expired() -> bool:
            with suppress(Expired):
                await client.get(short.id)
                return False
            return True

        assert await client.content(kept.id) == b"kept"
        await until(has_expired)
        assert (await client.sweep()).captures == 1
        await client.put(noise(MIB // 2))
