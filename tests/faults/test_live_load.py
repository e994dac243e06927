"""Live captures of too large appends, of very small ones, and of a tenant with many."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from overspill import wire
from overspill_service.catalog.records import Entry

from tests.faults.live_replicas import TIMEOUT
from tests.faults.traffic import MIB, PATIENCE, advance, content_of, keys_in, noise, until
from tests.web.conftest import api
from tests.web.live_producer import CAPTURE, Producer
from tests.web.test_follow_bounds import TwoTenants, tenants
from tests.web.test_live import producer
from tests.web.test_metrics import samples

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.web.conftest import Api

__all__ = ["api", "producer", "tenants"]


async def test_an_append_of_a_hundred_megabytes_is_refused_with_what_it_may_have(producer: Producer) -> None:
    refused = await producer.append(noise(MIB) * 100, expected=413)

    assert (refused["code"], refused["limit"], refused["offset"]) == ("body_too_large", wire.MAX_APPEND, 0)
    assert refused["detail"].endswith(
        f"may have {wire.MAX_APPEND} bytes at most: send the content in several appends"
    )


async def test_a_byte_at_a_time_for_a_minute_makes_few_segments_and_then_one_object(
    start_api: Callable[..., Any],
) -> None:
    api: Api = await start_api(live_flush_seconds=5.0, live_timeout=TIMEOUT)
    producer = Producer(api)
    await producer.begin()
    for number in range(120):
        await producer.append(b"%d" % (number % 10))
        advance([api], 0.5)
        if number % 2 == 0:
            await api.service.flusher._start_due()
            await asyncio.gather(*api.service.flusher._running.values())
    segments, requests = len(await keys_in(api)), await _requests(api)
    await producer.complete()
    await until(lambda: _is_of_one_object(api))

    assert 5 <= segments <= 12  # one in five seconds
    assert requests <= segments + 8  # some are of the service itself
    assert await _requests(api) <= requests + 3 * segments
    assert await content_of(api, producer.path) == b"0123456789" * 12


async def _requests(api: Api) -> float:
    """Return how often the store was asked to write, read or delete."""
    series = samples(await (await api.get("/metrics")).text())
    name = "overspill_backend_operations_total"
    return sum(series[name, "store", each, "done"] for each in ("put", "read", "delete"))


async def _is_of_one_object(api: Api) -> bool:
    await api.service.flusher.start("default", CAPTURE)
    return len(await keys_in(api)) == 1


async def test_the_first_capture_of_a_tenant_is_stored_while_the_store_keeps_many_of_another_waiting(
    tenants: TwoTenants,
) -> None:
    api, flusher = tenants.api, tenants.api.service.flusher
    put, healed = api.service.archive.store.put, asyncio.Event()

    async def slow(key: str, pieces: Sequence[bytes]) -> bool:
        if "/large/" in key:
            await healed.wait()
        return await put(key, pieces)

    api.service.archive.store.put = slow  # type: ignore[method-assign]
    many = [f"cap_{first}{'b' * 19}" for first in "bcdefghijklmnopqrstuvwxyz"]
    for each in many:
        await tenants.begin("large", each)
    waiting = [flusher.start("large", each) for each in many]
    async with asyncio.timeout(PATIENCE):
        await flusher.start("small", CAPTURE)
    stored = await api.service.archive.catalog.get("small", CAPTURE)

    assert isinstance(stored, Entry)
    assert stored.size == 4
    assert not any(each.done() for each in waiting)
    healed.set()
    await asyncio.gather(*waiting)
