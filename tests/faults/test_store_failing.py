"""The object store refuses, slows down, breaks off or loses its answers, on a real S3 server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from overspill.wire import Code
from overspill_service.store_format import object_keys

from tests.faults.traffic import (
    MIB,
    PATIENCE,
    code_of,
    content_of,
    keys_in,
    log_lines,
    noise,
    until,
    usage_of,
)
from tests.servers.faulty_proxy import (
    Fault,
    FaultyProxy,
    halve_reply,
    lose_reply,
    passed,
    refuse,
    reset,
    stall,
)
from tests.servers.swift import S3Server
from tests.web.conftest import Api, path_of

LOG = log_lines(300_000)
SLOW_DOWN = refuse(503, "SlowDown")
BROKEN = refuse(500, "InternalError")


@pytest.fixture
async def api(start_api: Callable[..., Any], s3_server: S3Server, faulty_s3: FaultyProxy) -> Api:
    """A service that reaches its store through a proxy that fails on command."""
    store = s3_server.url(s3_server.create_bucket(), endpoint=faulty_s3.url)
    started: Api = await start_api(store=store)
    await until(started.service.archive.catalog.is_complete)
    return started


@contextmanager
def failing(api: Api, proxy: FaultyProxy, method: str, fault: Fault) -> Iterator[None]:
    """Requests of this method fail, each one twice. One that gets no answer is given a second."""
    retry = api.service.archive.store._inner._retry  # type: ignore[attr-defined]
    proxy.always(method, fault)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retry, "_attempts", 2)
        if fault is stall:
            patch.setattr(retry, "deadline", 1)
        yield
    proxy.heal()


@pytest.mark.parametrize(
    "faults",
    [(BROKEN, BROKEN), (SLOW_DOWN, SLOW_DOWN, SLOW_DOWN), (reset,), (lose_reply,), (lose_reply, BROKEN)],
)
async def test_a_put_outlasts_passing_failures(
    api: Api, faulty_s3: FaultyProxy, faults: tuple[Fault, ...]
) -> None:
    faulty_s3.script("PUT", *faults)

    assert (await api.send("PUT", path_of(LOG), data=LOG)).status == 201
    assert await content_of(api, path_of(LOG)) == LOG
    assert len(await keys_in(api)) == 1


@pytest.mark.parametrize("fault", [BROKEN, SLOW_DOWN, reset, lose_reply, stall])
async def test_a_put_that_cannot_be_stored_is_not_acknowledged(
    api: Api, faulty_s3: FaultyProxy, fault: Fault
) -> None:
    with failing(api, faulty_s3, "PUT", fault):
        async with asyncio.timeout(PATIENCE):
            refused = await api.send("PUT", path_of(LOG), data=LOG)

    assert (refused.status, await code_of(refused)) == (503, Code.STORE_UNAVAILABLE)
    assert refused.headers["Retry-After"]
    assert (await api.get(path_of(LOG))).status == 404
    assert (await usage_of(api)).captures == 0
    assert await keys_in(api) == []
    assert (await api.send("PUT", path_of(LOG), data=LOG)).status == 201
    assert await content_of(api, path_of(LOG)) == LOG


async def test_an_upload_that_fails_at_a_later_segment_leaves_nothing_behind(
    api: Api, faulty_s3: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overspill_service.archive.uploading.SEGMENT_SIZE", 64 * 1024)
    faulty_s3.script("PUT", *[passed] * 3)
    faulty_s3.always("PUT", BROKEN)

    refused = await api.send("PUT", path_of(noise(4 * MIB)), data=noise(4 * MIB))

    assert (refused.status, await code_of(refused)) == (503, Code.STORE_UNAVAILABLE)
    assert await keys_in(api) == []


@pytest.mark.parametrize("faults", [(BROKEN, SLOW_DOWN), (reset,), (halve_reply,), (lose_reply,)])
async def test_a_read_outlasts_passing_failures(
    api: Api, faulty_s3: FaultyProxy, faults: tuple[Fault, ...]
) -> None:
    await api.put(LOG)
    faulty_s3.script("GET", *faults)

    assert await content_of(api, path_of(LOG)) == LOG


@pytest.mark.parametrize("fault", [BROKEN, reset, stall])
async def test_a_read_that_cannot_be_made_says_so_until_the_store_is_back(
    api: Api, faulty_s3: FaultyProxy, fault: Fault
) -> None:
    await api.put(LOG)
    with failing(api, faulty_s3, "GET", fault):
        async with asyncio.timeout(PATIENCE):
            refused = await api.get(f"{path_of(LOG)}/content")

    assert (refused.status, await code_of(refused)) == (503, Code.STORE_UNAVAILABLE)
    assert await content_of(api, path_of(LOG)) == LOG


async def test_a_service_without_its_store_is_not_ready(api: Api, faulty_s3: FaultyProxy) -> None:
    faulty_s3.always("HEAD", BROKEN)

    assert (await api.get("/readyz")).status == 503
    faulty_s3.heal()
    assert (await api.get("/readyz")).status == 200


async def test_a_back_end_that_hangs_longer_than_a_probe_may_take_is_not_ready(
    api: Api, faulty_s3: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overspill_service.web.health.PROBE_SECONDS", 0.1)
    faulty_s3.always("HEAD", stall)
    refused = await api.get("/readyz")

    assert (refused.status, await code_of(refused)) == (503, Code.DEADLINE_EXCEEDED)


async def test_bytes_that_vanish_from_the_store_are_stored_anew_when_sent_again(
    api: Api,
) -> None:
    await api.put(LOG)
    await api.service.archive.store.delete(await keys_in(api))

    assert (await api.get(f"{path_of(LOG)}/content")).status == 500
    assert (await api.send("PUT", path_of(LOG), data=LOG)).status == 201
    assert await content_of(api, path_of(LOG)) == LOG
    assert (await usage_of(api)).captures == 1


# --- deleting -------------------------------------------------------------------------------------


async def test_a_delete_that_was_cut_short_is_finished_by_asking_again(
    api: Api, faulty_s3: FaultyProxy
) -> None:
    await api.put(LOG)
    with failing(api, faulty_s3, "DELETE", BROKEN):
        refused = await api.send("DELETE", path_of(LOG))
    assert (refused.status, await code_of(refused)) == (503, Code.STORE_UNAVAILABLE)
    assert (await api.get(path_of(LOG))).status == 410

    assert (await api.send("DELETE", path_of(LOG))).status == 200
    assert await keys_in(api) == []


@pytest.mark.parametrize(("count", "method"), [(3, "DELETE"), (5, "POST"), (5, "PUT")])
async def test_the_erasure_of_a_session_that_was_cut_short_is_finished_by_asking_again(
    api: Api, faulty_s3: FaultyProxy, count: int, method: str
) -> None:
    for number in range(count):
        await api.put(b"%d" % number, Overspill_Session="s")
    with failing(api, faulty_s3, method, BROKEN):
        refused = await api.send("DELETE", "/v1/sessions/s")

    assert (refused.status, await code_of(refused)) == (503, Code.STORE_UNAVAILABLE)
    assert (await api.send("DELETE", "/v1/sessions/s")).status == 200
    assert await keys_in(api) == []
    assert (await usage_of(api)).captures == 0


async def test_what_is_deleted_is_gone_from_the_store_in_another_clients_eyes(
    start_api: Callable[..., Any], s3_server: S3Server
) -> None:
    bucket = s3_server.create_bucket()
    api: Api = await start_api(store=s3_server.url(bucket))
    await api.put(LOG)
    await api.send("PATCH", path_of(LOG), json={"ttl": 600})
    with closing(s3_server.client()) as client:
        assert client.list_objects_v2(Bucket=bucket, Prefix=object_keys.ROOT)["KeyCount"] == 2

        await api.send("DELETE", path_of(LOG))
        assert client.list_objects_v2(Bucket=bucket, Prefix=object_keys.ROOT)["KeyCount"] == 0
