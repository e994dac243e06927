"""Settings of Redis that put entries at risk are refused or warned about, by the catalog and by `check`."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from overspill_service.catalog import HasWarnings
from overspill_service.catalog.quotas import Quota
from overspill_service.catalog.urls import open_catalog
from overspill_service.errors import CatalogRefuses

from tests.contracts.entries import TENANT, entry, rebuilt
from tests.servers.overspill import service_command
from tests.servers.redis import RedisServer, replication_is_up, running, wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from overspill_service.catalog import Catalog


@asynccontextmanager
async def opened(url: str, tmp_path: Path) -> AsyncIterator[Catalog]:
    catalog = open_catalog(f"{url}?deadline=60", data_dir=tmp_path)  # however busy the machine is
    try:
        yield catalog
    finally:
        await catalog.close()


def configure(server: RedisServer, **settings: object) -> None:
    for name, value in settings.items():
        server.command("CONFIG", "SET", name.replace("_", "-"), str(value))


def evict_one(server: RedisServer) -> None:
    """Let Redis evict a key: the only one that may be evicted."""
    server.command("SET", "evicted", b"x" * 5_000_000, "EX", 60)
    used = int(server.command("INFO", "memory")["used_memory"])
    configure(server, maxmemory_policy="volatile-lru", maxmemory=used - 1_000_000)
    server.command("SET", "another", b"x")
    assert server.command("EXISTS", "evicted") == 0
    configure(server, maxmemory=0)


async def warnings(server: RedisServer, tmp_path: Path, login: str = "") -> list[str]:
    async with opened(server.url.replace("//", f"//{login}"), tmp_path) as catalog:
        assert isinstance(catalog, HasWarnings)
        return await catalog.warnings()


# --- eviction -------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-lfu", "allkeys-random"])
async def test_a_process_that_has_asked_nothing_yet_commits_nothing_to_a_redis_that_evicts(
    own_redis: RedisServer, tmp_path: Path, policy: str
) -> None:
    configure(own_redis, maxmemory_policy=policy, maxmemory="100mb")

    async with opened(own_redis.url, tmp_path) as catalog:
        with pytest.raises(CatalogRefuses, match=f"maxmemory-policy {policy}.*noeviction"):
            await catalog.commit(entry(), Quota())
        assert await catalog.get(TENANT, entry().id) is None


@pytest.mark.parametrize(
    ("policy", "maxmemory"), [("allkeys-lru", "0"), ("volatile-lru", "100mb"), ("noeviction", "100mb")]
)
async def test_what_cannot_evict_entries_is_not_refused(
    own_redis: RedisServer, tmp_path: Path, policy: str, maxmemory: str
) -> None:
    configure(own_redis, maxmemory_policy=policy, maxmemory=maxmemory)

    async with opened(own_redis.url, tmp_path) as catalog:
        assert await catalog.commit(entry(), Quota()) == entry()


async def test_a_redis_that_has_evicted_is_emptied_before_it_is_rebuilt(
    own_redis: RedisServer, tmp_path: Path
) -> None:
    async with opened(own_redis.url, tmp_path) as catalog:
        await catalog.commit(entry(1), Quota())
        await rebuilt(catalog)
        configure(own_redis, maxmemory_policy="allkeys-lru", maxmemory="100mb")
        with pytest.raises(CatalogRefuses):
            await catalog.ping()
        assert not await catalog.is_complete()
        configure(own_redis, maxmemory_policy="noeviction")
        await catalog.ping()

        assert await catalog.get(TENANT, entry(1).id) == entry(1)
        began = await catalog.begin_rebuild()
        assert own_redis.command("KEYS", "ov1:{*") == []
        await catalog.commit(entry(2), Quota())
        await catalog.mark_complete(began)
        assert await catalog.is_complete()
        assert (await catalog.totals(TENANT)).captures == 1


MARKS = ("ov1:epoch", "ov1:complete", "ov1:rebuild")


async def test_what_is_left_is_not_trusted_where_the_marks_were_evicted_too(
    own_redis: RedisServer, tmp_path: Path
) -> None:
    async with opened(own_redis.url, tmp_path) as catalog:
        await catalog.commit(entry(1), Quota())
        await rebuilt(catalog)
        configure(own_redis, maxmemory_policy="allkeys-lru", maxmemory="100mb")
        with pytest.raises(CatalogRefuses):
            await catalog.ping()
        assert own_redis.command("DEL", *MARKS) == len(MARKS)
        configure(own_redis, maxmemory_policy="noeviction")
        await catalog.ping()

        await catalog.begin_rebuild()
        assert own_redis.command("KEYS", "ov1:{*") == []


async def test_a_process_that_saw_no_eviction_learns_of_it_from_redis(
    own_redis: RedisServer, tmp_path: Path
) -> None:
    async with opened(own_redis.url, tmp_path) as catalog:
        await catalog.commit(entry(1), Quota())
        await rebuilt(catalog)
    evict_one(own_redis)
    assert own_redis.command("DEL", *MARKS) == len(MARKS)

    async with opened(own_redis.url, tmp_path) as catalog:
        await catalog.begin_rebuild()
        assert own_redis.command("KEYS", "ov1:{*") == []


async def test_a_redis_that_was_emptied_keeps_what_was_written_to_it_since(
    own_redis: RedisServer, tmp_path: Path
) -> None:
    async with opened(own_redis.url, tmp_path) as catalog:
        await rebuilt(catalog)
        own_redis.command("FLUSHALL")
        await catalog.commit(entry(1), Quota())

        await rebuilt(catalog)
        assert (await catalog.totals(TENANT)).captures == 1


@pytest.mark.parametrize("key", ["ov1:epoch", "ov1:complete"])
async def test_a_mark_that_was_evicted_itself_is_missed(
    own_redis: RedisServer, tmp_path: Path, key: str
) -> None:
    async with opened(own_redis.url, tmp_path) as catalog:
        await rebuilt(catalog)
        assert own_redis.command("DEL", key) == 1

        assert not await catalog.is_complete()
        await rebuilt(catalog)
        assert await catalog.is_complete()


async def test_a_cluster_is_emptied_on_all_its_nodes(
    redis_cluster: list[RedisServer], redis_cluster_url: str, tmp_path: Path
) -> None:
    async with opened(redis_cluster_url, tmp_path) as catalog:
        for number in range(12):
            await catalog.commit(entry(tenant=f"tenant-{number}"), Quota())
        await rebuilt(catalog)
        await asyncio.to_thread(lose, redis_cluster, "ov1:epoch")
        await catalog.begin_rebuild()

    assert [node.command("KEYS", "ov1:{*") for node in redis_cluster] == [[], [], []]


def lose(nodes: list[RedisServer], key: str) -> None:
    """Delete a key on the node that has it."""
    for node in nodes:
        if key.encode() in node.command("KEYS", key):
            node.command("DEL", key)


# --- warnings -------------------------------------------------------------------------------------


async def test_a_redis_that_persists_nothing_is_warned_about(own_redis: RedisServer, tmp_path: Path) -> None:
    (warning,) = await warnings(own_redis, tmp_path)

    assert "a restart empties the catalog" in warning


@pytest.mark.parametrize("setting", [{"appendonly": "yes"}, {"save": "60 1"}])
async def test_a_redis_that_persists_is_not_warned_about(
    own_redis: RedisServer, tmp_path: Path, setting: dict[str, str]
) -> None:
    configure(own_redis, **setting)

    assert await warnings(own_redis, tmp_path) == []


async def test_who_may_not_ask_for_settings_is_told_what_to_look_after(
    own_redis: RedisServer, tmp_path: Path
) -> None:
    own_redis.command("ACL", "SETUSER", "agent", "on", ">secret", "~*", "+@all", "-config")
    (warning,) = await warnings(own_redis, tmp_path, "agent:secret@")

    assert "CONFIG GET save is not permitted" in warning


async def test_a_master_that_writes_without_its_replicas_is_warned_about(
    own_redis: RedisServer, tmp_path: Path
) -> None:
    configure(own_redis, appendonly="yes")
    replica = RedisServer(tmp_path / "replica", replicaof=f"127.0.0.1 {own_redis.port}")
    with running(replica):
        await asyncio.to_thread(wait_until, lambda: replication_is_up(replica), "replication")
        (warning,) = await warnings(own_redis, tmp_path)
        assert "min-replicas-to-write is 0" in warning

        configure(own_redis, min_replicas_to_write=1)
        assert await warnings(own_redis, tmp_path) == []


async def test_a_redis_that_evicts_tombstones_is_warned_about(own_redis: RedisServer, tmp_path: Path) -> None:
    configure(own_redis, appendonly="yes", maxmemory="100mb", maxmemory_policy="volatile-ttl")
    (warning,) = await warnings(own_redis, tmp_path)

    assert "404 instead of 410" in warning


@pytest.mark.parametrize(
    ("settings", "code", "line"),
    [
        ({}, 0, "warn catalog: Redis writes nothing to its disk"),
        ({"appendonly": "yes"}, 0, "ok   catalog"),
        (
            {"maxmemory": "100mb", "maxmemory_policy": "allkeys-lru"},
            1,
            "BAD  catalog: ping: Redis may evict entries",
        ),
    ],
)
def test_check_says_what_is_wrong_and_what_is_worth_changing(
    own_redis: RedisServer, tmp_path: Path, settings: dict[str, str], code: int, line: str
) -> None:
    configure(own_redis, **settings)
    result = service_command("check", "--catalog", own_redis.url, "--data", tmp_path)

    assert (result.returncode, line in result.stdout) == (code, True), result
    assert ("warn" in result.stdout) == line.startswith("warn")
