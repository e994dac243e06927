"""A catalog goes back to an older state, and captures have moved to other objects before or after that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from overspill.wire import Code, Header
from overspill_service.archive.recovery.rebuild import rebuild
from overspill_service.errors import StoreUnavailable
from overspill_service.live import flusher as flushing
from overspill_service.store_format import object_keys

from tests.faults.live_replicas import RedisCopies
from tests.faults.test_removal import broken
from tests.faults.traffic import code_of, content_of, keys_in, usage_of
from tests.web.conftest import Api, path_of

if TYPE_CHECKING:
    from tests.servers.redis import RedisServer

LIVE = "cap_aaaaaaaaaaaaaaaaaaaa"
PATH = f"/v1/captures/{LIVE}"
LOG = b"one line\n" * 1000
PRODUCER = {Header.PRODUCER: "the producer's word"}
DAY = 24 * 3600


async def appended(api: Api, number: int) -> None:
    headers = PRODUCER | {Header.UPLOAD_OFFSET: str(number * len(LOG))}
    assert (await api.send("POST", f"{PATH}/append", data=LOG, headers=headers)).status == 200


async def begun(api: Api) -> None:
    """A live capture of which nothing is stored yet."""
    assert (await api.send("PUT", f"{PATH}/live", headers=PRODUCER)).status == 201
    await appended(api, 0)


async def ended(api: Api, state: str) -> None:
    """A capture of four segments that was live."""
    await begun(api)
    await continued(api, state)


async def continued(api: Api, state: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flushing, "is_worth_compacting", lambda _: False)
        await api.service.flusher.start("default", LIVE)
        for number in range(1, 4):
            await appended(api, number)
            await api.service.flusher.start("default", LIVE)
        body = {"offset": 4 * len(LOG), "state": state}
        assert (await api.send("POST", f"{PATH}/complete", json=body, headers=PRODUCER)).status == 200


async def expiry_of(api: Api, path: str = PATH) -> Any:
    return (await (await api.get(path)).json())["expires"]


async def changed(api: Api, ttl: int, path: str = PATH) -> Any:
    response = await api.send("PATCH", path, json={"ttl": ttl})
    assert response.status == 200, await response.text()
    return (await response.json())["expires"]


async def held(api: Api, path: str = PATH) -> Any:
    response = await api.send("PUT", f"{path}/hold")
    assert response.status == 200, await response.text()
    return (await response.json())["expires"]


@pytest.fixture
def copies(own_redis: RedisServer) -> RedisCopies:
    return RedisCopies(own_redis)


@pytest.mark.parametrize("ttl", [3600, 60 * DAY], ids=["shorter", "longer"])
async def test_a_change_of_expiry_that_an_older_catalog_has_missed_is_not_lost_by_compaction(
    pair: list[Api], copies: RedisCopies, ttl: int
) -> None:
    await ended(pair[0], "complete")
    copies.copy()
    told = await changed(pair[0], ttl)
    copies.go_back()
    await pair[1].service.flusher.start("default", LIVE)
    await rebuild(pair[1].service.archive)

    assert sum("-0" in key for key in await keys_in(pair[0])) == 1
    assert [await expiry_of(each) for each in pair] == [told, told]


async def test_a_capture_whose_hold_an_older_catalog_has_missed_stays_in_its_objects(
    pair: list[Api], copies: RedisCopies
) -> None:
    await ended(pair[0], "complete")
    copies.copy()
    told = await held(pair[0])
    copies.go_back()
    before = await keys_in(pair[0])
    await pair[1].service.flusher.start("default", LIVE)

    assert await keys_in(pair[0]) == before
    assert [await expiry_of(each) for each in pair] == [told, told]


async def test_the_whole_of_a_partial_capture_lives_as_long_as_that_was_told_to(
    pair: list[Api], copies: RedisCopies
) -> None:
    await ended(pair[0], "partial")
    copies.copy()
    told = await changed(pair[0], 60 * DAY)
    copies.go_back()
    assert (await pair[1].send("PUT", PATH, data=LOG * 5)).status == 200
    await rebuild(pair[1].service.archive)

    assert [await expiry_of(each) for each in pair] == [told, told]


async def test_a_partial_capture_whose_hold_an_older_catalog_has_missed_is_not_replaced(
    pair: list[Api], copies: RedisCopies
) -> None:
    await ended(pair[0], "partial")
    copies.copy()
    await held(pair[0])
    copies.go_back()
    refused = await pair[1].send("PUT", PATH, data=LOG * 5)

    assert (refused.status, await code_of(refused)) == (409, Code.HELD)


async def test_a_damaged_capture_is_stored_again_for_the_life_that_an_older_catalog_has_missed(
    pair: list[Api], copies: RedisCopies
) -> None:
    path = path_of(LOG)
    await pair[0].put(LOG)
    segments = await keys_in(pair[0])
    copies.copy()
    told = await changed(pair[0], 60 * DAY, path)
    copies.go_back()
    await pair[0].service.archive.store.delete(segments)
    assert (await pair[1].send("PUT", path, data=LOG)).status == 201
    await rebuild(pair[1].service.archive)

    assert [await expiry_of(each, path) for each in pair] == [told, told]


async def move(api: Api, state: str) -> None:
    """Move an ended capture to other objects: by compaction, or as all of it is stored."""
    if state == "complete":
        await api.service.flusher.start("default", LIVE)
    else:
        assert (await api.send("PUT", PATH, data=LOG * 5)).status == 200


@pytest.mark.parametrize("state", ["complete", "partial"])
async def test_a_catalog_that_was_rebuilt_lists_what_has_moved_to_other_objects_since_its_copy(
    pair: list[Api], copies: RedisCopies, state: str
) -> None:
    await ended(pair[0], state)
    copies.copy()
    await move(pair[0], state)
    size = (await usage_of(pair[0])).stored_size
    copies.go_back()
    await rebuild(pair[1].service.archive)
    listing = await (await pair[0].get("/v1/captures")).json()

    assert [(each["id"], each["state"]) for each in listing["captures"]] == [(LIVE, "complete")]
    assert [((total := await usage_of(each)).captures, total.stored_size) for each in pair] == [(1, size)] * 2


@pytest.mark.parametrize("state", ["complete", "partial"])
async def test_a_capture_is_whole_where_a_copy_has_only_what_was_accepted_of_it_before_its_first_object(
    pair: list[Api], copies: RedisCopies, state: str
) -> None:
    await begun(pair[0])
    copies.copy()
    await continued(pair[0], state)
    await move(pair[0], state)
    content = await content_of(pair[0], PATH)
    copies.go_back()
    await rebuild(pair[1].service.archive)

    assert len(content) == len(LOG) * (4 if state == "complete" else 5)
    assert [await content_of(each, PATH) for each in pair] == [content, content]
    assert await pair[0].service.archive.catalog.live("default", LIVE) is None


@pytest.mark.parametrize("name", ["a" * 16, "z" * 16], ids=["first", "last"])
async def test_a_finished_capture_whose_former_objects_are_not_deleted_yet_is_not_live_again(
    pair: list[Api], copies: RedisCopies, name: str
) -> None:
    await begun(pair[0])
    copies.copy()
    await continued(pair[0], "complete")
    with (
        broken(pair[0].service.archive.store, "delete", StoreUnavailable("down")),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(object_keys, "new_upload", lambda: name)
        with pytest.raises(StoreUnavailable):
            await pair[0].service.flusher.start("default", LIVE)
    assert len(await keys_in(pair[0])) == 6
    copies.go_back()
    await rebuild(pair[1].service.archive)

    assert (await (await pair[0].get(PATH)).json())["state"] == "complete"
    assert await content_of(pair[1], PATH) == LOG * 4
