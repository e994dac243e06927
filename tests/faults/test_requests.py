"""The number of requests to the object store for removing captures, and for storing a large one by POST.

They are counted at the store.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from overspill_service.archive.sweep import CONCURRENT_PAGES, CONCURRENT_TENANTS, sweep_all
from overspill_service.catalog.quotas import Quota
from overspill_service.resources.tasks import fan_out

from tests.contracts.entries import entry
from tests.faults.traffic import advance, keys_in, until, usage_of
from tests.servers.faulty_proxy import FaultyProxy, hold
from tests.web.conftest import Api, path_of

if TYPE_CHECKING:
    from tests.servers.swift import S3Server

LOG = b"one line\n"


@pytest.fixture
async def api(
    start_api: Callable[..., Any],
    s3_server: S3Server,
    faulty_s3: FaultyProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> Api:
    """A service that reaches its store through a proxy that counts, and asks nothing of its own accord."""
    monkeypatch.setattr("overspill_service.maintenance.POLL_SECONDS", 3600.0)
    store = s3_server.url(s3_server.create_bucket(), endpoint=faulty_s3.url)
    started: Api = await start_api(store=store)
    await until(started.service.archive.catalog.is_complete)
    return started


async def stored(api: Api, count: int, **headers: str) -> None:
    async def one(number: int) -> None:
        await api.put(b"%d" % number, **headers)

    await fan_out(one, range(count), concurrency=16)


def counted(proxy: FaultyProxy) -> Counter[str]:
    """Requests by method; asking what time it is does not count."""
    return Counter(seen.method for seen in proxy.seen if seen.method != "HEAD")


async def test_each_byte_of_a_large_post_goes_to_the_store_once(
    api: Api, faulty_s3: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overspill_service.archive.uploading.SEGMENT_SIZE", 2**19)
    faulty_s3.forget()
    response = await api.send("POST", "/v1/captures", data=random.Random(1).randbytes(2 * 2**20))
    entry = await response.json()
    requests, received = counted(faulty_s3), faulty_s3.received
    segments = len(await keys_in(api))

    assert segments == 4
    assert requests == {"PUT": segments + segments - 1, "DELETE": segments - 1}  # the last is not copied
    assert received == entry["stored_size"]


async def test_a_sweep_removes_a_page_with_one_request(
    api: Api, faulty_s3: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overspill_service.archive.sweep.PAGE", 50)
    await stored(api, 50, Overspill_Ttl="60")
    await api.send("PATCH", path_of(b"7"), json={"ttl": 50})
    advance([api], 61)
    faulty_s3.forget()
    swept = await sweep_all(api.service.archive, ["default"])

    assert swept.removed.captures == 50
    assert counted(faulty_s3) == {"POST": 1}
    assert await keys_in(api) == []


async def test_a_sweep_deletes_several_pages_at_once_and_no_more(
    api: Api, faulty_s3: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overspill_service.archive.sweep.PAGE", 5)
    await stored(api, 35, Overspill_Ttl="60")
    advance([api], 61)
    gate = asyncio.Event()
    faulty_s3.forget()
    faulty_s3.always("POST", hold(gate))
    sweeping = asyncio.create_task(sweep_all(api.service.archive, ["default"]))
    left = 35 - 5 * (CONCURRENT_PAGES + 1)  # one more page is hidden

    async def is_waiting() -> bool:
        return faulty_s3.count("POST") == CONCURRENT_PAGES and (await usage_of(api)).captures <= left

    await until(is_waiting)
    assert (faulty_s3.count("POST"), (await usage_of(api)).captures) == (CONCURRENT_PAGES, left)
    gate.set()

    assert (await sweeping).removed.captures == 35
    assert counted(faulty_s3) == {"POST": 7}


async def test_several_tenants_are_swept_at_once(api: Api, faulty_s3: FaultyProxy) -> None:
    catalog, now = api.service.archive.catalog, api.service.archive.clock()
    names = [f"tenant-{number}" for number in range(CONCURRENT_TENANTS + 2)]
    for name in names:
        for number in range(5):
            await catalog.commit(entry(number, tenant=name, expires=now), Quota())
    gate = asyncio.Event()
    faulty_s3.forget()
    faulty_s3.always("POST", hold(gate))
    sweeping = asyncio.create_task(sweep_all(api.service.archive, names))
    await until(lambda: asyncio.sleep(0, faulty_s3.count("POST") == CONCURRENT_TENANTS))
    gate.set()

    assert (await sweeping).removed.captures == 5 * len(names)
    assert counted(faulty_s3) == {"POST": len(names)}


@pytest.fixture
async def versions_known(api: Api) -> None:
    """The service has asked the bucket whether it keeps versions, as it does every five minutes."""
    await api.service.archive.store.keeps_versions()


@pytest.mark.usefixtures("versions_known")
async def test_a_removal_takes_four_requests(api: Api, faulty_s3: FaultyProxy) -> None:
    await api.put(LOG)
    faulty_s3.forget()
    assert (await api.send("DELETE", path_of(LOG))).status == 200

    assert counted(faulty_s3) == {"GET": 1, "PUT": 1, "DELETE": 2}


@pytest.mark.usefixtures("versions_known")
async def test_the_erasure_of_a_session_takes_a_listing_for_each_capture_and_three_requests_for_all(
    api: Api, faulty_s3: FaultyProxy
) -> None:
    await stored(api, 20, Overspill_Session="s")
    faulty_s3.forget()
    assert (await api.send("DELETE", "/v1/sessions/s")).status == 200

    assert counted(faulty_s3) == {"GET": 20 + 1, "PUT": 1, "POST": 1, "DELETE": 1}
    assert await keys_in(api) == []
