"""Redis changes its master, serves with two at once, or evicts: no acknowledged capture stays unfindable."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from overspill import wire
from overspill_service.archive.recovery.rebuild import rebuild_if_due
from overspill_service.archive.sweep import sweep_expired
from overspill_service.catalog.redis import key_names

from tests.faults.relay import Relay, relaying
from tests.faults.traffic import (
    Uploads,
    advance,
    client_of,
    code_of,
    content_of,
    keys_in,
    log_lines,
    until,
    usage_of,
)
from tests.servers.ports import HOST
from tests.servers.redis import (
    SENTINEL_SERVICE,
    RedisServer,
    replication_is_up,
    running,
    sentinel_set,
    wait_until,
)
from tests.web.conftest import Api, path_of

if TYPE_CHECKING:
    from tests.faults.conftest import StartServices

COUNT = 20
DAY = 24 * 3600
LOG = log_lines(100)
SPLIT_SECONDS = 60.0
PAUSE = 0.3
"""Seconds between two uploads: a failover takes so long that there are hundreds all the same."""


class Pair(NamedTuple):
    """A master of Redis and its replica."""

    master: RedisServer
    replica: RedisServer


class Fleet(NamedTuple):
    """Two replicas of the service, each with an address of Redis that can be led to another server."""

    one: Api
    two: Api
    way_of_one: Relay
    way_of_two: Relay


@pytest.fixture
def redis_pair(tmp_path: Path) -> Iterator[Pair]:
    with ExitStack() as stack:
        master = stack.enter_context(running(RedisServer(tmp_path / "master")))
        follower = RedisServer(tmp_path / "replica", replicaof=f"{HOST} {master.port}")
        replica = stack.enter_context(running(follower))
        wait_until(lambda: replication_is_up(replica), "replication")
        yield Pair(master, replica)


@pytest.fixture
async def ways(redis_pair: Pair) -> AsyncIterator[tuple[Relay, Relay]]:
    """Two ways to the master, which last longer than the services that go them."""
    async with relaying(redis_pair.master.port) as one, relaying(redis_pair.master.port) as two:
        yield one, two


@pytest.fixture
async def fleet(
    ways: tuple[Relay, Relay],
    start_api: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Fleet:
    """Both lead to the master; nobody looks or rebuilds unless the test says so."""
    monkeypatch.setattr("overspill_service.maintenance.POLL_SECONDS", 3600.0)
    store = f"file://{tmp_path}/objects"
    first, second = [
        await start_api(store=store, catalog=f"redis://{HOST}:{way.port}?deadline=20") for way in ways
    ]
    await until(first.service.archive.catalog.is_complete)
    return Fleet(first, second, *ways)


def promote(server: RedisServer) -> None:
    server.command("REPLICAOF", "NO", "ONE")


def demote(server: RedisServer, master: RedisServer) -> None:
    """Make a server the replica of another, and wait until it has nothing but the other's data."""
    server.command("REPLICAOF", HOST, master.port)
    wait_until(lambda: replication_is_up(server), "replication")


async def put_all(api: Api, name: bytes) -> list[bytes]:
    """Captures that were acknowledged."""
    contents = [b"%s %d\n" % (name, number) for number in range(COUNT)]
    for each in contents:
        await api.put(each)
    return contents


async def statuses(api: Api, contents: list[bytes]) -> set[int]:
    return {(await api.get(path_of(each))).status for each in contents}


async def looks(api: Api) -> bool:
    """What a look every few seconds comes to: whether there was something to rebuild."""
    return await rebuild_if_due(api.service.archive, "test") is not None


async def split(fleet: Fleet, pair: Pair) -> list[bytes]:
    """The master hangs, the replica takes over, the master wakes and is written to, and then gives way.

    Returns what was written to the one that lost.
    """
    pair.master.pause()
    promote(pair.replica)
    fleet.way_of_two.lead_to(pair.replica.port)
    assert await looks(fleet.two)
    pair.master.resume()
    lost = await put_all(fleet.one, b"written to the loser")
    assert await fleet.one.service.archive.catalog.is_complete()
    assert await fleet.two.service.archive.catalog.is_complete()
    demote(pair.master, pair.replica)
    return lost


async def test_what_was_written_to_the_loser_of_a_split_is_read_at_once(
    fleet: Fleet, redis_pair: Pair
) -> None:
    await put_all(fleet.one, b"before")
    lost = await split(fleet, redis_pair)

    assert await fleet.two.service.archive.catalog.is_complete()
    assert await statuses(fleet.two, lost) == {200}


async def test_who_wrote_to_the_loser_of_a_split_has_the_catalog_rebuilt(
    fleet: Fleet, redis_pair: Pair
) -> None:
    kept = await put_all(fleet.one, b"before")
    lost = await split(fleet, redis_pair)
    assert (await usage_of(fleet.two)).captures == len(kept)
    fleet.way_of_one.lead_to(redis_pair.replica.port)

    assert not await fleet.one.service.archive.catalog.is_complete()
    assert (await usage_of(fleet.two)).incomplete
    assert await looks(fleet.two)
    usage = await usage_of(fleet.two)
    assert (usage.captures, usage.incomplete) == (len(kept + lost), False)
    assert not await looks(fleet.one)


async def test_who_only_read_on_the_other_side_of_a_split_has_nothing_rebuilt(
    fleet: Fleet, redis_pair: Pair
) -> None:
    await put_all(fleet.two, b"before")
    redis_pair.master.pause()
    promote(redis_pair.replica)
    fleet.way_of_two.lead_to(redis_pair.replica.port)
    assert await looks(fleet.two)
    fleet.way_of_one.lead_to(redis_pair.replica.port)

    assert await fleet.one.service.archive.catalog.is_complete()
    assert not await looks(fleet.one)


async def test_what_nobody_is_left_to_tell_of_is_rebuilt_a_while_later(
    fleet: Fleet, redis_pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = await split(fleet, redis_pair)  # and the writer is never heard of again
    assert not await looks(fleet.two)
    monkeypatch.setattr("overspill_service.catalog.redis.completeness.SECOND_PASS_SECONDS", 0.0)

    assert await looks(fleet.two)
    assert (await usage_of(fleet.two)).captures == len(lost)
    assert not await looks(fleet.two)


async def test_an_extension_that_a_split_lost_keeps_its_capture(fleet: Fleet, redis_pair: Pair) -> None:
    master, replica = redis_pair
    await fleet.one.put(LOG, Overspill_Ttl="60")
    with master.client() as client:
        client.wait(1, 5000)
    master.pause()
    promote(replica)
    fleet.way_of_two.lead_to(replica.port)
    assert await looks(fleet.two)
    master.resume()
    extended = await fleet.one.send("PATCH", path_of(LOG), json={"ttl": 3 * DAY})
    demote(master, replica)  # and the writer is never heard of again
    advance([fleet.two], 61)

    assert await fleet.two.service.archive.catalog.is_complete()
    assert (await sweep_expired(fleet.two.service.archive, "default")).captures == 0
    found = await fleet.two.get(path_of(LOG))
    assert (await found.json())["expires"] == (await extended.json())["expires"]


async def test_a_failover_and_back_without_a_restart_loses_no_capture(fleet: Fleet, redis_pair: Pair) -> None:
    master, replica = redis_pair
    kept = await put_all(fleet.one, b"before")
    with master.client() as client:
        client.wait(1, 5000)
    replica.pause()
    lost = await put_all(fleet.one, b"never replicated")
    master.pause()
    replica.resume()
    promote(replica)
    master.resume()
    demote(master, replica)
    promote(master)
    demote(replica, master)

    assert not await fleet.one.service.archive.catalog.is_complete()
    assert await statuses(fleet.two, kept + lost) == {200}
    assert await looks(fleet.two)
    assert (await usage_of(fleet.one)).captures == len(kept + lost)


async def test_a_split_under_traffic_loses_nothing_that_was_acknowledged(
    start_services: StartServices, tmp_path: Path
) -> None:
    with sentinel_set(tmp_path / "sentinel") as (master, replica, sentinel):
        url = f"redis+sentinel://{HOST}:{sentinel.port}/{SENTINEL_SERVICE}?deadline=20"
        store = f"file://{tmp_path}/objects"
        services = await asyncio.to_thread(start_services, 2, store=store, catalog=url)
        async with client_of(services[0], retries=8) as one, client_of(services[1], retries=8) as two:
            uploads = Uploads((one, two))
            traffic = [asyncio.create_task(uploads.go_on(seed, PAUSE)) for seed in range(4)]
            await uploads.until_acknowledged(20)
            await asyncio.to_thread(master.pause)
            await until(lambda: has_role(replica, b"master"), SPLIT_SECONDS)
            master.resume()
            await until(lambda: has_role(master, b"slave"), SPLIT_SECONDS)
            await uploads.until_acknowledged(len(uploads.acknowledged) + 20)
            for each in traffic:
                each.cancel()
            await asyncio.gather(*traffic, return_exceptions=True)

            for call_id, capture in uploads.acknowledged.items():
                assert await two.content(capture) == uploads.sent[call_id]
            await until(lambda: lists_all(two, set(uploads.acknowledged.values())), SPLIT_SECONDS)


async def has_role(server: RedisServer, role: bytes) -> bool:
    answer = await asyncio.to_thread(server.command, "ROLE")
    return bool(answer[0] == role)


async def lists_all(client: Any, captures: set[str]) -> bool:
    return captures <= {entry.id async for entry in client.iterate()}


# --- eviction -------------------------------------------------------------------------------------


def let_evict(server: RedisServer, room: int = 10**9) -> None:
    """An `allkeys-` policy, and so many bytes of room."""
    server.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    used = int(server.command("INFO", "memory")["used_memory"])
    server.command("CONFIG", "SET", "maxmemory", used + room)


def keep_all(server: RedisServer) -> None:
    server.command("CONFIG", "SET", "maxmemory", 0)
    server.command("CONFIG", "SET", "maxmemory-policy", "noeviction")


def evict(server: RedisServer) -> None:
    """Fill Redis until it has forgotten some of its keys."""
    number = 0
    while int(server.command("INFO", "stats")["evicted_keys"]) < COUNT:
        server.command("SET", f"filling {number}", b"x" * 10_000)
        number += 1


@pytest.fixture
async def api(
    start_api: Callable[..., Any], own_redis: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Api:
    """A service that looks every few milliseconds."""
    monkeypatch.setattr("overspill_service.maintenance.POLL_SECONDS", 0.01)
    started: Api = await start_api(store=f"file://{tmp_path}/objects", catalog=own_redis.url)
    await until(started.service.archive.catalog.is_complete)
    return started


async def is_refused(api: Api) -> bool:
    content = secrets.token_bytes(8)
    response = await api.send("PUT", path_of(content), data=content)
    return response.status == 503 and await code_of(response) == wire.Code.CATALOG_UNAVAILABLE


async def test_a_redis_that_begins_to_evict_refuses_captures_and_says_so_once(
    api: Api, own_redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    let_evict(own_redis)
    await until(lambda: is_refused(api))
    stored = await keys_in(api)
    with caplog.at_level(logging.WARNING):
        refused = await api.send("PUT", path_of(b"new"), data=b"new")
        ready = await api.get("/readyz")

    assert "maxmemory-policy allkeys-lru" in (await refused.json())["detail"]
    assert (ready.status, await code_of(ready)) == (503, wire.Code.CATALOG_UNAVAILABLE)
    assert await keys_in(api) == stored
    await until(lambda: has_logged(caplog))
    said = [each for each in caplog.messages if "may evict" in each]  # of a rebuild, and of requests
    assert len(said) == len(set(said))


async def has_logged(caplog: pytest.LogCaptureFixture) -> bool:
    return any("may evict" in each for each in caplog.messages)


async def test_totals_are_right_again_where_the_marks_were_evicted_too(
    api: Api, own_redis: RedisServer
) -> None:
    contents = [b"%d\n" % number for number in range(10)]
    for each in contents:
        await api.put(each)
    let_evict(own_redis)
    assert (await api.get("/readyz")).status == 503
    evicted = [key_names.capture("default", path_of(each).rpartition("/")[2]) for each in contents[:5]]
    assert own_redis.command("DEL", key_names.EPOCH, key_names.COMPLETE, *evicted) >= 6
    keep_all(own_redis)
    await until(api.service.archive.catalog.is_complete)

    assert (await usage_of(api)).captures == len(contents)


async def test_what_was_evicted_is_read_and_known_again_when_that_is_mended(
    api: Api, own_redis: RedisServer
) -> None:
    contents = [b"%d\n" % number for number in range(3 * COUNT)]
    for each in contents:
        await api.put(each)
    let_evict(own_redis, room=200_000)
    assert (await api.get("/readyz")).status == 503
    await asyncio.to_thread(evict, own_redis)

    for each in contents:
        assert await content_of(api, path_of(each)) == each
    assert (await usage_of(api)).incomplete
    keep_all(own_redis)
    await until(api.service.archive.catalog.is_complete)
    listing = await (await api.get("/v1/captures?limit=1000")).json()
    assert len(listing["captures"]) == len(contents)
    assert (await usage_of(api)).captures == len(contents)
    assert (await api.send("PUT", path_of(b"new"), data=b"new")).status == 201
