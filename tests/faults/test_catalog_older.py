"""A catalog that was put back from an older copy is known as such, and rebuilt before anything is missed."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from overspill.wire import Code

from tests.faults.traffic import client_of, code_of, until
from tests.servers.redis import RedisServer, running
from tests.web.conftest import path_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from overspill.transfer.client import Client

    from tests.faults.conftest import StartServices
    from tests.servers.overspill import ServiceProcess

COUNT = 30


async def store(client: Client, first: int) -> None:
    for number in range(first, first + COUNT):
        await client.put(f"output {number}\n", call_id=f"call-{number}")


async def require_all(client: Client, count: int) -> None:
    """Every capture is listed, counted and found by its call id, at once."""
    listing = await client.list(limit=1000)
    assert (len(listing.captures), listing.incomplete) == (count, False)
    assert (await client.usage()).captures == count
    for number in range(count):
        assert await client.content(f"call:call-{number}") == f"output {number}\n".encode()


def backed_up(file: Path, copy: Path) -> None:
    """Copy with SQLite's own backup, which sees the write-ahead log."""
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)


def copied_without_log(file: Path, copy: Path) -> None:
    shutil.copy(file, copy)


def put_back(copy: Path, file: Path) -> None:
    for each in file.parent.glob(f"{file.name}*"):
        each.unlink()
    shutil.copy(copy, file)


async def never(*_: object) -> None:
    """Stand for a rebuild that has not begun yet."""


@pytest.mark.parametrize("copy_catalog", [backed_up, copied_without_log])
async def test_a_restored_catalog_file_lacks_nothing_once_the_service_serves(
    own_service: ServiceProcess, tmp_path: Path, copy_catalog: Callable[[Path, Path], None]
) -> None:
    file, copy = own_service.data / "catalog.sqlite", tmp_path / "copy.sqlite"
    async with client_of(own_service) as client:
        await store(client, 0)
        copy_catalog(file, copy)
        await store(client, COUNT)
    await asyncio.to_thread(own_service.kill)
    put_back(copy, file)
    await asyncio.to_thread(own_service.start)

    async with client_of(own_service) as client:
        await require_all(client, 2 * COUNT)


async def test_a_catalog_of_an_earlier_generation_is_incomplete(
    start_api: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, copy = tmp_path / "data", tmp_path / "copy.sqlite"
    settings = {"store": f"file://{tmp_path}/objects", "catalog": "sqlite:", "data": data}
    first = await start_api(**settings)
    await first.put(b"early\n", "early")
    await first.stop()
    shutil.copy(data / "catalog.sqlite", copy)
    second = await start_api(**settings)
    await second.put(b"late\n", "late")
    await second.stop()
    put_back(copy, data / "catalog.sqlite")
    monkeypatch.setattr("overspill_service.maintenance.rebuild_if_due", never)
    third = await start_api(**settings)

    refused = await third.get("/v1/captures/call:late")
    assert (refused.status, await code_of(refused)) == (503, Code.CATALOG_INCOMPLETE)
    assert (await third.get(path_of(b"late\n", "late"))).status == 200


async def test_a_catalog_that_was_closed_is_trusted(own_service: ServiceProcess) -> None:
    async with client_of(own_service) as client:
        await store(client, 0)
    await asyncio.to_thread(own_service.restart)

    assert "rebuilt" not in own_service.logged()
    assert len([*(own_service.data / "objects" / "v1-catalog").rglob("*~/*")]) == 1
    async with client_of(own_service) as client:
        await require_all(client, COUNT)


async def test_an_old_dump_of_redis_is_rebuilt(start_services: StartServices, tmp_path: Path) -> None:
    folder = tmp_path / "redis"
    with running(RedisServer(folder)) as redis:
        (service,) = await asyncio.to_thread(start_services, 1, catalog=redis.url)
        async with client_of(service, retries=5) as client:
            await store(client, 0)
            redis.command("SAVE")
            shutil.copy(folder / "dump.rdb", tmp_path / "old.rdb")
            await store(client, COUNT)
            redis.kill()
            shutil.copy(tmp_path / "old.rdb", folder / "dump.rdb")
            redis.start()

            async def is_whole() -> bool:
                return not (await client.list()).incomplete

            await until(is_whole)
            await require_all(client, 2 * COUNT)
