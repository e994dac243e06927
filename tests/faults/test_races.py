"""Reads, changes of an expiry and removals of one capture at the same time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from aiohttp import ClientError
from overspill import wire
from overspill.wire import Code
from overspill_service.archive.recovery.rebuild import rebuild
from overspill_service.catalog.records import Entry

from tests.faults.traffic import MIB, advance, code_of, content_of, keys_in, noise, until
from tests.web.conftest import Api, id_of, path_of

if TYPE_CHECKING:
    from aiohttp import ClientResponse

    from tests.servers.redis import RedisServer

LOG = b"one line\n" * 1000
DAY = 24 * 3600
READS = ("content", "head?lines=5", "tail?lines=5", "lines?start=1&end=2", "grep?pattern=one", "summary")


@pytest.fixture
async def pair(
    start_api: Callable[..., Any], own_redis: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[Api]:
    """Two replicas that rebuild when the test says so."""
    monkeypatch.setattr("overspill_service.maintenance.POLL_SECONDS", 3600.0)
    settings = {"store": f"file://{tmp_path}/objects", "catalog": own_redis.url}
    replicas = [await start_api(**settings) for _ in range(2)]
    for each in replicas:
        await until(each.service.archive.catalog.is_complete)
    return replicas


class Held:
    """An operation of a back end whose first call waits, before it begins, until it is let go."""

    def __init__(self) -> None:
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()


@contextmanager
def held(port: object, operation: str, *, after: int = 0) -> Iterator[Held]:
    """Hold the call that comes after so many others of this operation."""
    hold, calls, original = Held(), 0, getattr(port, operation)

    async def waiting(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == after + 1:
            hold.begun.set()
            await hold.go_on.wait()
        return await original(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(port, operation, waiting)
        yield hold


async def patched(api: Api, ttl: int, content: bytes = LOG) -> str:
    """The expiry that a change was answered with."""
    response = await api.send("PATCH", path_of(content), json={"ttl": ttl})
    assert response.status == 200, await response.text()
    return await expiry_in(response)


async def expiry_of(api: Api, content: bytes = LOG) -> str:
    return await expiry_in(await api.get(path_of(content)))


async def expiry_in(response: ClientResponse) -> str:
    expires: str = (await response.json())["expires"]
    return expires


async def lose_catalog(pair: list[Api], redis: RedisServer) -> None:
    redis.restart(empty=True)
    await rebuild(pair[0].service.archive)


# --- reads ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_cached", [True, False], ids=["map known", "map read"])
@pytest.mark.parametrize("read", READS)
async def test_a_read_beside_a_removal_says_that_the_capture_was_deleted(
    pair: list[Api], read: str, is_cached: bool
) -> None:
    entry = await pair[0].put(LOG)
    if not is_cached:
        forget_index(pair[1])
    with held(pair[1].service.archive.store, "read") as hold:
        reading = asyncio.create_task(pair[1].get(f"{path_of(LOG)}/{read}"))
        await hold.begun.wait()
        assert (await pair[0].send("DELETE", path_of(LOG))).status == 200
        hold.go_on.set()
        response = await reading

    assert (response.status, await code_of(response)) == (410, Code.DELETED), entry


def forget_index(api: Api) -> None:
    """Have the frame map read from the objects, as for a capture whose map is too large for its entry."""
    get = api.service.archive.catalog.get

    async def without_index(tenant: str, capture: str) -> Any:
        found = await get(tenant, capture)
        return msgspec.structs.replace(found, index=None) if isinstance(found, Entry) else found

    api.service.archive.catalog.get = without_index  # type: ignore[method-assign]


async def test_a_read_beside_the_sweep_says_that_the_capture_has_expired(pair: list[Api]) -> None:
    await pair[0].put(LOG, Overspill_Ttl="60")
    with held(pair[1].service.archive.store, "read") as hold:
        reading = asyncio.create_task(pair[1].get(f"{path_of(LOG)}/content"))
        await hold.begun.wait()
        advance(pair, 61)
        await pair[0].send("POST", wire.Path.SWEEP)
        hold.go_on.set()
        response = await reading

    assert (response.status, await code_of(response)) == (410, Code.EXPIRED)


async def test_a_read_of_what_is_removed_and_stored_again_beside_it_gives_the_new_bytes(
    pair: list[Api],
) -> None:
    await pair[0].put(LOG)
    with held(pair[1].service.archive.store, "read") as hold:
        reading = asyncio.create_task(pair[1].get(f"{path_of(LOG)}/content"))
        await hold.begun.wait()
        await pair[0].send("DELETE", path_of(LOG))
        await pair[0].put(LOG)
        hold.go_on.set()
        response = await reading

    assert (response.status, await response.read()) == (200, LOG)


async def test_a_removal_after_the_first_byte_breaks_the_answer_off(
    pair: list[Api], monkeypatch: pytest.MonkeyPatch
) -> None:
    large = noise(24 * MIB)
    await pair[0].put(large)
    with held(pair[1].service.archive.store, "read", after=3) as hold:
        reading = asyncio.create_task(pair[1].get(f"{path_of(large)}/content"))
        await hold.begun.wait()
        await pair[0].send("DELETE", path_of(large))
        hold.go_on.set()
        with pytest.raises(ClientError):
            await reading


async def test_an_object_that_nobody_removed_is_still_damage(pair: list[Api]) -> None:
    await pair[0].put(LOG)
    await pair[0].service.archive.store.delete(await keys_in(pair[0]))
    response = await pair[1].get(f"{path_of(LOG)}/content")

    assert (response.status, await code_of(response)) == (500, Code.CAPTURE_DAMAGED)


async def test_what_an_older_catalog_still_has_is_not_called_damaged(
    pair: list[Api], own_redis: RedisServer
) -> None:
    await pair[0].put(LOG)
    own_redis.command("SAVE")
    await pair[0].send("DELETE", path_of(LOG))
    own_redis.restart()
    response = await pair[1].get(f"{path_of(LOG)}/content")

    assert (response.status, await code_of(response)) == (503, Code.CATALOG_INCOMPLETE)
    await rebuild(pair[0].service.archive)
    assert (await pair[1].get(f"{path_of(LOG)}/content")).status in (404, 410)  # its tombstone is short-lived


# --- changes of an expiry -------------------------------------------------------------------------


@pytest.mark.parametrize(("slow", "quick"), [(600, 3 * DAY), (3 * DAY, 600)])
async def test_of_two_changes_at_once_the_one_that_the_catalog_took_last_holds_after_its_loss(
    pair: list[Api], own_redis: RedisServer, slow: int, quick: int
) -> None:
    await pair[0].put(LOG)
    with held(pair[1].service.archive.catalog, "amend") as hold:
        changing = asyncio.create_task(patched(pair[1], slow))
        await hold.begun.wait()  # its marker is written
        await patched(pair[0], quick)
        hold.go_on.set()
        last = await changing

    assert await expiry_of(pair[0]) == last
    await lose_catalog(pair, own_redis)
    assert await expiry_of(pair[1]) == last


@pytest.mark.parametrize(("first", "second"), [(600, 3 * DAY), (3 * DAY, 600)])
async def test_a_marker_that_a_killed_replica_left_behind_changes_nothing_that_came_after_it(
    pair: list[Api], own_redis: RedisServer, first: int, second: int
) -> None:
    await pair[0].put(LOG)
    with held(pair[1].service.archive.catalog, "amend") as hold:
        changing = asyncio.create_task(patched(pair[1], first))
        await hold.begun.wait()
        last = await patched(pair[0], second)
        changing.cancel()  # the client is gone, and its handler with it
        await asyncio.gather(changing, return_exceptions=True)
        await lose_catalog(pair, own_redis)

    assert await expiry_of(pair[0]) == last


async def test_changes_in_quick_succession_hold_in_their_order(
    pair: list[Api], own_redis: RedisServer, tmp_path: Path
) -> None:
    await pair[0].put(LOG)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(pair[0].service.archive.store._inner), "delete", nothing_deleted)  # type: ignore[attr-defined]
        for number in range(10):
            last = await patched(pair[number % 2], random.Random(number).randrange(600, DAY))
    assert len(await keys_in(pair[0])) == 11  # markers that could not be deleted
    await lose_catalog(pair, own_redis)

    assert await expiry_of(pair[0]) == last


async def nothing_deleted(*_: object) -> None:
    pass


async def test_a_change_that_a_removal_overtakes_leaves_nothing_behind(
    pair: list[Api], own_redis: RedisServer
) -> None:
    await pair[0].put(LOG)
    with held(pair[1].service.archive.catalog, "amend") as hold:
        changing = asyncio.create_task(pair[1].send("PATCH", path_of(LOG), json={"ttl": 600}))
        await hold.begun.wait()
        assert (await pair[0].send("DELETE", path_of(LOG))).status == 200
        hold.go_on.set()
        response = await changing

    assert (response.status, await code_of(response)) == (410, Code.DELETED)
    assert await keys_in(pair[0]) == []
    await lose_catalog(pair, own_redis)
    assert (await pair[0].get(path_of(LOG))).status == 404


# --- everything at once ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
async def test_after_many_operations_at_once_the_objects_tell_what_the_catalog_told(
    pair: list[Api], own_redis: RedisServer, seed: int
) -> None:
    contents = [b"%d\n" % number for number in range(4)]
    await asyncio.gather(*(hammer(pair, contents, seed * 100 + each) for each in range(12)))
    before = [await told(pair[0], content) for content in contents]
    assert [await told(pair[1], content) for content in contents] == before
    await lose_catalog(pair, own_redis)

    assert [await told(pair[1], content) for content in contents] == before
    entries = sum(expires is not None for expires in before)
    assert len([key for key in await keys_in(pair[0]) if "expires" not in key]) == entries


async def hammer(pair: list[Api], contents: list[bytes], seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(25):
        content, api = chance.choice(contents), chance.choice(pair)
        match chance.choice(["put", "patch", "patch", "delete", "read"]):
            case "put":
                ttl = {wire.Header.TTL: str(chance.randrange(600, DAY))}
                response = await api.send("PUT", path_of(content), data=content, headers=ttl)
                assert response.status in (200, 201, 503), await response.text()
            case "patch":
                ttl_in = {"ttl": chance.randrange(600, DAY)}
                response = await api.send("PATCH", path_of(content), json=ttl_in)
                assert response.status in (200, 404, 410), await response.text()
            case "delete":
                response = await api.send("DELETE", path_of(content))
                assert response.status in (200, 404, 410), await response.text()
            case _:
                response = await api.get(f"{path_of(content)}/content")
                assert response.status in (200, 404, 410), await response.text()
                assert response.status != 200 or await response.read() == content


async def told(api: Api, content: bytes) -> str | None:
    """When a capture expires; None where there is none."""
    response = await api.get(path_of(content))
    if response.status != 200:
        return None
    assert await content_of(api, path_of(content)) == content
    assert id_of(content) in path_of(content)
    return await expiry_in(response)
