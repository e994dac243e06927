"""Objects that interrupted uploads leave are counted and deleted. Those of running uploads stay."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import time
from collections.abc import AsyncIterator, Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import msgspec
import pytest
from overspill_service.archive.sweep import sweep_orphans
from overspill_service.command_line import main
from overspill_service.errors import CatalogUnavailable
from overspill_service.objects.file import FileStore
from overspill_service.store_format import object_keys

from tests.faults.test_sweep import make_older
from tests.faults.traffic import MIB, client_of, content_of, keys_in, noise, until
from tests.web.conftest import Api, path_of

if TYPE_CHECKING:
    from overspill_service.objects import StoredObject

    from tests.servers.overspill import ServiceProcess

KIB = 1024


@cache
def large() -> bytes:
    """More than a segment."""
    return noise(40 * MIB)


@pytest.fixture(autouse=True)
def leave_logging_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the logging of the tests when a command runs in this process."""
    monkeypatch.setattr("overspill_service.telemetry.logs.configure", lambda *_: None)


def bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in (folder / "v1").rglob("*") if path.is_file())


async def orphan_bytes(url: str) -> float:
    async with aiohttp.ClientSession() as session, session.get(f"{url}/metrics") as response:
        lines = (await response.text()).splitlines()
    return float(next(line for line in lines if line.startswith("overspill_orphan_bytes")).split()[-1])


async def test_what_a_killed_service_left_is_counted_at_its_next_start_and_goes_with_a_sweep(
    own_service: ServiceProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    objects, never = own_service.data / "objects", asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield large()
        await never.wait()

    async def has_segments() -> bool:
        return bytes_in(objects) > 30 * MIB

    async with client_of(own_service) as client, aiohttp.ClientSession() as session:
        kept = await client.put(b"kept\n", call_id="kept")
        upload = asyncio.create_task(session.put(own_service.url + path_of(large()), data=body()))
        await until(has_segments)
        await asyncio.to_thread(own_service.kill)
        await asyncio.wait([upload])
        assert upload.exception() is not None
    folder = next(path for path in (objects / "v1" / "default").iterdir())
    (folder / "cap_a,b-00000~0123456789ab").write_bytes(bytes(MIB))
    left = bytes_in(objects) - kept.stored_size
    await asyncio.to_thread(own_service.start)

    async def is_counted() -> bool:
        return await orphan_bytes(own_service.url) == left

    await until(is_counted)
    make_older(objects, 200)
    arguments = ["sweep", "--data", str(own_service.data), "--orphan-age", "0"]
    assert await asyncio.to_thread(main, arguments) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["orphan_bytes_left"] == 0
    assert bytes_in(objects) == kept.stored_size


async def test_an_upload_under_way_keeps_its_segments_at_any_age(
    start_api: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overspill_service.archive.uploading.SEGMENT_SIZE", 64 * KIB)
    monkeypatch.setattr("overspill_service.archive.upload_leases.RENEW_SECONDS", 0.0)
    api: Api = await start_api(store=f"file://{tmp_path}/objects", catalog="sqlite:", data=tmp_path)
    content, go_on = noise(4 * MIB), asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield content[: 3 * MIB]
        await go_on.wait()
        yield content[3 * MIB :]

    async def has_segments() -> bool:
        return len(await keys_in(api)) > 2

    upload = asyncio.create_task(api.send("PUT", path_of(content), data=body()))
    await until(has_segments)
    make_older(tmp_path / "objects", 200)
    swept = await sweep_orphans(api.service.archive, age=-1)
    go_on.set()

    assert (await upload).status == 201
    assert (swept.deleted, swept.size > 0) == (0, True)
    assert await content_of(api, path_of(content)) == content


async def test_an_upload_outlasts_a_catalog_that_does_not_renew_its_lease(
    start_api: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overspill_service.archive.upload_leases.RENEW_SECONDS", 0.0)
    api: Api = await start_api()
    catalog, content, refused = api.service.archive.catalog, noise(2 * MIB), []
    lease = catalog.lease

    async def fail(name: str, holder: str, ttl: float) -> bool:
        if not name.startswith("upload:"):
            return await lease(name, holder, ttl)
        refused.append(name)
        raise CatalogUnavailable("Redis is not reachable")

    monkeypatch.setattr(catalog, "lease", fail)
    response = await api.send("PUT", path_of(content), data=content)

    assert response.status == 201
    assert refused


async def test_a_temporary_file_that_is_being_written_stays(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await store.put("v1/default/cap_a/b-00000", [b"kept"])
    folder = store.path_of("v1/default/cap_a/b-00000").parent
    written, left, young = (folder / f"cap_a,{name}-00000~0123456789ab" for name in ("w", "l", "y"))
    for path in (written, left, young):
        path.write_bytes(bytes(KIB))
    for path in (written, left):
        os.utime(path, (time.time() - 100,) * 2)

    with written.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert await store.sweep_temporary(0) == 2 * KIB

    assert [path.exists() for path in (written, left, young)] == [True, False, True]
    assert await store.sweep_temporary(0) == KIB
    assert await store.read("v1/default/cap_a/b-00000", 0, 4) == b"kept"
    await store.close()


class Compared(str):
    """A key that counts how often it is compared with another text."""

    comparisons = 0
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        Compared.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


async def test_how_long_the_orphans_of_one_capture_take_grows_with_their_number_only(
    start_api: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    api: Api = await start_api()
    archive, number = api.service.archive, 300
    await until(archive.catalog.is_complete)
    capture, upload = object_keys.provisional_id(), object_keys.new_upload()
    for each in range(number):
        key = object_keys.segment_key("default", capture, upload, each)
        await archive.store.put(key, [b"nothing that can be read"])
    listed = archive.store.list

    async def noted(prefix: str) -> AsyncIterator[StoredObject]:
        async for stored in listed(prefix):
            yield msgspec.structs.replace(stored, key=Compared(stored.key))

    monkeypatch.setattr(archive.store, "list", noted)
    swept = await sweep_orphans(archive, age=-60.0)

    assert (swept.deleted, swept.size) == (number, 0)
    assert Compared.comparisons < 20 * number
