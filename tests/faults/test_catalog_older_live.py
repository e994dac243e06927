"""A capture that was removed or expired, while live or later, stays gone when a catalog goes back.

The catalog goes back to a time at which a live capture had accepted bytes, and no object.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from overspill.wire import Code, Header
from overspill_service.archive.recovery.rebuild import rebuild
from overspill_service.archive.removal import finish_removals
from overspill_service.archive.sweep import sweep_all, sweep_orphans
from overspill_service.errors import CatalogUnavailable, StoreUnavailable
from overspill_service.live import flusher as flushing

from tests.faults.live_replicas import TIMEOUT, RedisCopies, Replicas, SqliteCopies
from tests.faults.test_removal import broken, removals_in, statuses
from tests.faults.traffic import advance, code_of, content_of, keys_in, segments_in, usage_of
from tests.web.conftest import Api

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

    from tests.servers.redis import RedisServer

LIVE = "cap_aaaaaaaaaaaaaaaaaaaa"
PATH = f"/v1/captures/{LIVE}"
LOG = b"one line\n"
PRODUCER = {Header.PRODUCER: "the producer's word", Header.SESSION: "s"}
DAY = 24 * 3600


async def begun(api: Api, ttl: int = 60 * DAY) -> None:
    """A live capture of which nothing is stored yet."""
    headers = PRODUCER | {Header.TTL: str(ttl)}
    assert (await api.send("PUT", f"{PATH}/live", headers=headers)).status == 201
    await append(api, 0)


async def append(api: Api, number: int) -> None:
    headers = PRODUCER | {Header.UPLOAD_OFFSET: str(number * len(LOG))}
    assert (await api.send("POST", f"{PATH}/append", data=LOG, headers=headers)).status == 200


async def nothing(_: Api) -> None:
    """Leave the capture as it is."""


async def flush(api: Api) -> None:
    """Store what is accepted."""
    await api.service.flusher.start("default", LIVE)


async def end(api: Api, count: int = 1, state: str = "complete") -> None:
    body = {"offset": count * len(LOG), "state": state}
    assert (await api.send("POST", f"{PATH}/complete", json=body, headers=PRODUCER)).status == 200


async def move(api: Api) -> None:
    """End the capture with four segments, and move it into one object."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flushing, "is_worth_compacting", lambda _: False)
        await flush(api)
        for number in range(1, 4):
            await append(api, number)
            await flush(api)
        await end(api, 4)
    await flush(api)
    assert len(await segments_in(api)) == 1


async def supersede(api: Api) -> None:
    """Store the whole of a capture that was given up."""
    await end(api, state="partial")
    assert (await api.send("PUT", PATH, data=LOG * 2, headers=PRODUCER)).status == 200


async def require_gone(pair: list[Api]) -> None:
    """Nothing of the capture can be read, or becomes durable, before and after the rebuild."""
    assert await statuses(pair, PATH) <= {404, 410}
    advance(pair, TIMEOUT + 1)
    await flush(pair[0])
    assert await segments_in(pair[0]) == []
    await rebuild(pair[1].service.archive)
    for each in pair:
        await flush(each)
        assert await each.service.archive.catalog.live("default", LIVE) is None

    assert await statuses(pair, PATH) <= {404, 410}
    assert (await usage_of(pair[0])).captures == 0
    assert await segments_in(pair[0]) == []


@pytest.mark.parametrize("since", [nothing, flush, end, move, supersede])
async def test_a_removed_capture_stays_removed_in_a_redis_that_had_only_accepted_bytes_of_it(
    pair: list[Api], own_redis: RedisServer, since: Callable[[Api], Awaitable[None]]
) -> None:
    await begun(pair[0])
    own_redis.command("SAVE")
    await since(pair[0])
    assert (await pair[1].send("DELETE", PATH)).status == 200
    own_redis.restart()  # SIGKILL, and as it was at the SAVE

    await require_gone(pair)


@pytest.mark.parametrize("path", ["/v1/sessions/s", "/v1/captures?tenant=default"])
async def test_captures_of_a_session_or_a_tenant_that_were_live_stay_removed(
    pair: list[Api], own_redis: RedisServer, path: str
) -> None:
    await begun(pair[0])
    own_redis.command("SAVE")
    assert (await (await pair[1].send("DELETE", path)).json())["captures"] == 1
    own_redis.restart()

    await require_gone(pair)


async def test_a_removed_capture_of_which_a_copy_has_a_segment_and_accepted_bytes_stays_removed(
    pair: list[Api], own_redis: RedisServer
) -> None:
    await begun(pair[0])
    await flush(pair[0])
    await append(pair[0], 1)
    own_redis.command("SAVE")
    assert (await pair[1].send("DELETE", PATH)).status == 200
    own_redis.restart()

    await require_gone(pair)


async def test_a_released_and_removed_capture_stays_removed_where_a_copy_has_it_on_hold(
    pair: list[Api], own_redis: RedisServer
) -> None:
    await begun(pair[0])
    assert (await pair[0].send("PUT", f"{PATH}/hold")).status == 200
    own_redis.command("SAVE")
    assert (await pair[0].send("DELETE", f"{PATH}/hold")).status == 200
    assert (await pair[0].send("DELETE", PATH)).status == 200
    own_redis.restart()

    await require_gone(pair)


@pytest.fixture(params=[RedisCopies, SqliteCopies])
async def replicas(
    request: pytest.FixtureRequest, own_redis: RedisServer, tmp_path: Path
) -> AsyncIterator[Replicas]:
    is_redis = request.param is RedisCopies
    both = Replicas(
        tmp_path / "data", RedisCopies(own_redis) if is_redis else SqliteCopies(tmp_path / "data")
    )
    await both.start()
    yield both
    await both.stop()


async def test_any_catalog_that_is_put_back_has_nothing_of_a_removed_live_capture(replicas: Replicas) -> None:
    await begun(replicas.both[0].api)
    await replicas.disturb(replicas.catalog.copy)
    assert (await replicas.both[0].api.send("DELETE", PATH)).status == 200
    await replicas.disturb(replicas.catalog.go_back)
    apis = [each.api for each in replicas.both]

    assert await statuses(apis, PATH) <= {404, 410}
    await flush(apis[0])
    await replicas.both[1].rebuilt()
    assert await segments_in(apis[0]) == []
    assert await statuses(apis, PATH) <= {404, 410}


# --- what has expired -----------------------------------------------------------------------------


async def test_a_capture_whose_life_was_shortened_is_not_back_once_that_has_ended(
    pair: list[Api], own_redis: RedisServer
) -> None:
    await begun(pair[0])
    own_redis.command("SAVE")
    await end(pair[0])
    assert (await pair[0].send("PATCH", PATH, json={"ttl": 60})).status == 200
    advance(pair, 100)
    assert (await sweep_all(pair[0].service.archive, ["default"])).removed.captures == 1
    own_redis.restart()

    await require_gone(pair)


async def test_a_capture_that_has_expired_is_not_live_again(pair: list[Api], own_redis: RedisServer) -> None:
    await begun(pair[0], ttl=3 * 3600)
    own_redis.command("SAVE")
    await end(pair[0])
    advance(pair, 4 * 3600)
    assert (await sweep_all(pair[0].service.archive, ["default"])).removed.captures == 1
    assert await keys_in(pair[0]) == []
    own_redis.restart()

    await require_gone(pair)


async def test_what_tells_of_a_removal_goes_after_days_and_an_older_copy_than_that_brings_nothing_back(
    pair: list[Api], own_redis: RedisServer
) -> None:
    await begun(pair[0])
    own_redis.command("SAVE")
    assert (await pair[0].send("DELETE", PATH)).status == 200
    await sweep_orphans(pair[0].service.archive, age=0)
    kept = await keys_in(pair[0])
    advance(pair, 7 * DAY)
    await sweep_orphans(pair[0].service.archive, age=0)
    assert (len(kept), await keys_in(pair[0])) == (1, [])
    own_redis.restart()

    await require_gone(pair)


# --- what lives -----------------------------------------------------------------------------------


async def test_a_live_capture_of_which_nothing_was_stored_goes_on_after_a_restart_of_redis(
    pair: list[Api], own_redis: RedisServer
) -> None:
    await begun(pair[0])
    own_redis.command("SAVE")
    own_redis.restart()
    assert await content_of(pair[1], PATH) == LOG
    await append(pair[0], 1)
    await rebuild(pair[1].service.archive)
    await append(pair[1], 2)
    await end(pair[0], 3)

    assert await content_of(pair[1], PATH) == LOG * 3


@pytest.mark.parametrize("ttl", [None, 60 * DAY], ids=["hold", "expiry"])
async def test_a_live_capture_without_a_segment_that_has_a_marker_outlasts_the_silence_of_its_producer(
    pair: list[Api], own_redis: RedisServer, ttl: int | None
) -> None:
    await begun(pair[0], ttl=3600)
    changed = (
        await pair[0].send("PUT", f"{PATH}/hold")
        if ttl is None
        else await pair[0].send("PATCH", PATH, json={"ttl": ttl})
    )
    assert changed.status == 200
    own_redis.command("SAVE")
    advance(pair, 7 * DAY)
    own_redis.restart()
    await rebuild(pair[1].service.archive)

    assert await content_of(pair[0], PATH) == LOG


async def test_a_capture_that_is_begun_again_after_its_removal_outlasts_the_catalog(
    pair: list[Api], own_redis: RedisServer
) -> None:
    await begun(pair[0])
    assert (await pair[0].send("DELETE", PATH)).status == 200
    await begun(pair[1])
    own_redis.command("SAVE")
    own_redis.restart()
    await rebuild(pair[0].service.archive)
    assert await content_of(pair[0], PATH) == LOG
    await end(pair[1])
    own_redis.restart(empty=True)
    await rebuild(pair[0].service.archive)

    assert await content_of(pair[0], PATH) == LOG


# --- a removal is interrupted ---------------------------------------------------------------------


@contextmanager
def no_markers(api: Api) -> Iterator[None]:
    """A store that takes all objects but markers of removals, until the block ends."""
    put = api.service.archive.store.put

    async def refuse(key: str, pieces: Any) -> Any:
        if "/removed-" in key:
            raise StoreUnavailable("down")
        return await put(key, pieces)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api.service.archive.store, "put", refuse)
        yield


async def asked_again(api: Api) -> None:
    assert (await api.send("DELETE", PATH)).status == 200


async def finished(api: Api) -> None:
    await finish_removals(api.service.archive)


@pytest.mark.parametrize("again", [asked_again, finished])
@pytest.mark.parametrize("since", [nothing, end])
async def test_a_removal_that_could_not_leave_its_marker_is_not_confirmed_and_can_be_finished(
    pair: list[Api],
    own_redis: RedisServer,
    since: Callable[[Api], Awaitable[None]],
    again: Callable[[Api], Awaitable[None]],
) -> None:
    await begun(pair[0])
    own_redis.command("SAVE")
    await since(pair[0])
    with broken(pair[0].service.archive.store, "put", StoreUnavailable("down")):
        refused = await pair[0].send("DELETE", PATH)
    assert (refused.status, await code_of(refused)) == (503, Code.STORE_UNAVAILABLE)
    with no_markers(pair[0]):
        refused = await pair[0].send("DELETE", PATH)
    assert (refused.status, await code_of(refused)) == (503, Code.STORE_UNAVAILABLE)
    await again(pair[1])
    own_redis.restart()

    await require_gone(pair)
    assert await removals_in(pair[0]) == []


async def test_a_removal_that_never_reached_the_catalog_leaves_a_live_capture_as_it_is(
    pair: list[Api], own_redis: RedisServer
) -> None:
    await begun(pair[0])
    with broken(pair[0].service.archive.catalog, "remove", CatalogUnavailable("down")):
        assert (await pair[0].send("DELETE", PATH)).status == 503
    await finish_removals(pair[1].service.archive)
    assert await keys_in(pair[0]) == await removals_in(pair[0]) == []
    await end(pair[0])
    own_redis.restart(empty=True)
    await rebuild(pair[1].service.archive)

    assert await content_of(pair[0], PATH) == LOG


async def test_a_segment_that_was_stored_while_its_capture_was_removed_does_not_come_back(
    pair: list[Api], own_redis: RedisServer
) -> None:
    await begun(pair[0])
    store = pair[0].service.archive.store
    put = store.put

    async def removed_meanwhile(key: str, pieces: Any) -> bool:
        assert (await pair[1].send("DELETE", PATH)).status == 200
        await put(key, pieces)
        raise StoreUnavailable("the process dies here")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "put", removed_meanwhile)
        with pytest.raises(StoreUnavailable):
            await flush(pair[0])
    assert len(await segments_in(pair[0])) == 1
    own_redis.restart(empty=True)
    assert await statuses(pair, PATH) == {404}
    await rebuild(pair[1].service.archive)
    await sweep_orphans(pair[1].service.archive, age=DAY)

    assert await statuses(pair, PATH) == {404}


STEPS = ("put", "remove", "put", "delete", "delete")
"""What a removal changes: record, tombstone, marker, objects, record."""


@contextmanager
def dying_after(api: Api, count: int) -> Iterator[list[str]]:
    """A process that dies once a removal has made so many changes, until the block ends."""
    archive, made = api.service.archive, list[str]()

    def counted(port: object, name: str) -> Any:
        change = getattr(port, name)

        async def once(*arguments: Any, **options: Any) -> Any:
            if len(made) >= count:
                raise StoreUnavailable("the process is dead")
            made.append(name)
            return await change(*arguments, **options)

        return once

    with pytest.MonkeyPatch.context() as patch:
        for port, name in ((archive.store, "put"), (archive.store, "delete"), (archive.catalog, "remove")):
            patch.setattr(port, name, counted(port, name))
        yield made


@pytest.mark.parametrize("is_empty", [False, True], ids=["older", "empty"])
@pytest.mark.parametrize("count", range(len(STEPS) + 1))
async def test_a_removal_that_breaks_off_after_any_step_is_finished_by_the_rebuild(
    pair: list[Api], own_redis: RedisServer, count: int, is_empty: bool
) -> None:
    await begun(pair[0])
    own_redis.command("SAVE")
    await end(pair[0])
    with dying_after(pair[0], count) as made:
        answered = await pair[0].send("DELETE", PATH)
    assert (answered.status, tuple(made)) == (200 if count == len(STEPS) else 503, STEPS[:count])
    own_redis.restart(empty=is_empty)
    await rebuild(pair[1].service.archive)

    if count == 0:
        assert await content_of(pair[1], PATH) == LOG
    else:
        await require_gone(pair)
