"""Sweeps of several replicas at once remove what is due, once, and nothing else."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from overspill import wire
from overspill.wire import Code, Scope
from overspill_service.archive.recovery.entries import encode_entry
from overspill_service.archive.reservations import Reservation
from overspill_service.archive.sweep import sweep_orphans
from overspill_service.archive.uploading import Upload
from overspill_service.catalog.quotas import Quota
from overspill_service.catalog.records import Entry
from overspill_service.maintenance import Maintenance
from overspill_service.store_format import object_keys
from overspill_service.store_format.ingest import Ingest
from overspill_service.tenants.keys import hash_key, new_key

from tests.faults.traffic import (
    MIB,
    advance,
    ample_memory,
    code_of,
    content_of,
    keys_in,
    noise,
    until,
    usage_of,
)
from tests.web.conftest import Api, id_of, path_of, problem

if TYPE_CHECKING:
    from overspill_service.archive.archive import Archive

    from tests.servers.redis import RedisServer

DAY = 24 * 3600
LOG = b"one line\n"


@pytest.fixture
async def fleet(
    start_api: Callable[..., Any], own_redis: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[Api]:
    """Three replicas that cut segments small."""
    monkeypatch.setattr("overspill_service.archive.uploading.SEGMENT_SIZE", 64 * 1024)
    settings = {"store": f"file://{tmp_path}/objects", "catalog": own_redis.url}
    replicas = [await start_api(**settings) for _ in range(3)]
    await until(replicas[0].service.archive.catalog.is_complete)
    return replicas


async def sweep(api: Api) -> int:
    response = await api.send("POST", wire.Path.SWEEP)
    return msgspec.json.decode(await response.read(), type=wire.Removed).captures


# --- expired captures -----------------------------------------------------------------------------


async def test_replicas_that_sweep_at_once_remove_each_capture_once(fleet: list[Api]) -> None:
    for number in range(60):
        await fleet[0].put(b"%d" % number, Overspill_Ttl="60")
    await fleet[0].put(LOG)
    advance(fleet, 61)

    removed = await asyncio.gather(*(sweep(api) for api in fleet))

    assert sum(removed) == 60
    usage = await usage_of(fleet[1])
    assert (usage.captures, usage.size) == (1, len(LOG))
    assert len(await keys_in(fleet[2])) == 1
    assert await content_of(fleet[2], path_of(LOG)) == LOG


async def test_a_sweep_never_takes_a_new_upload_of_the_same_id_along(fleet: list[Api]) -> None:
    for _ in range(15):
        await fleet[0].put(LOG, Overspill_Ttl="60")
        advance(fleet, 61)
        sweeps = asyncio.gather(*(sweep(api) for api in fleet))
        put = await fleet[0].send("PUT", path_of(LOG), data=LOG, headers={"Overspill-Ttl": "60"})
        await sweeps

        assert put.status == 201
        assert await content_of(fleet[1], path_of(LOG)) == LOG
    assert (await usage_of(fleet[0])).captures == 1
    assert len(await keys_in(fleet[0])) == 1


async def test_a_repetition_that_was_sent_while_the_capture_expired_keeps_it(fleet: list[Api]) -> None:
    await fleet[0].put(LOG, Overspill_Ttl="60")
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield LOG[:4]
        begun.set()
        await go_on.wait()
        yield LOG[4:]

    put = asyncio.create_task(
        fleet[0].send("PUT", path_of(LOG), data=body(), headers={"Overspill-Ttl": "600"})
    )
    await begun.wait()
    await until(lambda: is_held(fleet[0]))
    advance(fleet, 61)
    go_on.set()
    await asyncio.gather(*(sweep(api) for api in fleet))
    response = await put

    if response.status == 503:  # the sweep came first
        assert await code_of(response) == Code.CATALOG_UNAVAILABLE
        response = await fleet[0].send("PUT", path_of(LOG), data=LOG)
    assert response.status in (200, 201)
    assert await content_of(fleet[1], path_of(LOG)) == LOG


async def is_held(api: Api) -> bool:
    return "uploads_in_progress 1.0" in await (await api.get("/metrics")).text()


async def test_an_expired_capture_tells_its_own_tenant_when_and_others_nothing(
    start_api: Callable[..., Any], tmp_path: Path
) -> None:
    mine, theirs = new_key(), new_key()
    tenants = tmp_path / "tenants.toml"
    tenants.write_text("".join(map(tenant, ("mine", "theirs"), (mine, theirs))))
    api: Api = await start_api(tenants=tenants)
    headers = {"Authorization": f"Bearer {mine}"}
    await api.send("PUT", path_of(LOG), data=LOG, headers={**headers, "Overspill-Ttl": "60"})
    entry = await (await api.get(path_of(LOG), headers=headers)).json()
    advance([api], 61)

    for _ in range(2):  # before the sweep, and after it
        found = await problem(await api.get(f"{path_of(LOG)}/tail", headers=headers))
        assert (found.status, found.code) == (410, Code.EXPIRED)
        assert found.expired is not None
        assert wire_time(found.expired) == entry["expires"]
        stranger = await api.get(f"{path_of(LOG)}/tail", headers={"Authorization": f"Bearer {theirs}"})
        assert (stranger.status, await code_of(stranger)) == (404, Code.NOT_FOUND)
        await api.send("POST", wire.Path.SWEEP, headers=headers)
    assert await keys_in(api) == []


def tenant(name: str, key: str) -> str:
    scopes = ", ".join(f'"{scope.value}"' for scope in Scope)
    return f'[[tenants]]\nname = "{name}"\n[[tenants.keys]]\nhash = "{hash_key(key)}"\nscopes = [{scopes}]\n'


def wire_time(instant: object) -> str:
    return msgspec.json.encode(instant).decode().strip('"')


# --- orphans --------------------------------------------------------------------------------------


async def upload_of(archive: Archive, content: bytes, capture: str = "") -> tuple[Upload, Entry]:
    """Segments of an upload that was never committed, and the entry that its last one would hold."""
    name = object_keys.new_upload()
    memory = await ample_memory()
    capture = capture or id_of(content)
    reservation = Reservation(archive.catalog, "default", name, Quota())
    upload = Upload(archive.store, archive.cpu, memory, reservation, capture=capture)
    ingest = Ingest(None, level=3, limit=2**40)

    async def body() -> AsyncIterator[bytes]:
        yield content

    await upload.fill(ingest, body())
    entry = Entry(
        tenant="default",
        id=upload.capture,
        upload=upload.name,
        state=wire.State.COMPLETE,
        size=len(content),
        lines=content.count(b"\n"),
        sha256=ingest.sha256,
        content_type="text/plain",
        kind="text",
        call_id="call_0",
        created=time.time(),
        expires=time.time() + DAY,
        segments=[],
    )
    return upload, entry


def make_older(folder: Path, seconds: float) -> None:
    for file in folder.rglob("*"):
        if file.is_file():
            os.utime(file, (time.time() - seconds,) * 2)


async def test_old_orphans_go_and_uploads_in_progress_stay(fleet: list[Api], tmp_path: Path) -> None:
    archive = fleet[0].service.archive
    entry = await fleet[0].put(LOG)
    surplus, draft = await upload_of(archive, LOG)
    await surplus.seal(encode_entry(draft))
    broken_off, _ = await upload_of(archive, noise(MIB, 1))
    await broken_off._wait_for_put()
    make_older(tmp_path / "objects", 2 * DAY)
    in_progress, later = await upload_of(archive, noise(MIB, 2))
    await in_progress._wait_for_put()

    await asyncio.gather(*(sweep_orphans(api.service.archive, age=DAY) for api in fleet))

    kept = {key.split("/")[2] for key in await keys_in(fleet[0])}
    assert kept == {entry.id, in_progress.capture}
    assert await content_of(fleet[0], path_of(LOG)) == LOG
    await in_progress.seal(encode_entry(later))
    assert len(await keys_in(fleet[0])) == 1 + len(in_progress.segments)


@pytest.mark.parametrize("age", [0.0, 2 * DAY])
async def test_a_whole_upload_without_an_entry_gets_it_back_at_any_age(
    fleet: list[Api], tmp_path: Path, age: float
) -> None:
    content = noise(MIB)
    upload, draft = await upload_of(fleet[0].service.archive, content)
    await upload.seal(encode_entry(draft))
    make_older(tmp_path / "objects", age)

    await asyncio.gather(*(sweep_orphans(api.service.archive, age=DAY) for api in fleet))

    assert await content_of(fleet[1], path_of(content)) == content
    usage = await usage_of(fleet[1])
    assert (usage.captures, usage.size) == (1, len(content))


@pytest.mark.parametrize("earlier", [LOG, b"another content\n"])
async def test_of_two_whole_uploads_the_one_that_lives_is_found_again(
    fleet: list[Api], own_redis: RedisServer, earlier: bytes
) -> None:
    archive = fleet[0].service.archive
    expired, draft = await upload_of(archive, earlier, capture=id_of(LOG))
    past = msgspec.structs.replace(draft, created=time.time() - DAY, expires=time.time() - 60)
    await expired.seal(encode_entry(past))
    await fleet[0].put(LOG)
    own_redis.restart(empty=True)

    assert await content_of(fleet[1], path_of(LOG)) == LOG


async def test_nothing_is_deleted_while_the_catalog_is_lost(
    fleet: list[Api], own_redis: RedisServer, tmp_path: Path
) -> None:
    for number in range(5):
        await fleet[0].put(b"%d" % number)
    make_older(tmp_path / "objects", 2 * DAY)
    before = await keys_in(fleet[0])
    own_redis.restart(empty=True)

    for api in fleet:
        assert (await sweep_orphans(api.service.archive, age=DAY)).deleted == 0
    assert await keys_in(fleet[0]) == before


async def test_a_catalog_lost_during_a_sweep_costs_nothing(
    fleet: list[Api], own_redis: RedisServer, tmp_path: Path
) -> None:
    await fleet[0].put(LOG)
    broken = tmp_path / "objects" / "v1" / "default"
    make_older(tmp_path / "objects", 2 * DAY)
    archive = fleet[0].service.archive
    listing = archive.store.list

    async def lost_after_the_first_look(prefix: str) -> AsyncIterator[Any]:
        own_redis.command("FLUSHALL")
        (segment,) = [path for path in broken.rglob("*") if path.is_file()]
        segment.write_bytes(segment.read_bytes()[:-1])  # nor can it be read: so it looks like an orphan
        make_older(tmp_path / "objects", 2 * DAY)
        async for each in listing(prefix):
            yield each

    archive.store.list = lost_after_the_first_look  # type: ignore[method-assign]

    assert (await sweep_orphans(archive, age=DAY)).deleted == 0
    assert len([path for path in broken.rglob("*") if path.is_file()]) == 1


async def test_orphans_are_looked_for_every_few_hours_and_not_at_every_sweep(fleet: list[Api]) -> None:
    listed = 0
    listing = fleet[0].service.archive.store.list

    def counted(prefix: str) -> AsyncIterator[Any]:
        nonlocal listed
        listed += prefix == object_keys.ROOT
        return listing(prefix)

    fleet[0].service.archive.store.list = counted  # type: ignore[method-assign]
    maintenance = Maintenance(fleet[0].service)
    for _ in range(3):
        await maintenance.sweep_once()

    assert listed == 1
