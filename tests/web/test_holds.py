"""Captures on hold neither expire nor go, and every removal answers with a receipt."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from overspill import wire
from overspill.wire import Code, Remains, Scope
from overspill_service.archive import erasure, lifetimes
from overspill_service.archive.captures import Captures
from overspill_service.archive.recovery.rebuild import rebuild
from overspill_service.archive.recovery.stale_entries import drop_entry
from overspill_service.archive.sweep import sweep_expired
from overspill_service.catalog.records import Entry, Query
from overspill_service.store_format import object_keys

from tests.faults.test_removal import broken
from tests.faults.traffic import until
from tests.web.conftest import Api, id_of, path_of, problem
from tests.web.test_bound_keys import Keys

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.servers.redis import RedisServer

LOG, OTHER = b"evidence\n", b"something else\n"


@pytest.fixture(params=["sqlite", "redis"])
async def api(request: pytest.FixtureRequest, start_api: Callable[..., Any], tmp_path: Path) -> Api:
    """A service on each catalog."""
    catalog = "sqlite:"
    if request.param == "redis":
        redis: RedisServer = request.getfixturevalue("own_redis")
        catalog = redis.url
    started: Api = await start_api(store=f"file://{tmp_path}/objects", catalog=catalog, data=tmp_path)
    return started


async def held(api: Api, path: str, method: str = "PUT") -> wire.Entry:
    response = await api.send(method, f"{path}/hold")
    assert response.status == 200, await response.text()
    return msgspec.json.decode(await response.read(), type=wire.Entry)


async def removed(api: Api, path: str) -> wire.Removed:
    response = await api.send("DELETE", path)
    assert response.status == 200, await response.text()
    return msgspec.json.decode(await response.read(), type=wire.Removed)


async def content(api: Api) -> bytes:
    return await (await api.get(path_of(LOG) + "/content")).read()


async def test_a_capture_on_hold_is_refused_to_whoever_removes_it(api: Api) -> None:
    await api.put(LOG, Overspill_Session="s")
    assert (await held(api, path_of(LOG))).held
    refused = [
        await api.send("DELETE", path_of(LOG)),
        await api.send("DELETE", "/v1/captures/call:call_0?session=s"),
        await api.send("PATCH", path_of(LOG), json={"ttl": 1}),
    ]

    assert {(each.status, (await problem(each)).code) for each in refused} == {(409, Code.HELD)}
    assert await content(api) == LOG
    entry = msgspec.json.decode(await (await api.get(path_of(LOG))).read(), type=wire.Entry)
    assert entry.held
    assert entry.expires.year == 9999
    assert entry.expires.astimezone(tz=None)  # no zone makes it a year that does not exist


async def test_a_session_and_a_tenant_go_except_what_is_on_hold(api: Api) -> None:
    for number in range(3):
        await api.put(b"%d" % number, f"c{number}", Overspill_Session="s")
    await api.put(LOG, Overspill_Session="s")
    await held(api, path_of(LOG))
    first, again = [await removed(api, "/v1/sessions/s") for _ in range(2)]
    await api.put(OTHER, "c9", Overspill_Session="t")
    tenant = await removed(api, "/v1/captures?tenant=default")

    assert (first.captures, first.held) == (3, 1)
    assert (again.captures, again.held) == (0, 1)
    assert (tenant.captures, tenant.held) == (1, 1)
    assert await content(api) == LOG


async def test_time_does_not_remove_what_is_on_hold(api: Api) -> None:
    async def is_held() -> bool:
        """Put it on hold before it expires: a busy machine may come too late."""
        await api.put(LOG, Overspill_Ttl="1")
        return (await api.send("PUT", path_of(LOG) + "/hold")).status == 200

    async def is_expired() -> bool:
        return (await api.get(path_of(OTHER, "c1"))).status == 410

    await until(is_held)
    await api.put(OTHER, "c1", Overspill_Ttl="1")
    await until(is_expired)
    swept = await sweep_expired(api.service.archive, "default")

    assert swept.captures == 1
    assert await content(api) == LOG
    released = await held(api, path_of(LOG), "DELETE")
    left = released.expires - datetime.now(UTC)
    assert not released.held
    assert timedelta(hours=23) < left < timedelta(hours=25)
    assert (await removed(api, path_of(LOG))).captures == 1


async def test_a_hold_outlives_the_catalog(api: Api, start_api: Callable[..., Any], tmp_path: Path) -> None:
    await api.put(LOG)
    await held(api, path_of(LOG))
    other: Api = await start_api(store=f"file://{tmp_path}/objects", catalog="memory:")
    await rebuild(other.service.archive)

    assert (await problem(await other.send("DELETE", path_of(LOG)))).code == Code.HELD


async def test_a_catalog_that_has_missed_a_hold_does_not_end_it(api: Api) -> None:
    """As one that was put back from an older copy has."""
    await api.put(LOG, Overspill_Session="s")
    catalog, capture = api.service.archive.catalog, id_of(LOG)
    for path in (path_of(LOG), "/v1/sessions/s"):
        before = await catalog.get("default", capture)
        await held(api, path_of(LOG))
        after = await catalog.get("default", capture)
        assert isinstance(before, Entry)
        assert isinstance(after, Entry)
        await catalog.amend(after, expires=before.expires, marker=before.marker)
        answer = await api.send("DELETE", path)

        assert answer.status == (409 if path == path_of(LOG) else 200)
        assert answer.status == 409 or (await answer.json())["held"] == 1
        assert await content(api) == LOG
        assert not (await held(api, path_of(LOG), "DELETE")).held


@pytest.mark.parametrize("way", ["stored again", "another TTL", "released"])
async def test_no_change_through_an_older_catalog_ends_a_hold_unasked(
    api: Api, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    await api.put(LOG, Overspill_Ttl="100")
    catalog, capture = api.service.archive.catalog, id_of(LOG)
    before = await catalog.get("default", capture)
    await held(api, path_of(LOG))
    after = await catalog.get("default", capture)
    assert isinstance(before, Entry)
    assert isinstance(after, Entry)
    await catalog.amend(after, expires=before.expires, marker=before.marker)

    async def is_settled() -> bool:
        return False

    monkeypatch.setattr(catalog, "is_settled", is_settled)
    match way:
        case "stored again":
            assert (await api.put(LOG, Overspill_Ttl="100000")).held
        case "another TTL":
            refused = await api.send("PATCH", path_of(LOG), json={"ttl": 1000})
            assert (await problem(refused)).code == Code.HELD
        case _:
            assert not (await held(api, path_of(LOG), "DELETE")).held
    current = await catalog.get("default", capture)
    assert isinstance(current, Entry)

    assert current.is_held == (way != "released")
    marker = object_keys.parse(current.marker or "")
    assert marker is not None
    assert marker.expires == current.expires


async def test_what_is_stored_twice_because_the_catalog_was_just_lost_stays_on_hold(api: Api) -> None:
    await api.put(LOG)
    await held(api, path_of(LOG))
    archive = api.service.archive
    known = await archive.catalog.get("default", id_of(LOG))
    assert isinstance(known, Entry)
    await drop_entry(archive, known)
    again = await api.put(LOG)
    await rebuild(archive)
    current = await archive.catalog.get("default", id_of(LOG))

    assert not again.held
    assert isinstance(current, Entry)
    assert (current.upload != known.upload, current.is_held) == (True, True)
    assert not (await held(api, path_of(LOG), "DELETE")).held
    await rebuild(archive)
    assert (await removed(api, path_of(LOG))).captures == 1


async def test_a_removal_that_was_cut_short_before_the_hold_ends_no_hold(
    api: Api, start_api: Callable[..., Any], tmp_path: Path
) -> None:
    await api.put(LOG)
    with broken(api.service.archive.catalog, "remove", RuntimeError("killed")):
        assert (await api.send("DELETE", path_of(LOG))).status == 500
    await held(api, path_of(LOG))
    other: Api = await start_api(store=f"file://{tmp_path}/objects", catalog="memory:")
    await rebuild(other.service.archive)

    assert await content(other) == LOG
    assert (await problem(await other.send("DELETE", path_of(LOG)))).code == Code.HELD


async def test_a_hold_while_the_catalog_is_rebuilt_outlasts_a_removal_that_runs(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    await api.put(LOG, Overspill_Session="s")
    catalog, remove = api.service.archive.catalog, api.service.archive.catalog.remove

    async def is_complete() -> bool:
        return False

    async def held_first(*words: Any, **names: Any) -> bool:
        monkeypatch.setattr(catalog, "remove", remove)
        await held(api, path_of(LOG))
        return await remove(*words, **names)

    monkeypatch.setattr(catalog, "is_complete", is_complete)
    monkeypatch.setattr(catalog, "remove", held_first)
    await api.send("DELETE", path_of(LOG))
    monkeypatch.undo()

    assert await content(api) == LOG


async def test_a_session_is_put_on_hold_and_released(api: Api) -> None:
    for number in range(3):
        await api.put(b"%d" % number, f"c{number}", Overspill_Session="s/1")
    await api.put(LOG, Overspill_Session="other")
    answers = [
        await (await api.send(method, "/v1/sessions/s%2F1/hold")).json()
        for method in ("PUT", "PUT", "DELETE", "DELETE")
    ]

    assert [each["captures"] for each in answers] == [3, 3, 3, 0]
    assert (await removed(api, "/v1/sessions/s%2F1")).captures == 3
    assert (await removed(api, path_of(LOG))).captures == 1


async def test_a_hold_that_comes_during_a_removal_holds_or_comes_too_late(api: Api) -> None:
    """Whoever was told that a capture is on hold finds it there afterwards."""
    archive = api.service.archive
    for attempt in range(10):
        await api.put(LOG, Overspill_Session="s")
        hold, gone = await asyncio.gather(
            api.send("PUT", path_of(LOG) + "/hold"), api.send("DELETE", "/v1/sessions/s")
        )
        known = await archive.catalog.get("default", path_of(LOG).rpartition("/")[2])

        assert gone.status == 200
        assert (hold.status == 200) == (isinstance(known, Entry) and known.is_held), attempt
        if hold.status == 200:
            assert await content(api) == LOG
            await held(api, path_of(LOG), "DELETE")
            await removed(api, path_of(LOG))


async def test_a_ttl_that_is_changed_meanwhile_ends_no_hold(api: Api) -> None:
    await api.put(LOG)
    found = await api.service.archive.catalog.get("default", path_of(LOG).rpartition("/")[2])
    assert isinstance(found, Entry)
    await held(api, path_of(LOG))
    captures = Captures(api.service.archive, api.service.directory.tenant("default"))

    assert (await lifetimes.extend(captures, found, found.expires + 1000)).is_held
    current = await captures.get(found.id)
    assert not (await lifetimes.release(captures, current)).is_held


async def test_a_damaged_capture_on_hold_can_be_stored_again_and_stays_on_hold(api: Api) -> None:
    await api.put(LOG)
    await held(api, path_of(LOG))
    found = await api.service.archive.catalog.get("default", path_of(LOG).rpartition("/")[2])
    assert isinstance(found, Entry)
    await api.service.archive.store.delete(found.segment_keys)
    again = await api.put(LOG)

    assert again.held
    assert await content(api) == LOG


@pytest.mark.parametrize("step", ["put", "commit", "remove"])
async def test_a_hold_that_comes_while_a_damaged_capture_is_stored_again_holds(
    api: Api, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever was told that a capture is on hold finds it so, whatever object the hold was written beside."""
    await api.put(LOG)
    archive = api.service.archive
    found = await archive.catalog.get("default", id_of(LOG))
    assert isinstance(found, Entry)
    await archive.store.delete(found.segment_keys)
    port = archive.store if step == "put" else archive.catalog
    original = getattr(port, step)

    async def held_first(*args: Any, **how: Any) -> Any:
        monkeypatch.setattr(port, step, original)
        assert (await api.send("PUT", path_of(LOG) + "/hold")).status == 200
        return await original(*args, **how)

    monkeypatch.setattr(port, step, held_first)
    await api.put(LOG)
    known = await archive.catalog.get("default", id_of(LOG))
    assert isinstance(known, Entry)
    refused = await api.send("DELETE", path_of(LOG))
    await drop_entry(archive, known)
    rebuilt = await (await api.get(path_of(LOG))).json()

    assert (refused.status, rebuilt["held"], known.is_held) == (409, True, True)
    assert await content(api) == LOG


async def test_who_may_hold(api: Api) -> None:
    await api.put(LOG)
    keys = Keys(api)
    usual = await keys.key(Scope.WRITE, Scope.READ, Scope.DELETE)
    for method, path in [
        ("PUT", path_of(LOG) + "/hold"),
        ("DELETE", path_of(LOG) + "/hold"),
        ("PUT", "/v1/sessions/s/hold"),
        ("DELETE", "/v1/sessions/s/hold"),
        ("DELETE", "/v1/captures?tenant=default"),
    ]:
        assert (await keys.send(method, path, usual)).status == 403


# --- receipts -------------------------------------------------------------------------------------


async def test_a_receipt_says_what_remains_and_until_when(api: Api) -> None:
    await api.put(LOG, Overspill_Session="s")
    await api.put(OTHER, "c1", Overspill_Session="s")
    one = await removed(api, path_of(LOG))
    whole = await removed(api, "/v1/sessions/s")

    assert one.at is not None
    assert (one.captures, whole.captures, one.held) == (1, 1, 0)
    assert {each.what for each in one.remains} == {Remains.TOMBSTONE, Remains.CATALOG_LOG, Remains.BACKUPS}
    assert {each.what for each in whole.remains} - {each.what for each in one.remains} == {
        Remains.UNFINISHED_UPLOADS
    }
    untils = {each.what: each.until for each in one.remains}
    assert untils[Remains.TOMBSTONE] == one.at + timedelta(days=7)
    assert untils[Remains.BACKUPS] is None
    assert all(each.note for each in whole.remains)


@pytest.mark.parametrize(("keeps", "is_named"), [(True, True), (None, True), (False, False)])
async def test_a_receipt_tells_of_a_bucket_that_keeps_versions(
    api: Api, monkeypatch: pytest.MonkeyPatch, *, keeps: bool | None, is_named: bool
) -> None:
    async def versions(_store: object) -> bool | None:
        return keeps

    await api.put(LOG)
    monkeypatch.setattr(type(api.service.archive.store), "keeps_versions", versions)
    told = [each for each in (await removed(api, path_of(LOG))).remains if each.what == "object_versions"]

    assert bool(told) == is_named


@pytest.mark.parametrize("query", ["", "?tenant=", "?tenant=other", "?tenant=DEFAULT", "?tenant=default&x=1"])
async def test_a_tenant_goes_only_if_it_is_named(api: Api, query: str) -> None:
    await api.put(LOG)
    refused = await api.send("DELETE", f"/v1/captures{query}")

    assert (refused.status, (await problem(refused)).code) == (422, Code.INVALID_PARAMETER)
    assert await content(api) == LOG


async def test_more_captures_than_a_page_go_and_stay(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasure, "PAGE", 3)
    for number in range(11):
        entry = await api.put(b"%d" % number, f"c{number}", Overspill_Session="s")
        if number % 2:
            await held(api, f"/v1/captures/{entry.id}")
    answer = await removed(api, "/v1/sessions/s")

    assert (answer.captures, answer.held) == (6, 5)
    assert (await api.service.archive.catalog.totals("default")).captures == 5


async def test_an_interrupted_erasure_goes_on_where_it_ended(api: Api) -> None:
    for number in range(5):
        await api.put(b"%d" % number, f"c{number}", Overspill_Session="s")
    with broken(api.service.archive.catalog, "remove", RuntimeError("killed")):
        failed = await api.send("DELETE", "/v1/captures?tenant=default")
    assert failed.status == 500
    await removed(api, "/v1/captures?tenant=default")

    entries, _ = await api.service.archive.catalog.find("default", Query(), now=0, limit=10)
    assert entries == []


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
async def test_a_capture_that_goes_meanwhile_keeps_no_other_one_of_its_session_from_its_hold(
    api: Api, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        await api.put(b"%d" % number, f"c{number}", Overspill_Session="s")
    if method == "DELETE":
        await api.send("PUT", "/v1/sessions/s/hold")
    catalog = api.service.archive.catalog
    find = catalog.find

    async def found_and_gone(*args: Any, **how: Any) -> Any:
        monkeypatch.setattr(catalog, "find", find)
        found = await find(*args, **how)
        gone = found[0][0]
        if method == "DELETE":
            await api.send("DELETE", f"/v1/captures/{gone.id}/hold")
        assert (await api.send("DELETE", f"/v1/captures/{gone.id}")).status == 200
        return found

    monkeypatch.setattr(catalog, "find", found_and_gone)
    answer = await api.send(method, "/v1/sessions/s/hold")

    assert (answer.status, (await answer.json())["captures"]) == (200, 2)
