"""The metrics of live captures, their followers and their waits."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from overspill.wire import Header
from overspill_service.maintenance import Maintenance

from tests.clock import Clock
from tests.faults.test_live_faults import break_store
from tests.faults.traffic import advance, until
from tests.web.conftest import Api, path_of
from tests.web.live_producer import CAPTURE, Producer
from tests.web.test_follow import following, text_until
from tests.web.test_metrics import samples

if TYPE_CHECKING:
    from collections.abc import Callable

TIMEOUT = 300.0
Shown = dict[tuple[str, ...], float]


@pytest.fixture
def clock() -> Clock:
    return Clock(1_800_000_000.0)


@pytest.fixture
async def api(start_api: Callable[..., Any], clock: Clock) -> Api:
    started: Api = await start_api(live_flush_seconds=3600.0, live_timeout=TIMEOUT, clock=clock)
    return started


async def shown(api: Api) -> Shown:
    await Maintenance(api.service).measure_totals()
    return samples(await (await api.get("/metrics")).text())


def live(series: Shown) -> list[float]:
    """Return the live captures, their bytes that are not durable, and the finished ones to be compacted."""
    return [
        series["overspill_live_captures", "default"],
        series["overspill_live_unstored_bytes", "default"],
        series["overspill_uncompacted_captures",],
    ]


async def test_what_is_live_is_told_apart_from_what_waits_to_be_compacted(
    api: Api, producer: Producer
) -> None:
    await api.put(b"whole")
    await producer.append(b"one\n")
    growing = live(await shown(api))
    await api.service.flusher.start("default", CAPTURE)
    stored = live(await shown(api))
    await producer.complete()
    ended = live(await shown(api))
    await api.service.archive.catalog.schedule("default", CAPTURE, api.service.archive.clock() + 60)
    scattered = live(await shown(api))

    assert (growing, stored, ended, scattered) == ([1, 4, 0], [1, 0, 0], [0, 0, 0], [0, 0, 1])


async def test_segments_are_counted_with_how_long_their_bytes_waited(
    api: Api, producer: Producer, clock: Clock
) -> None:
    await producer.append(b"one\n")
    clock.now += 7
    await producer.append(b"two\n")
    heal = break_store(api)
    await asyncio.gather(api.service.flusher.start("default", CAPTURE), return_exceptions=True)
    heal()
    clock.now += 3
    await api.service.flusher.start("default", CAPTURE)
    clock.now += 100  # nothing waits meanwhile
    await producer.append(b"three\n")
    clock.now += 5
    await producer.complete()
    series = await shown(api)

    segments = [series["overspill_live_segments_total", result, "default"] for result in ("done", "failed")]
    assert segments == [2, 1]
    assert series["overspill_live_durable_delay_seconds_count",] == 2
    assert series["overspill_live_durable_delay_seconds_sum",] == pytest.approx(10 + 5)


async def test_the_bytes_of_an_old_capture_wait_no_longer_than_since_the_last_segment(
    api: Api, producer: Producer, clock: Clock
) -> None:
    clock.now += 24 * 3600  # from now on the timeline has a mark every three minutes
    await producer.append(b"one\n")
    clock.now += 50
    await producer.append(b"two\n")
    await api.service.flusher.start("default", CAPTURE)
    clock.now += 1
    await producer.append(b"three\n")
    clock.now += 4
    await api.service.flusher.start("default", CAPTURE)
    series = await shown(api)

    assert series["overspill_live_durable_delay_seconds_count",] == 2
    assert series["overspill_live_durable_delay_seconds_sum",] == pytest.approx(50 + 5)


async def test_an_append_that_is_a_segment_is_counted_too(api: Api, producer: Producer) -> None:
    await producer.append(b"a line of text\n" * 500_000)
    series = await shown(api)

    assert series["overspill_live_segments_total", "done", "default"] == 1
    assert series["overspill_live_durable_delay_seconds_count",] == 1


async def test_producers_that_vanish_and_appends_that_are_refused_are_counted(
    api: Api, producer: Producer
) -> None:
    await producer.append(b"one\n")
    await producer.append(b"two\n", expected=409, Upload_Offset="9")
    await producer.append(b"two\n", expected=409, **{Header.PRODUCER: "you"})
    advance([api], TIMEOUT + 1)
    await api.service.flusher.start("default", CAPTURE)
    await producer.append(b"late\n", expected=409)
    series = await shown(api)

    assert series["overspill_vanished_producers_total", "default"] == 1
    codes = "wrong_offset", "other_producer", "not_live"
    assert [series["overspill_tenant_requests_total", code, "", "default"] for code in codes] == [1, 1, 1]
    assert [series["overspill_problems_total", code] for code in codes] == [1, 1, 1]


def waits_ended(series: Shown) -> dict[str, float]:
    name = "overspill_waits_ended_total"
    return {labels[1]: value for labels, value in series.items() if labels[0] == name and value}


async def test_waits_are_counted_by_why_they_ended(api: Api, producer: Producer) -> None:
    await producer.append(b"one\ntwo\n")
    for query in ("pattern=two&timeout=9", "lines=2&timeout=9", "lines=9&timeout=0", "cursor=99"):
        await api.get(f"{producer.path}/wait?{query}")
    await producer.complete()
    await api.get(f"{producer.path}/wait?lines=9&timeout=9")
    whole = await api.put(b"whole")
    await api.get(f"{path_of(b'whole')}/wait")
    series = await shown(api)

    assert whole.size == 5
    assert waits_ended(series) == {"pattern": 1, "lines": 1, "timeout": 1, "ended": 2, "failed": 1}
    assert series["overspill_waits",] == 0


def present(series: Shown) -> tuple[float, float]:
    return series["overspill_followers",], series["overspill_waits",]


async def test_followers_and_waits_are_there_until_their_clients_hang_up(
    api: Api, producer: Producer
) -> None:
    await producer.append(b"one\n")

    async def are(*expected: float) -> bool:
        return present(await shown(api)) == expected

    waits = [asyncio.create_task(api.get(f"{producer.path}/wait?timeout=600&lines=9")) for _ in range(2)]
    async with following(api, f"{producer.path}/follow") as events:
        assert await text_until(events, 4) == "one\n"
        await until(lambda: are(1, 2))
        for each in waits:
            each.cancel()
    await until(lambda: are(0, 0))

    assert waits_ended(await shown(api)) == {"gone": 2}
