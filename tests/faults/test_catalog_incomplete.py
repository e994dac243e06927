"""An incomplete catalog answers, removes and lets through nothing wrong; what it lacks is found."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from overspill import wire
from overspill.wire import Code
from overspill_service.archive.lookup_limits import BURST, LookupLimits
from overspill_service.archive.recovery.entries import captures_in
from overspill_service.archive.recovery.rebuild import ensure_entry, rebuild, rebuild_if_due
from overspill_service.catalog.records import Entry
from overspill_service.catalog.redis import key_names

from tests.faults.traffic import code_of, content_of, keys_in, until, usage_of
from tests.web.conftest import Api, id_of, path_of

if TYPE_CHECKING:
    from overspill_service.archive.archive import Archive
    from overspill_service.archive.recovery.entries import CaptureFound

    from tests.servers.faulty_proxy import FaultyProxy
    from tests.servers.redis import RedisServer
    from tests.servers.swift import S3Server

LIMIT = 50
BY_CALL = "/v1/captures/call:call_0"


@pytest.fixture
async def start_pair(
    start_api: Callable[..., Any], own_redis: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Awaitable[list[Api]]]:
    """Starts two replicas that rebuild when the test says so."""
    monkeypatch.setattr("overspill_service.maintenance.POLL_SECONDS", 3600.0)

    async def start(**settings: Any) -> list[Api]:
        shared = {"store": f"file://{tmp_path}/objects", "catalog": own_redis.url}
        replicas = [await start_api(**(shared | settings)) for _ in range(2)]
        await until(replicas[0].service.archive.catalog.is_complete)
        return replicas

    return start


@pytest.fixture
async def pair(start_pair: Callable[..., Awaitable[list[Api]]]) -> list[Api]:
    return await start_pair()


async def stored(api: Api, numbers: range) -> list[int]:
    """The statuses of PUTs of new captures, one after the other."""
    paths = [(path_of(b"%d" % number), b"%d" % number) for number in numbers]
    return [(await api.send("PUT", path, data=content)).status for path, content in paths]


def forget(redis: RedisServer, *contents: bytes) -> None:
    """Let Redis lose entries as eviction does: nothing else changes."""
    for each in contents:
        assert redis.command("DEL", key_names.capture("default", id_of(each))) == 1


# --- limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_known", [False, True], ids=["tenant unknown", "tenant known again"])
async def test_limits_hold_while_the_totals_are_not_known(
    start_pair: Callable[..., Awaitable[list[Api]]],
    own_redis: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_known: bool,
) -> None:
    monkeypatch.setattr(
        "overspill_service.archive.archive.COMPLETE_SECONDS", 3600.0
    )  # nobody looks by chance
    one, two = await start_pair(max_captures=LIMIT)
    assert set(await stored(one, range(40))) == {201}
    own_redis.restart(empty=True)

    if is_known:
        assert await content_of(two, path_of(b"7")) == b"7"
    assert set(await stored(one, range(40, 130))) == {503}
    refused = await two.send("PUT", path_of(b"85"), data=b"85")
    assert (refused.status, await code_of(refused)) == (503, Code.CATALOG_INCOMPLETE)
    assert "Retry-After" in refused.headers
    assert len(await keys_in(one)) == 40
    if is_known:
        assert (await one.send("PUT", path_of(b"7"), data=b"7")).status == 200

    await rebuild(one.service.archive)

    assert set(await stored(two, range(40, 50))) == {201}
    assert set(await stored(one, range(50, 60))) == {507}
    assert (await usage_of(one)).captures == len(await keys_in(one)) == LIMIT


async def test_who_has_no_limits_stores_while_the_catalog_is_incomplete(
    pair: list[Api], own_redis: RedisServer
) -> None:
    own_redis.restart(empty=True)

    assert set(await stored(pair[0], range(5))) == {201}
    assert (await usage_of(pair[0])).incomplete
    await rebuild(pair[1].service.archive)
    assert not (await usage_of(pair[0])).incomplete


async def test_a_read_between_the_last_byte_and_the_commit_does_not_pass_a_limit(
    start_pair: Callable[..., Awaitable[list[Api]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await start_pair(max_captures=1)
    await one.put(b"first")
    catalog = one.service.archive.catalog
    commit = catalog.commit

    async def read_before(entry: Entry, quota: Any) -> Any:
        assert await content_of(two, path_of(b"second")) == b"second"
        return await commit(entry, quota)

    monkeypatch.setattr(catalog, "commit", read_before)
    assert (await one.send("PUT", path_of(b"second"), data=b"second")).status == 507

    assert (await two.get(path_of(b"second"))).status == 404
    assert (await usage_of(two)).captures == len(await keys_in(two)) == 1


async def test_a_refused_upload_that_a_rebuild_adopts_leaves_nothing(
    start_pair: Callable[..., Awaitable[list[Api]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await start_pair(max_captures=1)
    await one.put(b"first")
    store, archive = one.service.archive.store, two.service.archive
    delete = store.delete

    async def adopted_before(keys: Any) -> None:
        monkeypatch.setattr(store, "delete", delete)
        assert await ensure_entry(archive, await found_in(archive, b"second"))
        await delete(keys)

    monkeypatch.setattr(store, "delete", adopted_before)
    assert (await one.send("PUT", path_of(b"second"), data=b"second")).status == 507

    assert (await two.get(path_of(b"second"))).status == 404
    assert (await usage_of(two)).captures == len(await keys_in(two)) == 1


async def test_a_rebuild_that_is_about_to_adopt_a_refused_upload_leaves_nothing(
    start_pair: Callable[..., Awaitable[list[Api]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await start_pair(max_captures=1)
    await one.put(b"first")
    store, archive = one.service.archive.store, two.service.archive
    delete, commit = store.delete, archive.catalog.commit
    is_read, is_refused = asyncio.Event(), asyncio.Event()
    adopting: list[asyncio.Task[bool]] = []

    async def commit_late(entry: Entry, quota: Any) -> Any:
        is_read.set()
        await is_refused.wait()
        return await commit(entry, quota)

    async def read_before(keys: Any) -> None:
        monkeypatch.setattr(store, "delete", delete)
        found = await found_in(archive, b"second")
        adopting.append(asyncio.create_task(ensure_entry(archive, found)))
        await is_read.wait()
        await delete(keys)

    monkeypatch.setattr(archive.catalog, "commit", commit_late)
    monkeypatch.setattr(store, "delete", read_before)
    assert (await one.send("PUT", path_of(b"second"), data=b"second")).status == 507
    is_refused.set()

    assert not await adopting[0]
    await until(lambda: is_gone(two, path_of(b"second")))  # the tombstone of a millisecond included
    assert (await usage_of(two)).captures == len(await keys_in(two)) == 1


async def is_gone(api: Api, path: str) -> bool:
    return (await api.get(path)).status == 404


async def found_in(archive: Archive, content: bytes) -> CaptureFound:
    (found,) = [each async for each in captures_in(archive) if each.capture == id_of(content)]
    return found


# --- look-ups -------------------------------------------------------------------------------------


async def test_a_call_never_means_an_older_capture_while_the_newest_is_not_known(
    pair: list[Api], own_redis: RedisServer
) -> None:
    older, newer = await pair[0].put(b"older"), await pair[0].put(b"newer")
    own_redis.restart(empty=True)
    assert await content_of(pair[0], path_of(b"older")) == b"older"  # which gives only this entry back

    for method in ("GET", "DELETE"):
        answer = await pair[1].send(method, BY_CALL)
        assert (answer.status, await code_of(answer)) == (503, Code.CATALOG_INCOMPLETE)
    changed = await pair[1].send("PATCH", BY_CALL, json={"ttl": 60})
    assert changed.status == 503

    await rebuild(pair[0].service.archive)
    assert (await (await pair[1].get(BY_CALL)).json())["id"] == newer.id
    assert (await pair[1].send("DELETE", BY_CALL)).status == 200
    assert (await (await pair[1].get(BY_CALL)).json())["id"] == older.id


@pytest.mark.parametrize("moment", ["a rebuild ends during it", "the loss happens during it"])
async def test_a_look_up_that_is_overtaken_says_so(
    pair: list[Api], own_redis: RedisServer, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    await pair[0].put(b"kept", Overspill_Session="s")
    catalog = pair[1].service.archive.catalog
    find, totals = catalog.find, catalog.totals

    def overtaken(look: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def looked(*args: Any, **kwargs: Any) -> Any:
            if moment == "a rebuild ends during it":
                found = await look(*args, **kwargs)
                await rebuild(pair[0].service.archive)
                return found
            own_redis.restart(empty=True)
            return await look(*args, **kwargs)

        return looked

    monkeypatch.setattr(catalog, "find", overtaken(find))
    monkeypatch.setattr(catalog, "totals", overtaken(totals))
    answers = []
    for path in ("/v1/captures", wire.Path.USAGE, BY_CALL):
        if moment == "a rebuild ends during it":
            own_redis.restart(empty=True)
        else:
            await rebuild(pair[0].service.archive)
        answers.append(await pair[1].get(path))
    if moment == "a rebuild ends during it":
        own_redis.restart(empty=True)
    else:
        await rebuild(pair[0].service.archive)
    erasure = await pair[1].send("DELETE", "/v1/sessions/s")

    assert [(await answer.json())["incomplete"] for answer in answers[:2]] == [True, True]
    assert [answer.status for answer in (answers[2], erasure)] == [503, 503]


# --- what the catalog lacks, though it is complete -------------------------------------------------


async def test_what_a_complete_catalog_lacks_is_found_by_its_id_and_known_again(
    pair: list[Api], own_redis: RedisServer
) -> None:
    await pair[0].put(b"kept")
    forget(own_redis, b"kept")

    assert await pair[1].service.archive.catalog.is_complete()
    assert await content_of(pair[1], path_of(b"kept")) == b"kept"
    assert own_redis.command("EXISTS", key_names.capture("default", id_of(b"kept"))) == 1


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
async def test_what_a_complete_catalog_lacks_can_be_changed_and_removed(
    pair: list[Api], own_redis: RedisServer, method: str
) -> None:
    await pair[0].put(b"kept")
    forget(own_redis, b"kept")

    body = {"json": {"ttl": 60}} if method == "PATCH" else {}
    assert (await pair[1].send(method, path_of(b"kept"), **body)).status == 200
    assert (await pair[0].get(path_of(b"kept"))).status == (200 if method == "PATCH" else 410)


async def test_an_older_copy_of_the_sqlite_file_loses_no_capture(
    start_api: Callable[..., Any], tmp_path: Path
) -> None:
    store, file, older = f"file://{tmp_path}/objects", tmp_path / "catalog", tmp_path / "older"
    api: Api = await start_api(store=store, catalog=f"sqlite://{file}")
    await api.put(b"before")
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(older)) as copy:
        source.backup(copy)
    await api.put(b"after")
    restored = tmp_path / "restored"
    shutil.copy(older, restored)
    again: Api = await start_api(store=store, catalog=f"sqlite://{restored}")

    for content in (b"before", b"after"):
        assert await content_of(again, path_of(content)) == content
    assert (await usage_of(again)).captures == 2


# --- floods ---------------------------------------------------------------------------------------


class Listings:
    """Counts the listings of a store."""

    def __init__(self, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        store = api.service.archive.store
        listing = store.list

        def counted(prefix: str) -> AsyncIterator[Any]:
            self.count += 1
            return listing(prefix)

        monkeypatch.setattr(store, "list", counted)


@pytest.fixture
async def still(pair: list[Api]) -> Api:
    """A replica for whose misses no time passes."""
    pair[0].service.archive.lookups = LookupLimits(clock=lambda: 0.0)
    return pair[0]


async def test_a_flood_of_unknown_ids_is_no_flood_of_listings(
    still: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    listings = Listings(still, monkeypatch)
    paths = [path_of(b"never %d" % number) for number in range(BURST + 100)]
    answers = await asyncio.gather(*map(still.get, paths))

    statuses = [answer.status for answer in answers]
    assert (statuses.count(404), statuses.count(429)) == (BURST, 100)
    assert listings.count == BURST
    refused = answers[statuses.index(429)]
    assert await code_of(refused) == Code.TOO_MANY_REQUESTS
    assert "Retry-After" in refused.headers


async def test_many_who_ask_for_one_unknown_id_share_looks(
    still: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    listings = Listings(still, monkeypatch)
    answers = await asyncio.gather(*(still.get(path_of(b"never")) for _ in range(200)))

    assert {answer.status for answer in answers} == {404}
    assert listings.count < 50


async def test_a_capture_stored_elsewhere_is_found_at_once_by_who_missed_it_before(
    pair: list[Api], own_redis: RedisServer
) -> None:
    late, storing = pair
    content = b"asked for before it was stored"
    missed = await late.get(path_of(content))
    await storing.put(content)
    own_redis.restart(empty=True)

    found = await late.get(path_of(content))
    assert (missed.status, found.status) == (404, 200)


async def test_what_is_found_does_not_count_against_the_rate(still: Api, own_redis: RedisServer) -> None:
    contents = [b"kept %d" % number for number in range(BURST + 50)]
    for each in contents:
        await still.put(each)
    own_redis.restart(empty=True)

    answers = await asyncio.gather(*(still.get(path_of(each)) for each in contents))
    assert {answer.status for answer in answers} == {200}


async def test_a_miss_costs_one_request_to_the_object_store(
    start_api: Callable[..., Any], s3_server: S3Server, faulty_s3: FaultyProxy
) -> None:
    api: Api = await start_api(store=s3_server.url(s3_server.create_bucket(), endpoint=faulty_s3.url))
    await until(api.service.archive.catalog.is_complete)
    faulty_s3.forget()
    answers = [await api.get(path_of(b"never")) for _ in range(3)]

    assert {answer.status for answer in answers} == {404}
    assert [seen.method for seen in faulty_s3.seen] == ["GET"] * 3


async def test_a_rebuild_that_is_not_due_does_nothing(pair: list[Api]) -> None:
    assert await rebuild_if_due(pair[0].service.archive, "test") is None
    assert msgspec.json.decode(await (await pair[0].get("/v1/captures")).read())["incomplete"] is False
