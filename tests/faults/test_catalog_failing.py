"""Redis stops, hangs, refuses writes or loses its answers: PUTs say so, and nothing acknowledged is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from overspill import wire
from overspill.wire import State
from overspill_service.archive.sweep import sweep_orphans
from overspill_service.catalog.redis import entry_scripts
from overspill_service.errors import CatalogUnavailable

from tests.faults.relay import Relay, relaying
from tests.faults.traffic import PATIENCE, advance, content_of, keys_in, until, usage_of
from tests.web.conftest import Api, path_of, problem
from tests.web.live_producer import CAPTURE, Producer

if TYPE_CHECKING:
    from tests.servers.redis import RedisServer

LOG = b"one line\n"


@pytest.fixture
async def relay(own_redis: RedisServer) -> AsyncIterator[Relay]:
    async with relaying(own_redis.port) as relay:
        yield relay


@pytest.fixture
async def api(
    relay: Relay,
    start_api: Callable[..., Any],
    own_redis: RedisServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Api:
    """A service that gives Redis the time of a busy machine. Its files lie in `tmp_path / "objects"`.

    It ends before the relay, by which it writes what is left.
    """
    monkeypatch.setattr("overspill_service.catalog.redis.urls.ANSWER_SECONDS", 1.0)
    own_redis.command("SCRIPT", "LOAD", entry_scripts.COMMIT.text)
    catalog = f"redis://127.0.0.1:{relay.port}?deadline={PATIENCE}"
    started: Api = await start_api(store=f"file://{tmp_path}/objects", catalog=catalog)
    await until(started.service.archive.catalog.is_complete)
    return started


@contextmanager
def hurried(api: Api) -> Iterator[None]:
    """The service gives Redis a second. On a busy machine even a Redis that works may need more."""
    catalog: Any = api.service.archive.catalog
    catalog._inner._client._deadline = 1.0
    yield
    catalog._inner._client._deadline = PATIENCE


async def refused(api: Api, content: bytes) -> wire.Problem:
    """What a PUT is answered with, well within a client's patience."""
    with hurried(api):
        async with asyncio.timeout(PATIENCE):
            return await problem(await api.send("PUT", path_of(content), data=content))


async def is_ready(api: Api) -> bool:
    return (await api.get("/readyz")).status == 200


@asynccontextmanager
async def stopped(redis: RedisServer) -> AsyncIterator[None]:
    redis.kill()
    yield
    redis.start()


@asynccontextmanager
async def hanging(redis: RedisServer) -> AsyncIterator[None]:
    redis.pause()
    yield
    redis.resume()


@asynccontextmanager
async def read_only(redis: RedisServer) -> AsyncIterator[None]:
    redis.make_read_only()
    yield
    redis.make_writable()


@pytest.mark.parametrize("failing", [stopped, hanging, read_only])
async def test_a_failing_redis_refuses_puts_and_readiness_until_it_is_back(
    api: Api, own_redis: RedisServer, failing: Callable[..., Any]
) -> None:
    await api.put(LOG)
    async with failing(own_redis):
        found = await refused(api, b"another\n")
        with hurried(api):
            ready = await problem(await api.get("/readyz"))

    assert (found.status, found.code) == (503, wire.Code.CATALOG_UNAVAILABLE)
    assert found.retry_after is not None
    assert ready.status == 503
    await until(lambda: is_ready(api))
    assert await content_of(api, path_of(LOG)) == LOG
    assert (await api.send("PUT", path_of(b"another\n"), data=b"another\n")).status in (200, 201)
    assert await content_of(api, path_of(b"another\n")) == b"another\n"


async def test_a_read_only_redis_is_still_read(api: Api, own_redis: RedisServer) -> None:
    await api.put(LOG)
    async with read_only(own_redis):
        assert await content_of(api, path_of(LOG)) == LOG


async def test_a_commit_whose_answer_was_lost_is_found_by_the_retry(api: Api, relay: Relay) -> None:
    relay.lose_answers_to(entry_scripts.COMMIT.sha.encode())
    assert (await refused(api, LOG)).code == wire.Code.CATALOG_UNAVAILABLE
    relay.heal()

    assert (await api.send("PUT", path_of(LOG), data=LOG)).status == 200
    assert await content_of(api, path_of(LOG)) == LOG
    assert len(await keys_in(api)) == 1
    assert (await sweep_orphans(api.service.archive, age=-1)).deleted == 0
    assert await content_of(api, path_of(LOG)) == LOG


async def test_a_commit_that_never_arrived_is_made_by_the_retry(api: Api, relay: Relay) -> None:
    relay.lose_requests(entry_scripts.COMMIT.sha.encode())
    assert (await refused(api, LOG)).code == wire.Code.CATALOG_UNAVAILABLE
    relay.heal()

    assert (await api.send("PUT", path_of(LOG), data=LOG)).status == 201
    assert len(await keys_in(api)) == 2
    assert (await sweep_orphans(api.service.archive, age=-1)).deleted == 1
    assert await content_of(api, path_of(LOG)) == LOG


async def test_a_capture_that_was_never_committed_nor_sent_again_is_adopted(api: Api, relay: Relay) -> None:
    relay.lose_requests(entry_scripts.COMMIT.sha.encode())
    await refused(api, LOG)
    relay.heal()
    assert (await usage_of(api)).captures == 0

    assert (await sweep_orphans(api.service.archive, age=-1)).deleted == 0
    assert (await usage_of(api)).captures == 1
    assert await content_of(api, path_of(LOG)) == LOG


async def test_a_capture_that_was_never_committed_is_adopted_by_its_first_reader(
    api: Api, relay: Relay
) -> None:
    relay.lose_requests(entry_scripts.COMMIT.sha.encode())
    await refused(api, LOG)
    relay.heal()

    assert await content_of(api, path_of(LOG)) == LOG
    assert (await usage_of(api)).captures == 1


async def test_a_commit_that_redis_gets_round_to_late_points_at_its_bytes(
    api: Api, own_redis: RedisServer, relay: Relay
) -> None:
    relay.at(entry_scripts.COMMIT.sha.encode(), own_redis.pause)
    assert (await refused(api, LOG)).code == wire.Code.CATALOG_UNAVAILABLE
    relay.heal()
    own_redis.resume()

    answers = await asyncio.gather(*(api.send("PUT", path_of(LOG), data=LOG) for _ in range(5)))
    assert {answer.status for answer in answers} <= {200, 201}
    assert await content_of(api, path_of(LOG)) == LOG
    await sweep_orphans(api.service.archive, age=-1)
    assert len(await keys_in(api)) == 1
    assert await content_of(api, path_of(LOG)) == LOG


async def test_a_commit_that_is_repeated_does_not_bring_a_deleted_capture_back(
    relay: Relay,
    own_redis: RedisServer,
    start_api: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("overspill_service.catalog.redis.urls.ANSWER_SECONDS", 0.1)
    store, deadline = f"file://{tmp_path}/objects", f"?deadline={PATIENCE}"
    api: Api = await start_api(store=store, catalog=f"redis://127.0.0.1:{relay.port}{deadline}")
    other: Api = await start_api(store=store, catalog=own_redis.url + deadline)
    await until(api.service.archive.catalog.is_complete)
    own_redis.command("SCRIPT", "LOAD", entry_scripts.COMMIT.text)
    relay.lose_answers_to(entry_scripts.COMMIT.sha.encode())
    put = asyncio.create_task(api.send("PUT", path_of(LOG), data=LOG))
    await until(lambda: has_status(other, 200))
    assert (await other.send("DELETE", path_of(LOG))).status == 200
    relay.heal()

    assert (await put).status == 503
    assert (await api.get(path_of(LOG))).status == 410
    assert await keys_in(api) == []


async def has_status(api: Api, status: int) -> bool:
    return (await api.get(path_of(LOG))).status == status


async def test_no_producer_is_gone_because_redis_took_nothing(api: Api, own_redis: RedisServer) -> None:
    producer, flusher = Producer(api), api.service.flusher
    await producer.begin()
    await producer.append(LOG)
    own_redis.command("CONFIG", "SET", "min-replicas-to-write", 1)
    advance([api], flusher.timeout + 1)
    with hurried(api), pytest.raises(CatalogUnavailable):
        await flusher.start("default", CAPTURE)
    own_redis.command("CONFIG", "SET", "min-replicas-to-write", 0)
    await flusher.start("default", CAPTURE)

    assert (await producer.entry()).state is State.LIVE


async def test_no_producer_is_gone_because_balancers_sent_it_nowhere(
    api: Api, own_redis: RedisServer
) -> None:
    producer, flusher = Producer(api), api.service.flusher
    await producer.begin()
    await producer.append(LOG)
    advance([api], flusher.timeout + 1)
    own_redis.command("CONFIG", "SET", "min-replicas-to-write", 1)
    with hurried(api):
        assert not await is_ready(api)
    own_redis.command("CONFIG", "SET", "min-replicas-to-write", 0)
    await flusher.start("default", CAPTURE)

    assert (await producer.entry()).state is State.LIVE
