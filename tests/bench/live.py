"""Live captures: how soon an append is seen elsewhere, how many there can be, and what they cost."""

from __future__ import annotations

import asyncio
import secrets
import time
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

import aiohttp
from overspill import wire
from overspill.transfer.client import Client
from overspill.wire import Header
from redis import asyncio as redis_asyncio

from tests.bench import live_turns, measuring, table
from tests.bench.measuring import Memory
from tests.bench.table import Goal, Row
from tests.servers import faulty_proxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.bench.scale import Scale
    from tests.bench.servers import Servers
    from tests.servers.overspill import ServiceProcess
    from tests.servers.redis import RedisServer

LATENCY: Final = Goal(3)
RATE: Final = Goal(0.3, is_least=True)
IDLE: Final = Goal(32 * 2**20)
REQUESTS: Final = Goal(20)
STEPS: Final = Goal(0.01)
APPEND: Final = 4096
PRODUCERS: Final = 16
SECONDS: Final = 60


def measure(servers: Servers, scale: Scale) -> Iterator[Row]:
    store, catalog = servers.bucket(), servers.catalog()
    services = [servers.service(store=store, catalog=catalog) for _ in range(2)]
    yield asyncio.run(_latency(services, servers.redis, scale))
    yield asyncio.run(_rate(services[0], servers.redis, scale))
    yield asyncio.run(_client_rate(services[0], servers.redis, scale))
    yield asyncio.run(_followers(services[0], servers.redis, scale))
    yield from live_turns.measure(services[0].url, scale)
    for service in services:
        service.stop()
    yield asyncio.run(_idle(servers.service(store=store, catalog=catalog), scale))
    yield asyncio.run(_requests(servers, scale))


@dataclass
class Producer:
    session: aiohttp.ClientSession
    url: str
    offset: int = 0

    async def append(self, data: bytes) -> None:
        headers = {Header.PRODUCER: "bench", Header.UPLOAD_OFFSET: str(self.offset)}
        async with self.session.post(f"{self.url}/append", data=data, headers=headers) as response:
            assert response.status == 200, await response.text()
            await response.read()
        self.offset += len(data)

    async def complete(self) -> None:
        headers = {Header.PRODUCER: "bench"}
        body = {"offset": self.offset}
        async with self.session.post(f"{self.url}/complete", json=body, headers=headers) as response:
            assert response.status == 200, await response.text()


async def begun(session: aiohttp.ClientSession, service: ServiceProcess) -> Producer:
    capture = wire.capture_id("", "", secrets.token_bytes(32))
    url = service.url + wire.Path.CAPTURE.format(ref=capture)
    async with session.put(f"{url}/live", headers={Header.PRODUCER: "bench"}) as response:
        assert response.status == 201, await response.text()
    return Producer(session, url)


@asynccontextmanager
async def opened() -> AsyncIterator[aiohttp.ClientSession]:
    timeout = aiohttp.ClientTimeout(total=None, sock_read=SECONDS)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), timeout=timeout, read_bufsize=4 * APPEND
    ) as session:
        yield session


async def _until_event(response: aiohttp.ClientResponse, offset: int) -> None:
    """Read events up to the one that ends at `offset`."""
    wanted = b"id: %d\n" % offset
    async for line in response.content:
        if line == wanted:
            await response.content.readuntil(b"\n\n")
            return


async def _latency(services: list[ServiceProcess], redis: RedisServer, scale: Scale) -> Row:
    """An append at one replica until a follower at another has it, against PUBLISH until a subscriber has."""
    data = (b"x" * 63 + b"\n") * (APPEND // 64)
    ours, theirs = list[float](), list[float]()
    client = redis_asyncio.Redis.from_url(redis.url)
    async with opened() as session, client.pubsub() as pubsub:
        producer = await begun(session, services[0])
        follow = producer.url.replace(services[0].url, services[1].url) + "/follow"
        await pubsub.subscribe("bench")
        await pubsub.get_message(timeout=SECONDS)
        async with session.get(follow) as response:
            for _ in range(scale.pick(300, 10)):
                start = time.perf_counter()
                sending = asyncio.create_task(producer.append(data))
                await _until_event(response, producer.offset + APPEND)
                ours.append(time.perf_counter() - start)
                await sending
                start = time.perf_counter()
                await client.publish("bench", data)
                await pubsub.get_message(timeout=SECONDS)
                theirs.append(time.perf_counter() - start)
    await client.aclose()
    detail = f"{median(ours) * 1000:.2f} ms against {median(theirs) * 1000:.2f} ms"
    what = "append of 4 KiB until another replica's follower has it, against Redis PUBLISH"
    return Row(what, median(ours) / median(theirs), LATENCY, detail=detail)


async def _plain(client: redis_asyncio.Redis, count: int, producers: int) -> float:
    """Seconds for so many times APPEND and EXPIRE of each producer, one after the other."""

    async def one(name: str) -> None:
        for _ in range(count):
            pipeline = client.pipeline(transaction=False)
            pipeline.append(name, b"x" * APPEND)
            pipeline.expire(name, 600)
            await pipeline.execute()

    names = [f"bench-{number}" for number in range(producers)]
    start = time.perf_counter()
    await asyncio.gather(*map(one, names))
    seconds = time.perf_counter() - start
    await client.delete(*names)
    return seconds


async def _client_rate(service: ServiceProcess, redis: RedisServer, scale: Scale) -> Row:
    """As `_rate`, with the client's own live captures, which send several writes at once."""
    count, producers = scale.pick(200, 5), scale.pick(PRODUCERS, 2)
    ratios, cpu = list[float](), list[float]()
    spent = measuring.of_process(service.pid)

    async def write(client: Client) -> None:
        async with client.live() as out:
            for _ in range(count):
                await out.write(b"x" * APPEND)
            await out.flush()

    plain = redis_asyncio.Redis.from_url(redis.url)
    async with Client(service.url) as client:
        for _ in range(scale.rounds + 1):
            before, start = spent(), time.perf_counter()
            await asyncio.gather(*(write(client) for _ in range(producers)))
            seconds = time.perf_counter() - start
            cpu.append((spent() - before) / count / producers)
            ratios.append(await _plain(plain, count, producers) / seconds)
    await plain.aclose()
    what = "writes of 4 KiB in a time, 16 live captures of the client to their ends, against the same"
    return Row(
        what, median(ratios[1:]), RATE, detail=f"the service's CPU of a write: {median(cpu) * 1e6:.0f} µs"
    )


async def _rate(service: ServiceProcess, redis: RedisServer, scale: Scale) -> Row:
    count, size = scale.pick(100, 5), scale.pick(PRODUCERS, 2)
    data, ratios, cpu = b"x" * APPEND, list[float](), list[float]()
    client = redis_asyncio.Redis.from_url(redis.url)

    async def appends(producer: Producer) -> None:
        for _ in range(count):
            await producer.append(data)

    async with opened() as session:
        for _ in range(scale.rounds + 1):
            producers = [await begun(session, service) for _ in range(size)]
            spent, start = measuring.of_process(service.pid), time.perf_counter()
            before = spent()
            await asyncio.gather(*map(appends, producers))
            ours = time.perf_counter() - start
            cpu.append((spent() - before) / count / size)
            ratios.append(await _plain(client, count, size) / ours)
            await asyncio.gather(*(each.complete() for each in producers))
    await client.aclose()
    what = "appends of 4 KiB in a time, 16 producers over HTTP, against Redis APPEND + EXPIRE"
    return Row(what, median(ratios[1:]), RATE, detail=f"CPU of an append: {median(cpu) * 1e6:.0f} µs")


async def _followers(service: ServiceProcess, redis: RedisServer, scale: Scale) -> Row:
    """Steps in Redis while a capture is fed that many follow, against one that one follows."""
    many, appends = scale.pick(1000, 10), scale.pick(50, 3)
    steps, cpu = list[int](), list[float]()
    async with opened() as session:
        for count in (1, many):
            used, spent = await _followed(session, service, redis, count, appends)
            steps.append(used)
            cpu.append(spent)
    each = (cpu[1] - cpu[0]) / (many - 1)
    return Row(
        f"steps in Redis for an append, for each of {many:,} followers of one capture beside the first",
        (steps[1] - steps[0]) / (many - 1) / appends,
        STEPS,
        table.fine_ratio,
        detail=f"CPU for an event to one more follower: {each * 1e6:.0f} µs",
    )


async def _followed(
    session: aiohttp.ClientSession, service: ServiceProcess, redis: RedisServer, count: int, appends: int
) -> tuple[int, float]:
    """Steps in Redis and the service's CPU seconds for an append that so many followers get."""
    async with AsyncExitStack() as stack:
        producer = await begun(session, service)
        responses = [
            await stack.enter_async_context(session.get(f"{producer.url}/follow")) for _ in range(count)
        ]
        await producer.append(b"first\n")
        await asyncio.gather(*(_until_event(each, producer.offset) for each in responses))
        spent = measuring.of_process(service.pid)
        before, steps = spent(), _steps(redis)
        for _ in range(appends):
            await producer.append(b"another line\n")
            await asyncio.gather(*(_until_event(each, producer.offset) for each in responses))
        used = spent() - before
        steps = _steps(redis) - steps
        await producer.complete()
    return steps, used / appends


def _steps(redis: RedisServer) -> int:
    """Steps of live captures so far. Other commands are those of the background job, by the second."""
    return int(redis.command("INFO", "commandstats")["cmdstat_evalsha"]["calls"])


async def _idle(service: ServiceProcess, scale: Scale) -> Row:
    count = scale.pick(1000, 3)
    async with opened() as session, AsyncExitStack() as stack:
        warm = await begun(session, service)
        await warm.append(b"one\n")
        await warm.complete()
        memory = Memory(service.pid)
        before = memory.now
        producers = [await begun(session, service) for _ in range(count)]
        for each in producers:
            await stack.enter_async_context(session.get(f"{each.url}/follow"))
        grown = memory.now - before
        await stack.aclose()
        for each in producers:
            await each.complete()
    what = f"memory of {count:,} idle live captures with a follower each, over idle"
    return Row(what, grown, IDLE, table.mebibytes, f"idle {table.mebibytes(before)}")


async def _requests(servers: Servers, scale: Scale) -> Row:
    size, appends = scale.pick(100_000_000, 1_000_000), scale.pick(1000, 3)
    data = (b"%063d\n" % 7) * (size // appends // 64 + 1)
    async with faulty_proxy.running(servers.s3.endpoint) as proxy, opened() as session:
        store = servers.bucket(proxy.url)
        service = await asyncio.to_thread(servers.service, store=store, catalog=servers.catalog())
        proxy.forget()
        producer = await begun(session, service)
        for _ in range(appends):
            await producer.append(data[: size // appends])
        used = _counts(proxy)
        await producer.complete()
        detail = f"{used}; with its end {_counts(proxy)}"
        await asyncio.to_thread(service.stop)
    what = f"requests to the store while a capture grows to {size // 10**6} MB over {appends:,} appends"
    return Row(what, sum(used.values()), REQUESTS, table.number, detail)


def _counts(proxy: faulty_proxy.FaultyProxy) -> dict[str, int]:
    counted = {name: proxy.count(name) for name in ("GET", "PUT", "POST", "DELETE", "HEAD")}
    return {name: count for name, count in counted.items() if count}
