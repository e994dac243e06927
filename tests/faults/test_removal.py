"""Removed captures stay removed, whatever the catalog forgets. They live again if they are stored again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from overspill.errors import NotFound, OverspillError
from overspill.wire import Code, Header
from overspill_service.archive.recovery.entries import encode_entry
from overspill_service.archive.recovery.rebuild import rebuild
from overspill_service.archive.recovery.stale_entries import UploadFilter
from overspill_service.archive.removal import finish_removals
from overspill_service.archive.sweep import sweep_orphans
from overspill_service.catalog.records import Entry, Query
from overspill_service.errors import CatalogUnavailable, StoreUnavailable
from overspill_service.live.compaction import compact
from overspill_service.store_format import object_keys

from tests.faults.test_sweep import DAY, upload_of
from tests.faults.traffic import (
    MIB,
    client_of,
    code_of,
    content_of,
    keys_in,
    noise,
    segments_in,
    until,
    usage_of,
)
from tests.servers.faulty_proxy import stall
from tests.web.conftest import Api, id_of, path_of

if TYPE_CHECKING:
    from tests.faults.conftest import StartServices
    from tests.servers.faulty_proxy import FaultyProxy
    from tests.servers.redis import RedisServer
    from tests.servers.swift import S3Server

LOG = b"one line\n"
OTHER = b"another line\n"


@pytest.fixture
async def pair(
    start_api: Callable[..., Any], own_redis: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[Api]:
    """Two replicas that rebuild when the test says so, and cut segments small."""
    monkeypatch.setattr("overspill_service.archive.uploading.SEGMENT_SIZE", 64 * 1024)
    monkeypatch.setattr("overspill_service.maintenance.POLL_SECONDS", 3600.0)
    settings = {"store": f"file://{tmp_path}/objects", "catalog": own_redis.url}
    replicas = [await start_api(**settings) for _ in range(2)]
    for each in replicas:
        await until(each.service.archive.catalog.is_complete)
    return replicas


@contextmanager
def broken(port: object, operation: str, error: Exception) -> Iterator[None]:
    """An operation of a back end fails, until the block ends."""

    async def fail(*_: object, **__: object) -> None:
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(port, operation, fail)
        yield


async def removals_in(api: Api) -> list[str]:
    return [each.key async for each in api.service.archive.store.list(object_keys.REMOVALS)]


async def statuses(apis: Iterable[Api], path: str) -> set[int]:
    return {(await api.get(f"{path}/content")).status for api in apis}


async def cut_short(api: Api, path: str) -> None:
    """Ask for a removal whose objects cannot be deleted now."""
    with broken(api.service.archive.store, "delete", StoreUnavailable("down")):
        refused = await api.send("DELETE", path)
    assert (refused.status, await code_of(refused)) == (503, Code.STORE_UNAVAILABLE)


async def store_a_second_upload(api: Api, content: bytes) -> None:
    """Objects of a whole upload of the same capture that the catalog was never told of."""
    upload, draft = await upload_of(api.service.archive, content)
    await upload.seal(encode_entry(draft))


# --- the catalog is lost --------------------------------------------------------------------------


@pytest.mark.parametrize("content", [LOG, noise(MIB)], ids=["one segment", "many segments"])
async def test_a_removal_that_was_cut_short_survives_the_loss_of_the_catalog(
    pair: list[Api], own_redis: RedisServer, content: bytes
) -> None:
    await pair[0].put(content)
    await cut_short(pair[0], path_of(content))
    assert await statuses(pair, path_of(content)) == {410}
    own_redis.restart(empty=True)

    assert await statuses(pair, path_of(content)) == {404}
    await rebuild(pair[1].service.archive)
    assert await statuses(pair, path_of(content)) == {404}
    assert await keys_in(pair[0]) == await removals_in(pair[0]) == []


async def test_a_removal_also_removes_what_a_rebuild_brings_back_meanwhile(
    pair: list[Api], own_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, other = pair
    await other.put(LOG)
    catalog, remove = asked.service.archive.catalog, asked.service.archive.catalog.remove

    async def lose_and_rebuild(*arguments: Any, **options: Any) -> bool:
        monkeypatch.setattr(catalog, "remove", remove)
        own_redis.restart(empty=True)
        is_removed = await remove(*arguments, **options)
        await rebuild(other.service.archive)
        return is_removed

    monkeypatch.setattr(catalog, "remove", lose_and_rebuild)
    # The rebuild looked for removals before this one began.
    of_rebuild = "overspill_service.archive.recovery.rebuild"
    monkeypatch.setattr(f"{of_rebuild}.finish_removals", lambda _: asyncio.sleep(0))
    monkeypatch.setattr(f"{of_rebuild}.removed_uploads", lambda _: asyncio.sleep(0, frozenset()))

    assert (await asked.send("DELETE", path_of(LOG))).status == 200
    assert await statuses(pair, path_of(LOG)) == {410}
    assert await keys_in(asked) == await removals_in(asked) == []


async def test_a_store_that_lets_nothing_go_stops_no_rebuild_and_brings_nothing_back(
    pair: list[Api], own_redis: RedisServer
) -> None:
    await pair[0].put(LOG)
    await pair[0].put(OTHER)
    await cut_short(pair[0], path_of(LOG))
    own_redis.restart(empty=True)
    with broken(pair[1].service.archive.store, "delete", StoreUnavailable("refused")):
        await rebuild(pair[1].service.archive)

    listing = await (await pair[1].get("/v1/captures")).json()
    assert [each["id"] for each in listing["captures"]] == [id_of(OTHER)]
    assert await statuses(pair, path_of(LOG)) == {404}


async def test_a_search_for_orphans_brings_nothing_back_whose_removal_is_not_finished(
    pair: list[Api], own_redis: RedisServer
) -> None:
    await pair[0].put(LOG)
    await cut_short(pair[0], path_of(LOG))
    own_redis.restart(empty=True)
    archive = pair[1].service.archive
    with broken(archive.store, "delete", StoreUnavailable("refused")):
        await rebuild(archive)
        await sweep_orphans(archive, age=DAY)
    assert await statuses(pair, path_of(LOG)) == {404}
    await finish_removals(archive)

    assert await keys_in(pair[0]) == await removals_in(pair[0]) == []


async def test_a_service_killed_while_it_removes_a_capture_has_removed_it(
    start_services: StartServices, own_redis: RedisServer, s3_server: S3Server, faulty_s3: FaultyProxy
) -> None:
    store = s3_server.url(s3_server.create_bucket(), endpoint=faulty_s3.url)
    (service,) = await asyncio.to_thread(start_services, 1, store=store, catalog=own_redis.url)
    faulty_s3.always("DELETE", stall)
    async with client_of(service) as client:
        entry = await client.put(LOG)
        faulty_s3.forget()
        removal = asyncio.create_task(client.delete(entry.id))
        await until(lambda: asyncio.sleep(0, faulty_s3.count("DELETE")))
        service.kill()
        with pytest.raises(OverspillError):
            await removal
    own_redis.restart(empty=True)
    faulty_s3.heal()
    await asyncio.to_thread(service.start)

    async with client_of(service, retries=3) as client:

        async def is_rebuilt() -> bool:
            return not (await client.list()).incomplete

        await until(is_rebuilt)
        with pytest.raises(NotFound):
            await client.content(entry.id)


async def test_a_capture_that_was_stored_twice_is_removed_whole(
    pair: list[Api], own_redis: RedisServer
) -> None:
    await pair[0].put(LOG)
    await store_a_second_upload(pair[0], LOG)
    assert (await pair[0].send("DELETE", path_of(LOG))).status == 200
    own_redis.restart(empty=True)
    await rebuild(pair[1].service.archive)

    assert await statuses(pair, path_of(LOG)) == {404}
    assert await keys_in(pair[0]) == []


async def test_an_upload_that_a_removal_overtakes_is_sent_once_more(pair: list[Api]) -> None:
    await pair[0].put(LOG)
    commit = pair[1].service.archive.catalog.commit
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def late(*args: Any) -> Any:
        begun.set()
        await go_on.wait()
        return await commit(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair[1].service.archive.catalog, "commit", late)
        patch.setattr("overspill_service.archive.storing.existing_entry", nothing_held)
        put = asyncio.create_task(pair[1].send("PUT", path_of(LOG), data=LOG))
        await begun.wait()
        assert (await pair[0].send("DELETE", path_of(LOG))).status == 200
        go_on.set()
        refused = await put

    assert (refused.status, await code_of(refused)) == (503, Code.CATALOG_UNAVAILABLE)
    assert await keys_in(pair[0]) == []
    assert (await pair[1].send("PUT", path_of(LOG), data=LOG)).status == 201
    assert await content_of(pair[0], path_of(LOG)) == LOG


async def nothing_held(*_: object) -> None:
    return None


# --- stored again ---------------------------------------------------------------------------------


async def test_what_is_stored_again_after_a_removal_that_was_cut_short_lives(
    pair: list[Api], own_redis: RedisServer
) -> None:
    await pair[0].put(LOG)
    await cut_short(pair[0], path_of(LOG))
    assert (await pair[1].send("PUT", path_of(LOG), data=LOG)).status == 201
    await finish_removals(pair[0].service.archive)

    assert await content_of(pair[0], path_of(LOG)) == LOG
    assert len(await keys_in(pair[0])) == 1
    own_redis.restart(empty=True)
    assert await content_of(pair[1], path_of(LOG)) == LOG
    await rebuild(pair[0].service.archive)
    assert await content_of(pair[1], path_of(LOG)) == LOG


async def test_a_capture_is_stored_anew_where_only_an_older_catalog_still_has_it(
    pair: list[Api], own_redis: RedisServer
) -> None:
    await pair[0].put(LOG)
    own_redis.command("SAVE")
    await cut_short(pair[0], path_of(LOG))
    own_redis.restart()  # as it was at the SAVE

    assert (await pair[1].send("PUT", path_of(LOG), data=LOG)).status == 201
    await rebuild(pair[0].service.archive)
    assert await content_of(pair[1], path_of(LOG)) == LOG


async def test_a_removal_that_never_reached_the_catalog_takes_nothing_that_lives(pair: list[Api]) -> None:
    await pair[0].put(LOG)
    archive = pair[0].service.archive
    with broken(archive.catalog, "remove", CatalogUnavailable("down")):
        refused = await pair[0].send("DELETE", path_of(LOG))
    assert (refused.status, await code_of(refused)) == (503, Code.CATALOG_UNAVAILABLE)
    assert len(await removals_in(pair[0])) == 1
    await finish_removals(archive)

    assert await content_of(pair[1], path_of(LOG)) == LOG
    assert await removals_in(pair[0]) == []


async def test_a_removal_under_way_is_left_to_whoever_is_at_it(pair: list[Api]) -> None:
    await pair[0].put(LOG)
    await cut_short(pair[0], path_of(LOG))
    await finish_removals(pair[1].service.archive, age=60)
    assert len(await keys_in(pair[0])) == len(await removals_in(pair[0])) == 1

    await finish_removals(pair[1].service.archive)
    assert await keys_in(pair[0]) == await removals_in(pair[0]) == []


# --- a catalog that fell back ---------------------------------------------------------------------


async def test_what_an_older_catalog_brings_back_of_an_erased_session_goes_with_the_rebuild(
    pair: list[Api], own_redis: RedisServer
) -> None:
    for number in range(30):
        await pair[0].put(b"%d" % number, Overspill_Session="s", Overspill_Label_Secret="x")
    await pair[0].put(LOG)
    own_redis.command("SAVE")
    before = await usage_of(pair[0])
    assert (await pair[0].send("DELETE", "/v1/sessions/s")).status == 200
    await pair[0].put(OTHER)
    own_redis.restart()
    assert (await usage_of(pair[0])).captures == before.captures

    await rebuild(pair[1].service.archive)

    left = await (await pair[0].get("/v1/captures?session=s")).json()
    assert (left["captures"], left["incomplete"]) == ([], False)
    assert await statuses(pair, path_of(b"7")) <= {404, 410}  # its tombstone is short-lived
    assert await content_of(pair[0], path_of(LOG)) == LOG
    assert await content_of(pair[0], path_of(OTHER)) == OTHER
    usage = await usage_of(pair[0])
    assert (usage.captures, usage.size) == (2, len(LOG) + len(OTHER))


async def test_an_upload_that_is_stored_while_a_rebuild_runs_is_not_dropped(pair: list[Api]) -> None:
    archive = pair[1].service.archive
    listing = archive.store.list

    async def then_stored(prefix: str) -> AsyncIterator[Any]:
        async for each in listing(prefix):
            yield each
        if prefix == object_keys.ROOT:
            await pair[0].put(LOG)

    archive.store.list = then_stored  # type: ignore[method-assign]
    await rebuild(archive)

    assert await content_of(pair[0], path_of(LOG)) == LOG
    assert (await usage_of(pair[0])).captures == 1


async def test_a_store_that_fails_during_a_rebuild_costs_no_entry(pair: list[Api]) -> None:
    await pair[0].put(LOG)
    archive = pair[1].service.archive
    with broken(archive.store, "read", StoreUnavailable("down")), pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "overspill_service.archive.recovery.stale_entries.UploadFilter.__contains__", lambda *_: False
        )
        with pytest.raises(StoreUnavailable):
            await rebuild(archive)

    assert await content_of(pair[0], path_of(LOG)) == LOG


async def test_an_entry_that_was_dropped_by_mistake_comes_back_with_the_next_rebuild(
    pair: list[Api], tmp_path: Path
) -> None:
    await pair[0].put(LOG)
    (tmp_path / "objects" / "v1").rename(tmp_path / "elsewhere")
    await rebuild(pair[1].service.archive)
    assert (await usage_of(pair[0])).captures == 0
    (tmp_path / "elsewhere").rename(tmp_path / "objects" / "v1")
    await rebuild(pair[1].service.archive)

    assert await content_of(pair[0], path_of(LOG)) == LOG


async def test_every_page_of_a_catalog_is_looked_through(
    pair: list[Api], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overspill_service.archive.recovery.stale_entries.PAGE", 4)
    for number in range(20):
        await pair[0].put(b"%d" % number)
    archive = pair[0].service.archive
    gone = [key for key in await keys_in(pair[0]) if key.split("/")[2] != id_of(b"7")]
    await archive.store.delete(gone)
    await rebuild(archive)

    entries, _ = await archive.catalog.find("default", Query(), now=0, limit=100)
    assert [entry.id for entry in entries] == [id_of(b"7")]


def test_what_a_listing_showed_is_never_denied_and_what_it_did_not_hardly_ever_affirmed() -> None:
    listed = UploadFilter(b"salt")
    shown = [object_keys.new_upload() for _ in range(20_000)]
    for upload in shown:
        listed.add(upload)

    assert all(upload in listed for upload in shown)
    assert sum(object_keys.new_upload() in listed for _ in range(20_000)) <= 2


async def test_what_the_catalog_forgets_in_the_middle_of_a_removal_is_removed_all_the_same(
    pair: list[Api], own_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await pair[0].put(LOG)
    catalog = pair[0].service.archive.catalog
    remove = catalog.remove

    async def remove_too_late(*asked: Any, **how: Any) -> bool:
        own_redis.command("FLUSHALL")
        return await remove(*asked, **how)

    monkeypatch.setattr(catalog, "remove", remove_too_late)
    assert (await pair[0].send("DELETE", path_of(LOG))).status == 200
    monkeypatch.undo()

    assert await keys_in(pair[1]) == []
    assert await removals_in(pair[1]) == []
    await rebuild(pair[1].service.archive)
    assert (await pair[1].get(f"{path_of(LOG)}/content")).status == 404


# --- a capture changes while it is removed --------------------------------------------------------

LIVE = "cap_aaaaaaaaaaaaaaaaaaaa"
PRODUCER = {Header.PRODUCER: "the producer's word", Header.SESSION: "s"}


async def appended(api: Api, count: int = 1) -> None:
    """A live capture of so many segments, and one more that is accepted."""
    assert (await api.send("PUT", f"/v1/captures/{LIVE}/live", headers=PRODUCER)).status == 201
    for number in range(count + 1):
        offset = {Header.UPLOAD_OFFSET: str(number * len(LOG))}
        path = f"/v1/captures/{LIVE}/append"
        assert (await api.send("POST", path, data=LOG, headers=PRODUCER | offset)).status == 200
        if number < count:
            await api.service.flusher.start("default", LIVE)


async def grow(api: Api) -> None:
    """Store what is accepted."""
    await api.service.flusher.start("default", LIVE)


async def move(api: Api) -> None:
    """End the capture, and move it into fewer objects."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("overspill_service.live.flusher.is_worth_compacting", lambda _: False)
        body = {"offset": 3 * len(LOG)}
        ended = await api.send("POST", f"/v1/captures/{LIVE}/complete", json=body, headers=PRODUCER)
        assert ended.status == 200, await ended.text()
    entry = await api.service.archive.catalog.get("default", LIVE)
    assert isinstance(entry, Entry)
    moved = await compact(api.service.archive, entry)
    assert moved is not None
    assert moved.upload != entry.upload


async def change_expiry(api: Api) -> None:
    assert (await api.send("PATCH", f"/v1/captures/{LIVE}", json={"ttl": 7200})).status == 200


@pytest.fixture
def during_removals(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Something changes once a removal has found the objects that it is to delete."""

    def change(api: Api, what: Callable[[Api], Awaitable[None]], times: int = 1) -> None:
        store, left = api.service.archive.store, times
        put = store.put

        async def changed(key: str, pieces: Any) -> Any:
            nonlocal left
            if key.startswith(object_keys.REMOVALS) and left:
                left -= 1
                await what(api)
            return await put(key, pieces)

        monkeypatch.setattr(store, "put", changed)

    return change


@pytest.mark.parametrize("path", [f"/v1/captures/{LIVE}", "/v1/sessions/s"])
@pytest.mark.parametrize("change", [grow, move, change_expiry])
async def test_a_capture_that_changes_while_it_is_removed_goes_with_all_of_its_objects(
    pair: list[Api],
    during_removals: Callable[..., None],
    path: str,
    change: Callable[[Api], Awaitable[None]],
) -> None:
    await appended(pair[0], count=2)
    during_removals(pair[0], change)
    receipt = await pair[0].send("DELETE", path)

    assert (receipt.status, (await receipt.json())["captures"]) == (200, 1)
    assert await statuses(pair, f"/v1/captures/{LIVE}") == {410}
    assert await segments_in(pair[0]) == await removals_in(pair[0]) == []


async def test_a_capture_that_never_stands_still_is_not_said_to_be_removed(
    pair: list[Api], during_removals: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overspill_service.archive.removal.ROUNDS", 3)
    await appended(pair[0])
    during_removals(pair[0], change_expiry, times=3)
    refused = await pair[0].send("DELETE", "/v1/sessions/s")

    assert (refused.status, await code_of(refused)) == (503, Code.CATALOG_UNAVAILABLE)
    assert (await pair[0].send("DELETE", "/v1/sessions/s")).status == 200
    assert await segments_in(pair[0]) == []


async def hold(api: Api) -> None:
    assert (await api.send("PUT", f"/v1/captures/{LIVE}/hold")).status == 200


async def test_who_removes_a_capture_that_is_put_on_hold_meanwhile_is_told_so(
    pair: list[Api], during_removals: Callable[..., None]
) -> None:
    await appended(pair[0])
    during_removals(pair[0], hold)
    refused = await pair[0].send("DELETE", f"/v1/captures/{LIVE}")

    assert (refused.status, await code_of(refused)) == (409, Code.HELD)
    assert (await pair[0].get(f"/v1/captures/{LIVE}")).status == 200
