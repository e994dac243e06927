"""A producer goes on through kills of replicas and of Redis: what it was told is durable stays, in order."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from overspill import wire
from overspill.wire import Header

from tests.faults.traffic import until

if TYPE_CHECKING:
    from tests.faults.conftest import StartServices
    from tests.servers.overspill import ServiceProcess
    from tests.servers.redis import RedisServer

LINES = 40
"""Numbered lines of one append."""
ROUNDS = 5
TIMEOUT = aiohttp.ClientTimeout(total=10)


class Producer:
    """Writes numbered lines, keeps what is not durable, and sends it again from where the service stands."""

    def __init__(self, services: list[ServiceProcess], number: int) -> None:
        self._services, self._number = services, number
        self.capture = "cap_" + chr(ord("a") + number) * 20
        self.written = bytearray()
        self.accepted = self.durable = 0
        self.count = 0
        self.is_begun = False

    def write(self) -> None:
        lines = (b"%d line %08d\n" % (self._number, self.count + index) for index in range(LINES))
        self.written += b"".join(lines)
        self.count += LINES

    async def run(self, session: aiohttp.ClientSession, stop: asyncio.Event) -> None:
        """Write and send until told to stop, and all is accepted."""
        while not stop.is_set() or self.accepted < len(self.written) or not self.is_begun:
            if not stop.is_set() and len(self.written) - self.durable < wire.MAX_UNSTORED:
                self.write()
            try:
                await self._step(session)
            except (aiohttp.ClientError, TimeoutError):
                await asyncio.sleep(0.05)

    async def _step(self, session: aiohttp.ClientSession) -> None:
        if not self.is_begun:
            status, _ = await self.ask(session, "PUT", wire.Path.LIVE)
            self.is_begun = status in (200, 201)
            return
        data = bytes(self.written[self.accepted : self.accepted + wire.MAX_APPEND])
        headers = {Header.UPLOAD_OFFSET: str(self.accepted)}
        status, answer = await self.ask(session, "POST", wire.Path.APPEND, data=data, headers=headers)
        code = answer.get("code")
        if status == 200:
            self.accepted = answer["accepted"]
            self.durable = max(self.durable, answer["durable"])
            await asyncio.sleep(0.02)
        elif code == "wrong_offset":
            assert self.durable <= answer["offset"] <= len(self.written), answer
            self.accepted = answer["offset"]
        elif code == "not_found":
            assert self.durable == 0, answer
            self.is_begun, self.accepted = False, 0
        else:
            assert status in (429, 503), answer
            await asyncio.sleep(0.1)

    async def ask(self, session: aiohttp.ClientSession, method: str, path: str, **kwargs: Any) -> Any:
        service = random.choice(self._services)
        headers = {Header.PRODUCER: "me", **kwargs.pop("headers", {})}
        url = service.url + path.format(ref=self.capture)
        async with session.request(method, url, headers=headers, **kwargs) as response:
            return response.status, await response.json()

    async def complete(self, session: aiohttp.ClientSession) -> Any:
        body = {"offset": len(self.written)}
        answers: list[Any] = []

        async def has_ended() -> bool:
            try:  # a replica that was killed while it stored a segment keeps others waiting for 20 s
                status, answer = await self.ask(session, "POST", wire.Path.COMPLETE, json=body)
            except (aiohttp.ClientError, TimeoutError):
                return False
            if status == 409:  # Redis has lost bytes since the last append
                await self._step(session)
            answers.append(answer)
            return bool(status == 200)

        await until(has_ended, 60)
        return answers[-1]


async def content_of(session: aiohttp.ClientSession, service: ServiceProcess, capture: str) -> bytes:
    url = service.url + wire.Path.CONTENT.format(ref=capture)
    async with session.get(url) as response:
        assert response.status == 200, await response.text()
        return await response.read()


@pytest.mark.timeout(240)
async def test_producers_lose_nothing_while_replicas_and_redis_are_killed(
    start_services: StartServices, own_redis: RedisServer, s3_url: str
) -> None:
    services = await asyncio.to_thread(
        start_services, 2, store=s3_url, catalog=own_redis.url, live_flush_seconds=0.3, live_timeout=6.0
    )
    stop = asyncio.Event()
    ending, vanishing = (Producer(services, number) for number in range(2))
    async with aiohttp.ClientSession(timeout=TIMEOUT) as session:
        running = [asyncio.create_task(each.run(session, stop)) for each in (ending, vanishing)]
        await until(_has_durable(ending, vanishing), 30)
        for number in range(ROUNDS):
            await _disturb(services, own_redis, number)
        stop.set()
        await asyncio.gather(*running)
        entry = await ending.complete(session)
        await asyncio.to_thread(own_redis.restart, empty=True)
        partial = await _ended_without_producer(session, services[0], vanishing.capture)

        for service in services:
            assert await content_of(session, service, ending.capture) == ending.written
        left = await content_of(session, services[1], vanishing.capture)
    assert (entry["state"], entry["size"]) == ("complete", len(ending.written))
    assert len(left) >= vanishing.durable
    assert left == vanishing.written[: len(left)]
    assert partial["size"] == len(left)
    assert len(left) == len(vanishing.written) or partial["gap"]["offset"] == len(left)


def _has_durable(*producers: Producer) -> Any:
    async def has() -> bool:
        return all(each.durable for each in producers)

    return has


async def _disturb(services: list[ServiceProcess], redis: RedisServer, number: int) -> None:
    """Kill a replica, or Redis with all that it has, and start it again."""
    await asyncio.sleep(random.uniform(0.2, 1.0))
    if number % 2:
        await asyncio.to_thread(redis.restart, empty=True)
    else:
        victim = services[number // 2 % 2]
        await asyncio.to_thread(victim.kill)
        await asyncio.sleep(0.3)
        await asyncio.to_thread(victim.start)


async def _ended_without_producer(
    session: aiohttp.ClientSession, service: ServiceProcess, capture: str
) -> Any:
    found: list[Any] = []

    async def has_ended() -> bool:
        async with session.get(service.url + wire.Path.CAPTURE.format(ref=capture)) as response:
            found.append(await response.json())
        return bool(found[-1].get("state") == "partial")

    await until(has_ended, 60)
    return found[-1]
