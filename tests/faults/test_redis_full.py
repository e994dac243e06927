"""Redis is full: nothing new is stored, and everything that frees memory works."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from overspill.wire import Scope, State
from overspill_service.archive.sweep import sweep_all
from overspill_service.catalog.quotas import Quota
from overspill_service.errors import CatalogUnavailable
from overspill_service.maintenance import Maintenance

from tests.faults.traffic import advance, until
from tests.web.conftest import Api, path_of, problem
from tests.web.live_producer import CAPTURE, Producer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.servers.redis import RedisServer

CAPTURES = 30


@pytest.fixture
async def api(start_api: Callable[..., Any], own_redis: RedisServer, tmp_path: Path) -> Api:
    """A service whose live captures become durable when a test says so."""
    made: Api = await start_api(
        store=f"file://{tmp_path}/objects",
        catalog=f"{own_redis.url}?deadline=5",
        live_flush_seconds=3600.0,
    )
    await until(made.service.archive.catalog.is_complete)
    return made


@pytest.fixture
async def full(api: Api, own_redis: RedisServer) -> Api:
    """A service with captures of two sessions on a Redis that takes no more."""
    for number in range(CAPTURES):
        await api.put(b"%d\n" % number, f"call_{number}", Overspill_Session="abc"[number % 3])
    fill(own_redis)
    return api


def fill(redis: RedisServer) -> None:
    redis.command("CONFIG", "SET", "maxmemory-policy", "noeviction")
    redis.command("CONFIG", "SET", "maxmemory", 1)


@pytest.fixture
async def producer(api: Api, own_redis: RedisServer) -> Producer:
    """The producer of a live capture that has accepted bytes in a Redis that takes no more."""
    made = Producer(api)
    await made.begin()
    await made.append(b"one\n")
    fill(own_redis)
    return made


async def test_new_captures_are_refused_and_the_service_stays_ready(full: Api) -> None:
    refused = await full.send("PUT", path_of(b"new"), data=b"new")

    assert refused.status == 503
    assert "out of memory" in (await problem(refused)).detail
    assert (await full.get("/readyz")).status == 200
    assert (await (await full.get(path_of(b"3\n", "call_3") + "/content")).read()) == b"3\n"


@pytest.mark.parametrize(
    ("method", "content", "rest", "options"),
    [
        ("PUT", b"new", "", {"data": b"new"}),
        ("PUT", b"0\n", "/hold", {}),
        ("PATCH", b"0\n", "", {"json": {"ttl": 30 * 24 * 3600}}),
    ],
    ids=["a capture", "a hold", "a longer life"],
)
async def test_what_is_refused_leaves_nothing_in_the_object_store(
    full: Api, method: str, content: bytes, rest: str, options: dict[str, Any]
) -> None:
    before = await stored_keys(full)
    refused = await full.send(method, path_of(content, "call_0") + rest, **options)

    assert refused.status == 503
    assert await stored_keys(full) == before


@contextmanager
def without_snapshots(redis: RedisServer) -> Iterator[None]:
    """Let Redis fail to write a snapshot, so that it refuses all writes."""
    (redis.directory / "dump.rdb").mkdir()
    redis.command("CONFIG", "SET", "save", "3600 1")
    redis.command("BGSAVE")
    try:
        yield
    finally:
        redis.command("CONFIG", "SET", "save", "")  # else it does not stop


async def test_a_whole_output_that_redis_refuses_leaves_only_the_partial_one(
    api: Api, own_redis: RedisServer
) -> None:
    producer = Producer(api)
    await producer.begin()
    await producer.append(b"one\n")
    await producer.complete(state="partial")
    before = await stored_keys(api)
    with without_snapshots(own_redis):

        async def refuses() -> bool:
            persistence = own_redis.command("INFO", "persistence")
            return bool(persistence["rdb_last_bgsave_status"] == "err")

        await until(refuses)
        refused = await api.send("PUT", producer.path, data=b"one\ntwo\n")

    assert "cannot persist" in (await problem(refused)).detail
    assert await stored_keys(api) == before
    assert (await producer.entry()).state is State.PARTIAL


async def stored_keys(api: Api) -> set[str]:
    return {stored.key async for stored in api.service.archive.store.list("v1/")}


async def test_captures_and_sessions_are_deleted(full: Api) -> None:
    one = await full.send("DELETE", path_of(b"0\n", "call_0"))
    session = await full.send("DELETE", "/v1/sessions/b")

    assert (one.status, session.status) == (200, 200)
    assert (await session.json())["captures"] == CAPTURES // 3
    assert (await (await full.get("/v1/usage")).json())["captures"] == CAPTURES - 1 - CAPTURES // 3


async def test_a_capture_on_hold_is_released_and_deleted(full: Api, own_redis: RedisServer) -> None:
    path = path_of(b"0\n", "call_0")
    own_redis.command("CONFIG", "SET", "maxmemory", 0)
    assert (await full.send("PUT", f"{path}/hold")).status == 200
    fill(own_redis)

    assert (await full.send("DELETE", path)).status == 409
    assert (await full.send("DELETE", f"{path}/hold")).status == 200
    assert (await full.send("DELETE", path)).status == 200


async def test_who_has_read_is_told_once_there_is_room(full: Api, own_redis: RedisServer) -> None:
    await full.get(path_of(b"3\n", "call_3") + "/content")
    with pytest.raises(CatalogUnavailable, match="out of memory"):
        await full.service.reader_notes.report()
    own_redis.command("CONFIG", "SET", "maxmemory", 0)
    await full.service.reader_notes.report()
    found = await (await full.get(path_of(b"3\n", "call_3") + "/readers")).json()

    assert len(found["readers"]) == 1


async def test_the_sweep_takes_its_lease_and_removes_what_has_expired(full: Api) -> None:
    archive = full.service.archive
    later = archive.clock() + 10**7
    archive.clock = lambda: later
    assert await archive.catalog.lease("sweep", "me", 60)
    swept = await sweep_all(archive, await archive.catalog.tenants())

    assert (swept.removed.captures, swept.failed) == (CAPTURES, [])


async def test_maintenance_sweeps_a_full_redis_by_itself(full: Api) -> None:
    maintenance = Maintenance(full.service)
    later = full.service.archive.clock() + 10**7
    full.service.archive.clock = lambda: later
    await maintenance.sweep_once()

    assert await full.service.archive.catalog.expired("default", now=later, limit=10) == []


async def test_accepted_bytes_become_durable_and_leave_a_full_redis(api: Api, producer: Producer) -> None:
    await api.service.flusher.start("default", CAPTURE)

    status = await (await api.get(f"{producer.path}/live")).json()
    assert (status["accepted"], status["durable"]) == (4, 4)
    assert (await api.service.archive.catalog.live_totals("default")).unstored == 0


async def test_a_live_capture_is_completed_in_a_full_redis(api: Api, producer: Producer) -> None:
    ended = await producer.complete(status="ok", labels={"why": "it was the end"})

    assert (ended["state"], ended["size"], ended["status"]) == ("complete", 4, "ok")
    assert await api.service.archive.catalog.live("default", CAPTURE) is None


async def test_a_producer_that_a_full_redis_refuses_is_not_gone(api: Api, producer: Producer) -> None:
    flusher = api.service.flusher
    advance([api], flusher.timeout - 1)
    status, refusal = await producer.try_append(b"two\n")
    advance([api], flusher.timeout - 1)
    await flusher.start("default", CAPTURE)

    assert (status, refusal["detail"]) == (503, "Redis is out of memory")
    assert (await producer.entry()).state is State.LIVE


async def test_a_reservation_is_renewed_in_a_full_redis_and_none_is_made(
    full: Api, own_redis: RedisServer
) -> None:
    catalog, quota = full.service.archive.catalog, Quota(size=10**6)
    own_redis.command("CONFIG", "SET", "maxmemory", 0)
    await catalog.reserve("default", "known", 10, 10, quota, keep=60)
    fill(own_redis)

    await catalog.reserve("default", "known", 20, 20, quota, keep=60)
    with pytest.raises(CatalogUnavailable, match="out of memory"):
        await catalog.reserve("default", "new", 10, 10, quota, keep=60)


async def test_a_key_that_a_full_redis_refuses_stays_nowhere(api: Api, own_redis: RedisServer) -> None:
    issuer, keyring, now = api.service.issuer, api.service.archive.keyring, api.service.archive.clock()
    known = await issuer.issue("default", [Scope.READ], now=now)
    fill(own_redis)
    with pytest.raises(CatalogUnavailable, match="out of memory"):
        await issuer.issue("default", [Scope.READ], now=now)
    own_redis.command("CONFIG", "SET", "maxmemory", 0)

    assert await keyring.restore() == 0
    assert await keyring.keys() == [known.record]


async def test_replicas_that_share_a_full_redis_hear_of_each_other(full: Api) -> None:
    catalog = full.service.archive.catalog
    await catalog.tell("busy", "one replica", 7.0, keep=60)

    assert await catalog.tell("busy", "another", 1.0, keep=60) == 7.0
