"""The catalog on Redis when Redis is lost, refuses, hangs, or another server takes over."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

import pytest
from overspill_service.catalog.backlogs import Backlog
from overspill_service.catalog.live import LiveRecord
from overspill_service.catalog.quotas import Quota, Totals
from overspill_service.catalog.readers import ReadNote
from overspill_service.catalog.records import Query
from overspill_service.catalog.redis import key_names
from overspill_service.catalog.statistics import DAYS, Cell
from overspill_service.catalog.urls import open_catalog
from overspill_service.errors import CatalogSilent, CatalogUnavailable

from tests.contracts.entries import NOW, TENANT, capture_id, entry, listed, rebuilt, sums, tombstone
from tests.servers.redis import RedisServer, running, sentinel_set
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from overspill_service.catalog import Catalog

T = TypeVar("T")
UNLIMITED = Quota()
NOTE = ReadNote(entry().id, entry().upload, "key", on_page=False, at=NOW)
CAPTURED = Cell("tool_outputs", "grep", "captured")
SHORT = 0.3
"""The deadline of what is not to succeed."""


@asynccontextmanager
async def opened(url: str, tmp_path: Path, *, deadline: float = 60) -> AsyncIterator[Catalog]:
    """A catalog that waits for Redis however busy the machine is, unless it gets another deadline."""
    catalog = open_catalog(f"{url}?deadline={deadline}", data_dir=tmp_path)
    try:
        yield catalog
    finally:
        await catalog.close()


async def answered(step: Callable[[], Awaitable[T]]) -> T:
    """What Redis says to a step, tried again while a busy machine lets it say nothing within `SHORT`."""
    while True:
        try:
            return await step()
        except CatalogUnavailable as error:
            if str(error) not in ("Redis did not answer in time", "Redis is not reachable"):
                raise


async def test_a_redis_that_comes_back_empty_is_incomplete_and_takes_up_its_work(
    own_redis: RedisServer, tmp_path: Path
) -> None:
    async with opened(own_redis.url, tmp_path) as catalog:
        await catalog.commit(entry(1), UNLIMITED)
        await rebuilt(catalog)
        own_redis.restart(empty=True)

        assert not await catalog.is_complete()
        assert await catalog.get(TENANT, entry(1).id) is None
        assert await catalog.commit(entry(2), UNLIMITED) == entry(2)
        assert await catalog.tenants() == [TENANT]
        assert await catalog.totals(TENANT) == sums([entry(2)])


async def test_a_tenant_is_known_again_when_redis_lost_it_unnoticed(
    own_redis: RedisServer, tmp_path: Path
) -> None:
    async with opened(own_redis.url, tmp_path) as catalog:
        await catalog.commit(entry(1), UNLIMITED)
        own_redis.command("FLUSHALL")
        await catalog.commit(entry(1), UNLIMITED)

        assert await catalog.tenants() == [TENANT]


async def test_a_restart_that_kept_its_data_is_checked_again_because_the_last_writes_may_be_gone(
    tmp_path: Path,
) -> None:
    with running(RedisServer(tmp_path / "redis", appendonly="yes", appendfsync="always")) as server:
        async with opened(server.url, tmp_path) as catalog:
            await catalog.commit(entry(), UNLIMITED)
            await rebuilt(catalog)
            server.restart()

            assert await catalog.get(TENANT, entry().id) == entry()
            assert not await catalog.is_complete()
            await rebuilt(catalog)
            assert await catalog.is_complete()


async def test_a_rebuild_that_redis_did_not_live_through_does_not_count(
    own_redis: RedisServer, tmp_path: Path
) -> None:
    async with opened(own_redis.url, tmp_path) as catalog:
        began = await catalog.begin_rebuild()
        await catalog.commit(entry(), UNLIMITED)
        own_redis.restart(empty=True)
        await catalog.mark_complete(began)  # without what the rebuild had written

        assert not await catalog.is_complete()
        await rebuilt(catalog)
        assert await catalog.is_complete()


async def test_a_redis_that_is_gone_is_said_to_be_within_the_deadline(
    own_redis: RedisServer, tmp_path: Path
) -> None:
    async with opened(own_redis.url, tmp_path, deadline=SHORT) as catalog:
        own_redis.kill()

        with pytest.raises(CatalogUnavailable, match="Redis is not reachable"):
            await catalog.get(TENANT, entry().id)


async def test_a_redis_that_hangs_is_given_up_and_used_again_when_it_wakes(
    own_redis: RedisServer, tmp_path: Path
) -> None:
    async with opened(own_redis.url, tmp_path, deadline=SHORT) as catalog:
        await answered(lambda: catalog.commit(entry(1), UNLIMITED))
        own_redis.pause()
        commits = [catalog.commit(entry(number), UNLIMITED) for number in range(2, 30)]
        results = await asyncio.gather(*commits, return_exceptions=True)
        own_redis.resume()

        assert {type(result) for result in results} == {CatalogSilent}
    async with opened(own_redis.url, tmp_path) as catalog:
        assert await catalog.get(TENANT, entry(1).id) == entry(1)
        assert (await catalog.totals(TENANT)).captures == len(await listed(catalog, Query()))


async def test_a_commit_waits_for_a_redis_that_restarts(own_redis: RedisServer, tmp_path: Path) -> None:
    async with opened(own_redis.url, tmp_path) as catalog:
        await catalog.ping()
        own_redis.kill()
        commit = asyncio.create_task(catalog.commit(entry(), UNLIMITED))
        await asyncio.to_thread(own_redis.start)

        assert await commit == entry()


async def test_a_read_only_redis_is_named_and_still_read(own_redis: RedisServer, tmp_path: Path) -> None:
    async with opened(own_redis.url, tmp_path, deadline=SHORT) as catalog:
        await answered(lambda: catalog.commit(entry(1), UNLIMITED))
        own_redis.make_read_only()

        with pytest.raises(CatalogUnavailable, match="read-only"):
            await answered(lambda: catalog.commit(entry(2), UNLIMITED))
        with pytest.raises(CatalogUnavailable, match="read-only"):
            await answered(catalog.ping)
        assert await answered(lambda: catalog.get(TENANT, entry(1).id)) == entry(1)

        own_redis.make_writable()
        assert await answered(lambda: catalog.commit(entry(2), UNLIMITED)) == entry(2)


async def test_a_redis_without_memory_is_named_and_changes_nothing(
    own_redis: RedisServer, tmp_path: Path
) -> None:
    async with opened(own_redis.url, tmp_path) as catalog:
        await catalog.commit(entry(1), UNLIMITED)
        own_redis.command("CONFIG", "SET", "maxmemory", "1")

        with pytest.raises(CatalogUnavailable, match="out of memory"):
            await catalog.commit(entry(2), UNLIMITED)

        own_redis.command("CONFIG", "SET", "maxmemory", "0")
        assert (await catalog.totals(TENANT)).captures == len(await listed(catalog, Query())) == 1


async def test_a_redis_that_may_evict_entries_fails_its_ping(own_redis: RedisServer, tmp_path: Path) -> None:
    own_redis.command("CONFIG", "SET", "maxmemory", "100mb")
    own_redis.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")

    async with opened(own_redis.url, tmp_path) as catalog:
        with pytest.raises(CatalogUnavailable, match=r"maxmemory-policy allkeys-lru.*noeviction"):
            await catalog.ping()


async def test_wrong_credentials_fail_at_once_and_are_never_told(
    own_redis: RedisServer, tmp_path: Path
) -> None:
    own_redis.command("ACL", "SETUSER", "agent", "on", ">right", "~*", "+@all")

    async with (
        asyncio.timeout(PATIENCE),
        opened(with_login(own_redis, "wr%6Fng"), tmp_path) as catalog,
    ):
        with pytest.raises(CatalogUnavailable, match="refuses the credentials") as caught:
            await catalog.ping()
    assert "wrong" not in str(caught.value)
    async with opened(with_login(own_redis, "right"), tmp_path) as catalog:
        await catalog.ping()


async def test_a_user_without_permission_is_told_so_at_once(own_redis: RedisServer, tmp_path: Path) -> None:
    own_redis.command("ACL", "SETUSER", "agent", "on", ">right", "~*", "+get")

    async with asyncio.timeout(PATIENCE), opened(with_login(own_redis, "right"), tmp_path) as catalog:
        with pytest.raises(CatalogUnavailable, match="the Redis user may not run"):
            await catalog.commit(entry(), UNLIMITED)


async def test_a_redis_that_takes_no_more_connections_is_asked_again(
    own_redis: RedisServer, tmp_path: Path
) -> None:
    own_redis.command("ACL", "SETUSER", "agent", "on", ">right", "~*", "+@all")
    own_redis.command("CONFIG", "SET", "maxclients", 1)

    with own_redis.client() as only_one:
        only_one.ping()
        async with opened(with_login(own_redis, "right"), tmp_path, deadline=SHORT) as catalog:
            with pytest.raises(CatalogUnavailable, match="takes no more connections"):
                await catalog.ping()
    async with opened(with_login(own_redis, "right"), tmp_path) as catalog:
        await catalog.ping()


async def test_a_redis_that_wants_a_password_says_so_whatever_it_is_asked(
    own_redis: RedisServer, tmp_path: Path
) -> None:
    own_redis.command("CONFIG", "SET", "requirepass", "right")

    record = LiveRecord(producer="me", accepted=0, start=0, durable=0, active=NOW)

    async with opened(own_redis.url, tmp_path) as catalog:
        with pytest.raises(CatalogUnavailable, match="refuses the credentials"):
            await catalog.open_live(TENANT, capture_id(1), record)


def with_login(server: RedisServer, password: str) -> str:
    return server.url.replace("//", f"//agent:{password}@")


async def test_scripts_that_redis_forgot_are_sent_again(own_redis: RedisServer, tmp_path: Path) -> None:
    async with opened(own_redis.url, tmp_path) as catalog:
        await catalog.commit(entry(1), UNLIMITED)
        own_redis.command("SCRIPT", "FLUSH")

        results = await asyncio.gather(*(catalog.commit(entry(number), UNLIMITED) for number in range(2, 20)))
        assert results == [entry(number) for number in range(2, 20)]


async def test_steps_whose_answer_was_lost_say_the_same_again(redis_url: str, tmp_path: Path) -> None:
    async with opened(redis_url, tmp_path) as catalog:
        repeat_every_step(catalog)

        assert await catalog.commit(entry(), UNLIMITED) == entry()
        amended = await catalog.amend(entry(), expires=NOW + 5, marker="m")
        assert amended is not None
        assert await catalog.remove(amended, tombstone(amended), keep=60)
        assert await catalog.totals(TENANT) == Totals()
        assert await catalog.lease("sweep", "one", 60)
        assert await catalog.once("batch", 60)
        assert not await catalog.once("batch", 60)


def repeat_every_step(catalog: object) -> None:
    """Run each script twice and give the second answer, as a retry after a lost answer does."""
    link = catalog._client  # type: ignore[attr-defined]
    once = link._step

    async def twice(*arguments: object) -> object:
        await once(*arguments)
        return await once(*arguments)

    link._step = twice


async def test_a_damaged_entry_is_reported_and_not_taken_for_absent(
    redis_url: str, redis_server: RedisServer, tmp_path: Path
) -> None:
    async with opened(redis_url, tmp_path) as catalog:
        await catalog.commit(entry(), UNLIMITED)
        redis_server.command("SET", key_names.capture(TENANT, entry().id), b"E\xc1")

        with pytest.raises(CatalogUnavailable, match="entry of a capture that cannot be decoded"):
            await catalog.get(TENANT, entry().id)


async def test_a_removed_capture_leaves_no_key_but_its_tombstone_which_expires(
    redis_url: str, redis_server: RedisServer, tmp_path: Path
) -> None:
    async with opened(redis_url, tmp_path) as catalog:
        await catalog.commit(entry(), UNLIMITED)
        await catalog.note_readers(TENANT, [NOTE], max_bytes=0)
        await catalog.remove(entry(), tombstone(entry()), keep=60)

    grave = key_names.capture(TENANT, entry().id).encode()
    order, totals = key_names.tombstones(TENANT).encode(), key_names.totals(TENANT).encode()
    assert set(redis_server.command("KEYS", "ov1:{*")) == {grave, order, totals}
    for key in (grave, order):
        assert 59_000 < redis_server.command("PTTL", key) <= 60_000


@pytest.mark.parametrize("damaged", [b"", b"\xff", b"\x01", b"\x93\x01\x02\x03", b"\x91\x91\xa1\xff"])
async def test_readers_that_are_damaged_in_redis_are_forgotten(
    redis_url: str, redis_server: RedisServer, tmp_path: Path, damaged: bytes
) -> None:
    async with opened(redis_url, tmp_path) as catalog:
        await catalog.commit(entry(), UNLIMITED)
        redis_server.command("SET", key_names.readers(TENANT, entry().id), damaged)
        before = await catalog.readers(TENANT, entry().id)
        await catalog.note_readers(TENANT, [NOTE], max_bytes=0)
        after = await catalog.readers(TENANT, entry().id)

    assert (before, [each.name for each in after]) == ([], ["key"])


@pytest.mark.parametrize("damaged", [b"\xff\x00", b"", b"1 2"])
async def test_small_values_that_are_damaged_in_redis_stop_nothing(
    own_redis: RedisServer, tmp_path: Path, damaged: bytes
) -> None:
    async with opened(own_redis.url, tmp_path) as catalog:
        await catalog.commit(entry(expires=NOW), UNLIMITED)
        await catalog.note_backlog(TENANT, "spool", Backlog(1, 2, NOW), now=NOW, keep=9)
        for key in (key_names.ACCESS, key_names.EPOCH):
            own_redis.command("SET", key, damaged)
        for key in (key_names.TENANTS, key_names.BACKLOGS):
            own_redis.command("SADD", key, damaged)
        for key in (key_names.LIVE, key_names.expiry(TENANT), key_names.sizes(TENANT)):
            own_redis.command("ZADD", key, 1, damaged)
        for key in (key_names.USES, key_names.backlogs(TENANT)):
            own_redis.command("HSET", key, "name", damaged)
        await rebuilt(catalog)

        assert await catalog.is_complete()
        assert await catalog.access_mode() is None
        assert "name" not in await catalog.uses()
        assert {*await catalog.tenants()} - {damaged.decode(errors="ignore")} == {TENANT}
        assert await catalog.backlogs(NOW) == {TENANT: Backlog(1, 2, NOW)}
        assert [each.id for each in await catalog.expired(TENANT, now=NOW + 1, limit=9)] == [entry().id]
        assert [each.id for each in await catalog.largest(TENANT, now=NOW - 1, limit=9)] == [entry().id]
        assert len(await catalog.due(NOW, 9)) == 1


@pytest.mark.parametrize("damage", [("HSET", "captures", "many"), ("HSET", "size", ""), ("SET", "other")])
async def test_totals_that_are_damaged_are_named_with_what_to_do(
    redis_url: str, redis_server: RedisServer, tmp_path: Path, damage: tuple[str, ...]
) -> None:
    command, *words = damage
    async with opened(redis_url, tmp_path) as catalog:
        await catalog.commit(entry(1), UNLIMITED)
        redis_server.command("DEL", key_names.totals(TENANT))
        redis_server.command(command, key_names.totals(TENANT), *words)

        for attempt in (
            catalog.totals(TENANT),
            catalog.commit(entry(2), UNLIMITED),
            catalog.remove(entry(1), tombstone(entry(1)), keep=60),
        ):
            with pytest.raises(CatalogUnavailable, match=r"rebuilt from the object store"):
                await attempt


async def test_a_lease_that_redis_gave_while_its_clock_was_ahead_is_free(
    redis_url: str, redis_server: RedisServer, tmp_path: Path
) -> None:
    async with opened(redis_url, tmp_path) as catalog:
        await catalog.lease("sweep", "one", 300)
        assert not await catalog.lease("sweep", "other", 300)
        redis_server.command("EXPIRE", key_names.lease("sweep"), 86_400)  # so it is after a jump back

        assert await catalog.lease("sweep", "other", 300)


async def test_what_a_replica_told_while_the_clock_of_redis_was_ahead_is_forgotten(
    redis_url: str, redis_server: RedisServer, tmp_path: Path
) -> None:
    async with opened(redis_url, tmp_path) as catalog:
        await catalog.tell("requests", "one", 5, keep=86_400)

        assert await catalog.tell("requests", "other", 1, keep=60) == 0


async def test_a_node_of_a_cluster_that_is_taken_for_a_whole_redis_is_named(
    redis_cluster: list[RedisServer], tmp_path: Path
) -> None:
    async with opened(redis_cluster[0].url, tmp_path) as catalog:
        refused = [await refusal(catalog.get(name, capture_id(1))) for name in ("a", "b", "c", "d")]

    assert "a node of a cluster; write redis+cluster://" in "".join(refused)


async def refusal(step: Awaitable[object]) -> str:
    """Why the catalog refuses a step. Empty if it does not."""
    try:
        await step
    except CatalogUnavailable as error:
        return str(error)
    return ""


async def test_a_long_listing_where_nothing_matches_at_first_still_finds_what_does(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overspill_service.catalog.redis.pages.MAX_SCANNED", 16)
    monkeypatch.setattr("overspill_service.catalog.redis.pages.MAX_BATCH", 8)
    async with opened(redis_url, tmp_path) as catalog:
        entries = [entry(number, tool="" if number in (1, 2, 40) else "common") for number in range(60)]
        await asyncio.gather(*(catalog.commit(each, UNLIMITED) for each in entries))

        page, cursor = await catalog.find(TENANT, Query(tool=""), now=NOW, limit=10)
        assert page == [entries[40]]
        assert cursor is not None
        assert await listed(catalog, Query(tool=""), limit=10) == [entries[40], entries[2], entries[1]]
        assert await catalog.find(TENANT, Query(tool="", session=""), now=NOW, limit=10) == ([], None)


async def test_a_listing_reads_the_shortest_index_and_little_more_than_it_shows(
    redis_url: str, redis_server: RedisServer, tmp_path: Path
) -> None:
    async with opened(redis_url, tmp_path) as catalog:
        entries = [entry(number, tool="rare" if number % 200 == 0 else "common") for number in range(600)]
        await asyncio.gather(*(catalog.commit(each, UNLIMITED) for each in entries))
        redis_server.command("CONFIG", "RESETSTAT")

        found = await listed(catalog, Query(session="session-1", tool="rare"), limit=10)
        assert found == [entries[400], entries[200], entries[0]]
        calls = redis_server.command("INFO", "commandstats")
        assert calls["cmdstat_mget"]["calls"] == 1
        assert calls["cmdstat_zrevrangebylex"]["calls"] == 1


async def test_a_long_time_of_statistics_costs_a_call_for_each_bucket_that_there_is(
    redis_url: str, redis_server: RedisServer, tmp_path: Path
) -> None:
    async with opened(redis_url, tmp_path) as catalog:
        for at in (0, 86_400):
            await catalog.add_sums(TENANT, {CAPTURED: 1}, now=NOW + at, batch=str(at), memory=60.0)
        redis_server.command("CONFIG", "RESETSTAT")

        found = await catalog.sums(TENANT, DAYS, since=NOW - 400 * 86_400, until=NOW + 400 * 86_400)
        assert len(found) == 2
        assert redis_server.command("INFO", "commandstats")["cmdstat_evalsha"]["calls"] <= 4


async def test_after_a_failover_the_new_master_takes_writes_within_the_deadline(tmp_path: Path) -> None:
    with sentinel_set(tmp_path / "sentinel") as (master, replica, sentinel):
        url = f"redis+sentinel://127.0.0.1:{sentinel.port}/overspill"
        async with opened(url, tmp_path, deadline=20) as catalog:
            await catalog.commit(entry(1), UNLIMITED)
            await rebuilt(catalog)
            with master.client() as client:
                client.wait(1, 5000)  # the replica has it
            master.kill()

            assert await catalog.commit(entry(2), UNLIMITED) == entry(2)
            assert await catalog.get(TENANT, entry(1).id) == entry(1)
            assert not await catalog.is_complete()
        assert replica.command("EXISTS", key_names.capture(TENANT, entry(2).id)) == 1


async def test_a_cluster_that_lost_a_node_says_so_and_recovers_with_it(
    redis_cluster: list[RedisServer], redis_cluster_url: str, tmp_path: Path
) -> None:
    tenants = [f"tenant-{number}" for number in range(12)]
    async with opened(redis_cluster_url, tmp_path) as catalog:
        for tenant in tenants:
            await catalog.commit(entry(tenant=tenant), UNLIMITED)
        await rebuilt(catalog)
        assert await catalog.is_complete()
        redis_cluster[2].restart()  # without persistence: its slots are empty now, its place it keeps

        assert not await catalog.is_complete()
        for tenant in tenants:
            await catalog.commit(entry(tenant=tenant), UNLIMITED)
        assert await catalog.tenants() == sorted(tenants)
        for tenant in tenants:
            assert (await catalog.totals(tenant)).captures == 1


async def test_nothing_is_asked_of_redis_before_it_is_used(tmp_path: Path) -> None:
    async with opened("redis://127.0.0.1:1", tmp_path, deadline=SHORT) as catalog:
        with pytest.raises(CatalogUnavailable):
            await catalog.get(TENANT, capture_id(1))
