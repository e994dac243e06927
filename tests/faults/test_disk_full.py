"""A disk without room for another object, as a limit on the size of the service's files."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from overspill.errors import StoreFull

from tests.faults.traffic import MIB, client_of, noise

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
