"""Readiness says no, and why, where nothing could be stored; nothing is acknowledged meanwhile."""

from __future__ import annotations

import shutil
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import aiohttp
import pytest
from overspill.errors import CatalogUnavailable, StoreFull, StoreUnavailable

from tests.faults.traffic import MIB, client_of, noise

if TYPE_CHECKING:
    from tests.servers.overspill import ServiceProcess

resource = pytest.importorskip("resource", reason="only POSIX limits the size of files")


async def readiness(service: ServiceProcess) -> tuple[int, str]:
    """Status and detail."""
    async with aiohttp.ClientSession() as session, session.get(f"{service.url}/readyz") as response:
        return response.status, (await response.json()).get("detail", "")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the files of another process")
async def test_a_limit_on_the_size_of_files_under_which_nothing_can_be_stored(
    own_service: ServiceProcess,
) -> None:
    resource.prlimit(own_service.pid, resource.RLIMIT_FSIZE, (MIB, resource.RLIM_INFINITY))
    status, detail = await readiness(own_service)
    async with client_of(own_service) as client:
        with pytest.raises(StoreFull, match="ulimit -f"):
            await client.put(noise(2 * MIB))

        assert status == 507
        assert "ulimit -f" in detail
        assert "trouble=file_size" in own_service.logged()
        resource.prlimit(own_service.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        await client.put(noise(2 * MIB))
        assert await readiness(own_service) == (200, "")


@pytest.mark.parametrize("stands_in", [False, True], ids=["moved", "replaced"])
async def test_a_data_directory_that_is_moved_away_is_refused_until_it_is_back(
    own_service: ServiceProcess, *, stands_in: bool
) -> None:
    data, away = own_service.data, own_service.data.with_name("away")
    async with client_of(own_service) as client:
        kept = await client.put(b"kept")
        data.rename(away)
        if stands_in:
            shutil.copytree(away, data)
        with pytest.raises((CatalogUnavailable, StoreUnavailable), match="moved away or replaced"):
            await client.put(b"not acknowledged")
        status, detail = await readiness(own_service)
        assert status == 503
        assert "moved away or replaced" in detail
        assert data.exists() is stands_in

        shutil.rmtree(data, ignore_errors=True)
        away.rename(data)
        assert await client.content(kept.id) == b"kept"
        await client.put(b"stored again")
        assert await readiness(own_service) == (200, "")


async def test_a_catalog_that_is_overwritten_takes_no_more_captures(own_service: ServiceProcess) -> None:
    catalog = own_service.data / "catalog.sqlite"
    own_service.restart()  # which has the log written back
    with catalog.open("r+b") as file:
        file.write(b"\xff" * catalog.stat().st_size)
    status, detail = await readiness(own_service)
    async with client_of(own_service) as client:
        with pytest.raises(CatalogUnavailable, match="rebuilt from the object store"):
            await client.put(b"not acknowledged")

    assert status == 503
    assert "move it away and start again" in detail


async def test_a_full_disk_is_said_and_everything_goes_on_once_there_is_room(
    on_a_tiny_disk: ServiceProcess,
) -> None:
    service = on_a_tiny_disk
    ballast = service.data / "ballast"
    async with client_of(service) as client:
        kept = await client.put(b"kept")
        with suppress(OSError), ballast.open("wb") as file:
            file.write(bytes(8 * MIB))
        with pytest.raises(StoreFull, match="is full"):
            await client.put(noise(MIB))
        status, detail = await readiness(service)
        assert status == 507
        assert "delete files on it or enlarge it" in detail
        assert await client.content(kept.id) == b"kept"

        ballast.unlink()
        await client.put(noise(MIB))
        assert await readiness(service) == (200, "")
        assert service.logged().count("trouble=full") == 1


async def test_a_disk_without_inodes_is_told_from_a_full_one(on_a_tiny_disk: ServiceProcess) -> None:
    service = on_a_tiny_disk
    with suppress(OSError):
        for number in range(300):
            (service.data / f"ballast-{number}").touch()
    async with client_of(service) as client:
        with pytest.raises(StoreFull, match="no free inodes"):
            await client.put(b"x")

    status, detail = await readiness(service)
    assert status == 507
    assert "no free inodes" in detail
