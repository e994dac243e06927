"""The whole topology as plain processes: two replicas behind the balancer, one Redis, one S3 server."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from overspill.transfer.client import Client
from yarl import URL

from tests.servers.overspill import ForkedService, ServiceProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.servers.balancer import Balancer, StartBalancer
    from tests.servers.redis import RedisServer

LOG = b"%d a line of a log\n" * 200_000 % tuple(range(200_000))
PATIENCE = 30.0
PAUSE = 0.3
"""Seconds between two requests of one producer: the balancer takes seconds to notice what has ended."""


@pytest.fixture
def replicas(tmp_path: Path, own_redis: RedisServer, s3_url: str) -> Iterator[list[ServiceProcess]]:
    settings = {"store": s3_url, "catalog": own_redis.url}
    made: list[ServiceProcess] = [
        ForkedService(tmp_path / f"replica-{number}", **settings) for number in range(2)
    ]
    with ExitStack() as stack:
        for each in made:
            stack.callback(each.stop)
        with ThreadPoolExecutor() as pool:
            list(pool.map(ServiceProcess.start, made))
        yield made


@pytest.fixture
def balancer(replicas: list[ServiceProcess], start_balancer: StartBalancer) -> Balancer:
    return start_balancer(*(URL(each.url).port or 0 for each in replicas))


async def until_up(balancer: Balancer, count: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while await asyncio.to_thread(balancer.replicas_up) != count:  # noqa: ASYNC110  (HAProxy has no event)
            await asyncio.sleep(0.05)


async def test_a_capture_put_through_one_replica_is_read_through_any_way(
    replicas: list[ServiceProcess], balancer: Balancer
) -> None:
    await until_up(balancer, 2)
    one, two, front = (Client(url) for url in (replicas[0].url, replicas[1].url, balancer.url))
    async with one, two, front:
        entry = await one.put(LOG, call_id="call_1", session="s", tool="grep")

        for client in (two, front, front):  # the balancer takes turns
            assert await client.content(entry.id) == LOG
            found = await client.grep("call:call_1", "^199999 ", session="s")
            assert (found.match_count, found.content.count("a line of a log")) == (1, 1)
        again = await front.put(LOG, call_id="call_1", session="s")
        assert again.id == entry.id
        assert (await two.usage()).captures == 1
        await front.delete(entry.id)
        assert (await one.usage()).captures == 0


@pytest.mark.parametrize("end", [ServiceProcess.stop, ServiceProcess.kill], ids=["stopped", "killed"])
async def test_a_replica_that_ends_amid_traffic_loses_nothing(
    replicas: list[ServiceProcess], balancer: Balancer, end: Callable[[ServiceProcess], object]
) -> None:
    await until_up(balancer, 2)
    async with Client(balancer.url, retries=8) as client:
        stored: dict[str, bytes] = {}
        enough, is_over = asyncio.Event(), False

        async def produce(producer: int) -> None:
            number = 0
            while not is_over:
                content = b"%d %d\n" % (producer, number) + LOG[: 50_000 * (number % 4)]
                entry = await client.put(content, call_id=f"{producer}-{number}")
                stored[entry.id] = content
                number += 1
                if len(stored) >= 30:
                    enough.set()
                await asyncio.sleep(PAUSE)

        producers = [asyncio.create_task(produce(number)) for number in range(6)]
        await asyncio.wait([*producers, asyncio.create_task(enough.wait())], return_when="FIRST_COMPLETED")
        await asyncio.to_thread(end, replicas[0])
        await until_up(balancer, 1)
        is_over = True
        await asyncio.gather(*producers)

        assert len(stored) >= 30
        for capture, content in stored.items():
            assert await client.content(capture) == content
        assert (await client.usage()).captures == len(stored)


async def test_a_replica_that_stops_costs_clients_that_never_retry_no_request(
    replicas: list[ServiceProcess], balancer: Balancer
) -> None:
    await asyncio.to_thread(replicas[0].restart, drain_delay=4)
    await until_up(balancer, 2)
    async with Client(balancer.url, retries=0, timeout=PATIENCE) as client:
        answered, is_over = 0, False

        async def ask(producer: int) -> None:
            nonlocal answered
            is_last = False
            while not is_last:
                is_last = is_over  # so each asks once more when the replica has gone
                content = b"%d %d" % (producer, answered)
                entry = await client.put(content, call_id=f"{producer}-{answered}")
                assert await client.content(entry.id) == content
                answered += 2
                await asyncio.sleep(PAUSE)

        producers = [asyncio.create_task(ask(number)) for number in range(4)]
        await asyncio.to_thread(replicas[0].stop)
        before = answered
        await until_up(balancer, 1)
        is_over = True
        await asyncio.gather(*producers)

        assert answered > before > 0
