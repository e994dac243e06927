"""All of Redis is lost while replicas serve: the object store alone brings everything back."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from overspill import wire
from overspill.errors import NotFound
from overspill_service.archive.recovery.entries import captures_in, entry_of
from overspill_service.archive.recovery.rebuild import ensure_entry, rebuild_if_due
from overspill_service.archive.sweep import sweep_expired
from overspill_service.catalog.quotas import Quota
from overspill_service.catalog.records import Entry, Tombstone

from tests.faults.traffic import (
    MIB,
    advance,
    client_of,
    code_of,
    content_of,
    log_lines,
    noise,
    until,
    usage_of,
)
from tests.web.conftest import Api, id_of, path_of

if TYPE_CHECKING:
    from tests.faults.conftest import StartServices
    from tests.servers.redis import RedisServer

DAY = 24 * 3600


@pytest.fixture
async def pair(
    start_api: Callable[..., Any], own_redis: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[Api]:
    """Two replicas that rebuild when the test says so, and cut segments small."""
    monkeypatch.setattr("overspill_service.archive.uploading.SEGMENT_SIZE", 64 * 1024)
    monkeypatch.setattr("overspill_service.maintenance.POLL_SECONDS", 3600.0)
    settings = {"store": f"file://{tmp_path}/objects", "catalog": f"{own_redis.url}?deadline=20"}
    replicas = [await start_api(**settings) for _ in range(2)]
    await until(replicas[0].service.archive.catalog.is_complete)
    return replicas


async def rebuild(api: Api) -> None:
    assert await rebuild_if_due(api.service.archive, "test") is not None


async def test_every_replica_reads_by_id_at_once(pair: list[Api], own_redis: RedisServer) -> None:
    contents = {path_of(each): each for each in (b"", log_lines(3000), noise(MIB))}
    for each in contents.values():
        await pair[0].put(each)
    own_redis.restart(empty=True)

    for path, expected in contents.items():
        for api in pair:
            assert await content_of(api, path) == expected
            tail = await api.get(f"{path}/tail?lines=1")
            assert tail.status == 200


async def test_what_only_the_catalog_can_tell_waits_for_the_rebuild(
    pair: list[Api], own_redis: RedisServer
) -> None:
    for number in range(40):
        await pair[0].put(b"%d\n" % number, f"call_{number}", Overspill_Session="s")
    before = await usage_of(pair[0])
    own_redis.restart(empty=True)

    refused = await pair[1].get("/v1/captures/call:call_7?session=s")
    assert (refused.status, await code_of(refused)) == (503, wire.Code.CATALOG_INCOMPLETE)
    erasure = await pair[1].send("DELETE", "/v1/sessions/s")
    assert (erasure.status, await code_of(erasure)) == (503, wire.Code.CATALOG_INCOMPLETE)
    assert (await (await pair[1].get("/v1/captures")).json())["incomplete"]

    await rebuild(pair[0])

    found = await pair[1].get("/v1/captures/call:call_7/content?session=s")
    assert await found.read() == b"7\n"
    assert await usage_of(pair[1]) == before
    listing = await (await pair[1].get("/v1/captures")).json()
    assert (len(listing["captures"]), listing["incomplete"]) == (40, False)


async def test_captures_of_many_segments_come_back_whole(pair: list[Api], own_redis: RedisServer) -> None:
    large = noise(3 * MIB)
    entry = await pair[0].put(large)
    own_redis.restart(empty=True)
    await rebuild(pair[1])

    assert await content_of(pair[1], path_of(large)) == large
    rebuilt = await (await pair[1].get(path_of(large))).json()
    assert (rebuilt["stored_size"], rebuilt["sha256"]) == (entry.stored_size, entry.sha256)


@pytest.mark.parametrize("ttl", [600, 3 * DAY])
async def test_a_changed_expiry_comes_back(pair: list[Api], own_redis: RedisServer, ttl: int) -> None:
    await pair[0].put(b"kept\n")
    for each in (2 * DAY, ttl):
        changed = await pair[0].send("PATCH", path_of(b"kept\n"), json={"ttl": each})
    expected = (await changed.json())["expires"]
    own_redis.restart(empty=True)

    assert (await (await pair[0].get(path_of(b"kept\n"))).json())["expires"] == expected
    own_redis.restart(empty=True)
    await rebuild(pair[1])
    assert (await (await pair[1].get(path_of(b"kept\n"))).json())["expires"] == expected


async def test_the_expiry_that_was_set_last_comes_back_also_where_an_earlier_one_was_left_behind(
    pair: list[Api], own_redis: RedisServer, tmp_path: Path
) -> None:
    await pair[0].put(b"kept\n")
    await pair[0].send("PATCH", path_of(b"kept\n"), json={"ttl": 2 * DAY})
    (earlier,) = (tmp_path / "objects").rglob("*-expires-*")
    marker, stamp = earlier.read_bytes(), earlier.stat().st_mtime
    changed = await pair[0].send("PATCH", path_of(b"kept\n"), json={"ttl": 600})
    earlier.write_bytes(marker)  # as where its deletion failed
    os.utime(earlier, (stamp - 1, stamp - 1))
    own_redis.restart(empty=True)

    assert (await (await pair[0].get(path_of(b"kept\n"))).json())["expires"] == (await changed.json())[
        "expires"
    ]


async def test_an_expiry_set_during_a_rebuild_holds(pair: list[Api], own_redis: RedisServer) -> None:
    await pair[0].put(b"kept\n")
    await pair[0].send("PATCH", path_of(b"kept\n"), json={"ttl": 600})
    own_redis.restart(empty=True)
    archive = pair[1].service.archive
    (listed,) = [each async for each in captures_in(archive)]
    changed = await pair[0].send("PATCH", path_of(b"kept\n"), json={"ttl": 2 * DAY})

    assert await ensure_entry(archive, listed)
    found = await pair[0].get(path_of(b"kept\n"))
    assert (await found.json())["expires"] == (await changed.json())["expires"]


async def test_a_redis_that_comes_back_older_than_it_was_learns_what_it_missed(
    pair: list[Api], own_redis: RedisServer
) -> None:
    await pair[0].put(b"kept\n")
    old = await pair[0].service.archive.catalog.get("default", id_of(b"kept\n"))
    assert isinstance(old, Entry)
    changed = await pair[0].send("PATCH", path_of(b"kept\n"), json={"ttl": 3 * DAY})
    await pair[0].put(b"later\n")
    own_redis.restart(empty=True)
    await pair[0].service.archive.catalog.commit(old, Quota())
    await rebuild(pair[1])

    found = await pair[0].get(path_of(b"kept\n"))
    assert (await found.json())["expires"] == (await changed.json())["expires"]
    assert await content_of(pair[1], path_of(b"later\n")) == b"later\n"
    assert (await usage_of(pair[1])).captures == 2


async def has_read(api: Api) -> None:
    await api.get(path_of(b"kept\n"))


async def has_swept(api: Api) -> None:
    assert (await sweep_expired(api.service.archive, "default")).captures == 0


async def has_stored_again(api: Api) -> None:
    again = await api.send("PUT", path_of(b"kept\n"), data=b"kept\n")
    assert again.status == 200


@pytest.mark.parametrize("touched", [has_read, has_swept, has_stored_again, rebuild])
async def test_what_only_an_older_redis_takes_for_expired_stays(
    pair: list[Api], own_redis: RedisServer, touched: Callable[[Api], Awaitable[None]]
) -> None:
    await pair[0].put(b"kept\n", Overspill_Ttl="60")
    old = await pair[0].service.archive.catalog.get("default", id_of(b"kept\n"))
    assert isinstance(old, Entry)
    extended = await pair[0].send("PATCH", path_of(b"kept\n"), json={"ttl": 9 * DAY})
    own_redis.restart(empty=True)
    await pair[0].service.archive.catalog.commit(old, Quota())
    advance(pair, 61)
    await touched(pair[1])

    found = await pair[0].get(path_of(b"kept\n"))
    assert (await found.json())["expires"] == (await extended.json())["expires"]
    assert await content_of(pair[1], path_of(b"kept\n")) == b"kept\n"


async def test_what_has_expired_does_not_come_back(pair: list[Api], own_redis: RedisServer) -> None:
    await pair[0].put(b"short\n", Overspill_Ttl="60")
    own_redis.restart(empty=True)
    advance(pair, 61)

    assert (await pair[0].get(path_of(b"short\n"))).status == 410
    await rebuild(pair[0])
    assert (await pair[0].get(path_of(b"short\n"))).status == 410
    assert (await usage_of(pair[0])).captures == 0


async def test_an_id_stays_taken_while_the_catalog_is_lost(pair: list[Api], own_redis: RedisServer) -> None:
    await pair[0].put(b"first\n", Overspill_Ttl=str(3 * DAY))
    own_redis.restart(empty=True)

    conflict = await pair[1].send("PUT", path_of(b"first\n"), data=b"other\n")
    again = await pair[1].send("PUT", path_of(b"first\n"), data=b"first\n")

    assert (conflict.status, again.status) == (409, 200)
    entry = msgspec.json.decode(await again.read(), type=wire.Entry)
    assert round((entry.expires - entry.created).total_seconds() / DAY) == 3


async def test_what_is_deleted_during_a_rebuild_stays_deleted(
    pair: list[Api], own_redis: RedisServer
) -> None:
    await pair[0].put(b"unwanted\n")
    own_redis.restart(empty=True)
    archive = pair[1].service.archive
    (found,) = [each async for each in captures_in(archive)]
    entry = await entry_of(archive, found)
    assert entry is not None
    assert (await pair[0].send("DELETE", path_of(b"unwanted\n"))).status == 200

    assert not await ensure_entry(archive, found)
    assert isinstance(await archive.catalog.commit(entry, Quota()), Tombstone)  # as one that was about to
    await rebuild(pair[1])
    assert (await pair[1].get(path_of(b"unwanted\n"))).status == 410


async def test_a_redis_lost_again_during_the_rebuild_is_rebuilt_again(
    pair: list[Api], own_redis: RedisServer
) -> None:
    await pair[0].put(b"kept\n")
    own_redis.restart(empty=True)
    archive = pair[0].service.archive
    began = await archive.catalog.begin_rebuild()
    own_redis.restart(empty=True)
    await archive.catalog.mark_complete(began)

    assert not await archive.catalog.is_complete()
    await rebuild(pair[0])
    assert await archive.catalog.is_complete()
    assert (await pair[0].get("/v1/captures/call:call_0")).status == 200


async def test_replicas_notice_the_loss_and_rebuild_by_themselves(
    start_services: StartServices, own_redis: RedisServer, s3_url: str
) -> None:
    services = await asyncio.to_thread(start_services, 2, store=s3_url, catalog=own_redis.url)
    async with client_of(services[0]) as one, client_of(services[1], retries=3) as two:
        large = noise(40 * MIB)
        await one.put(large, call_id="large")
        await one.put("small", call_id="small", ttl=3 * DAY)
        before = await one.usage()
        own_redis.restart(empty=True)

        assert await two.content(id_of(b"small", "small")) == b"small"

        async def is_rebuilt() -> bool:
            return not (await two.list()).incomplete

        await until(is_rebuilt)
        assert await two.content("call:large") == large
        assert await two.usage() == before
        with pytest.raises(NotFound):
            await one.get("call:never")
