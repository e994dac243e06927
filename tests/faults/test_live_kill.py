"""A producer goes on through kills of replicas and of Redis: what it was told is durable stays, in order."""

from __future__ import annotations

import asyncio
import json
import random
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import aiohttp
import pytest
from overspill import wire
from overspill.wire import Header

from tests.faults.traffic import until
from tests.servers.launcher import Launcher
from tests.servers.overspill import ForkedService, running
from tests.web.live_producer import CAPTURE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.conftest import StartServices
    from tests.servers.overspill import ServiceProcess
    from tests.servers.redis import RedisServer

LINES = 40
"""Numbered lines of one append."""
ROUNDS = 4
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


class MortalService(ForkedService):
    """A service on its embedded back ends that `mortal` kills."""

    launcher = Launcher("overspill_service", "tests.faults.mortal")

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._deadly = directory / "deadly"
        self.variables["DIES_AFTER"] = str(self._deadly)
        self.capture = CAPTURE

    def ask_and_die(self, step: str, method: str, path: str, *more: Any) -> None:
        """Send a request that kills the service after a step, and start it again."""
        self._deadly.write_text(step)
        with pytest.raises((OSError, HTTPException)):
            self.ask(method, path, *more)
        self.kill()
        assert not self._deadly.exists(), step
        self.start()

    def ask(self, method: str, path: str, body: bytes = b"", offset: int = 0) -> tuple[int, Any]:
        headers = {Header.PRODUCER: "me", Header.UPLOAD_OFFSET: str(offset)}
        if path == wire.Path.COMPLETE:
            headers["Content-Type"] = "application/json"
        url = self.url + path.format(ref=self.capture)
        request = Request(url, data=body, headers=headers, method=method)
        try:
            with urlopen(request, timeout=10) as response:
                return response.status, json.load(response)
        except HTTPError as error:
            with error:
                return error.code, json.load(error)

    def content(self) -> bytes:
        with urlopen(self.url + wire.Path.CONTENT.format(ref=self.capture)) as response:
            return bytes(response.read())


def test_a_producer_goes_on_through_a_kill_after_each_step_of_its_requests(tmp_path: Path) -> None:
    service = MortalService(tmp_path)
    completion = b'{"offset": 8}'
    with running(service):
        service.ask_and_die("commit", "PUT", wire.Path.LIVE)
        begun, _ = service.ask("PUT", wire.Path.LIVE)
        service.ask_and_die("append_live", "POST", wire.Path.APPEND, b"one\n")
        again, had = service.ask("POST", wire.Path.APPEND, b"one\n")
        service.ask("POST", wire.Path.APPEND, b"two\n", 4)
        for step in ("end_live", "put"):
            service.ask_and_die(step, "POST", wire.Path.COMPLETE, completion)
        ended = [service.ask("POST", wire.Path.COMPLETE, completion)]
        contents = [service.content()]
        service.capture = "cap_" + "b" * 20
        service.ask("PUT", wire.Path.LIVE)
        service.ask("POST", wire.Path.APPEND, b"one\ntwo\n")
        service.ask_and_die("replace", "POST", wire.Path.COMPLETE, completion)
        ended.append(service.ask("POST", wire.Path.COMPLETE, completion))
        contents.append(service.content())

    assert begun == 200
    assert (again, had["offset"], had["durable"]) == (409, 4, 0)
    assert [(status, each["state"], each["size"]) for status, each in ended] == [(200, "complete", 8)] * 2
    assert contents == [b"one\ntwo\n"] * 2


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
        await asyncio.to_thread(_begin_anew, services, own_redis)
        gone = await _ended_without_producer(session, services[0], vanishing.capture)

        for service in services:
            assert await content_of(session, service, ending.capture) == ending.written
        left = await content_of(session, services[1], vanishing.capture)
    assert (entry["state"], entry["size"]) == ("complete", len(ending.written))
    assert len(left) >= vanishing.durable
    assert left == vanishing.written[: len(left)]
    assert gone["size"] == len(left)
    assert len(left) == len(vanishing.written) or gone["gap"]["offset"] == len(left)


def _begin_anew(services: list[ServiceProcess], redis: RedisServer) -> None:
    """Empty Redis between two lives of all replicas. The second time none waits long for a producer."""
    for each in services:
        each.kill()
    redis.restart(empty=True)
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda each: each.start(live_timeout=1.0), services))


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
