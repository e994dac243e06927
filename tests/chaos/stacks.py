"""The back ends on which the service runs while it is disturbed, and the ways to disturb it.

A fault is an async context manager: it strikes on the way in, and is mended on the way out.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from tests.servers import faulty_proxy
from tests.servers.overspill import ForkedService, ServiceProcess
from tests.servers.ports import HOST
from tests.servers.redis import SENTINEL_SERVICE, sentinel_set

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from aiohttp import web

    from tests.servers.faulty_proxy import FaultyProxy
    from tests.servers.redis import RedisServer
    from tests.servers.swift import S3Server

    Fault = Callable[[], AbstractAsyncContextManager[None]]

GRACE_SECONDS: Final = 5
SLOW_SECONDS: Final = 0.3
STARTS: Final = 3


class Stack(Protocol):
    @property
    def services(self) -> Sequence[ServiceProcess]: ...

    @property
    def lanes(self) -> Mapping[str, Mapping[str, Fault]]:
        """Faults by name, in lanes: two of one lane never strike at the same time."""


class Embedded:
    """One service with two workers on its embedded back ends."""

    def __init__(self, folder: Path) -> None:
        self.service = ForkedService(folder / "service", workers=2, grace=GRACE_SECONDS)
        self.services = [self.service]
        self.lanes = {"service": service_faults(self.service) | {"lose its catalog": self._lose_catalog}}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with started(self.services):
            yield

    @asynccontextmanager
    async def _lose_catalog(self) -> AsyncIterator[None]:
        await asyncio.to_thread(self.service.stop)
        for path in self.service.data.glob("catalog.sqlite*"):
            path.unlink()
        yield
        await asyncio.to_thread(supervise, self.service)


class Distributed:
    """Two replicas on S3, behind a proxy that fails, and on a Redis set that fails over."""

    def __init__(self, folder: Path, s3: S3Server) -> None:
        self._folder, self._s3 = folder, s3
        self.services: list[ServiceProcess] = []
        self.lanes: dict[str, Mapping[str, Fault]] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        with redis_set(self._folder / "redis") as (servers, catalog):
            async with faulty_proxy.running(self._s3.endpoint) as proxy:
                store = self._s3.url(self._s3.create_bucket(), "captures", endpoint=proxy.url)
                self.services = [
                    ForkedService(
                        self._folder / f"service-{number}", store=store, catalog=catalog, grace=GRACE_SECONDS
                    )
                    for number in range(2)
                ]
                self.lanes = {
                    "replica 1": service_faults(self.services[0]),
                    "replica 2": service_faults(self.services[1]),
                    "store": store_faults(proxy),
                    "redis": redis_faults(servers),
                }
                async with started(self.services):
                    yield


@contextmanager
def redis_set(folder: Path) -> Iterator[tuple[list[RedisServer], str]]:
    """A master and a replica behind a Sentinel, and the catalog's URL."""
    with sentinel_set(folder) as (master, replica, sentinel):
        yield [master, replica], f"redis+sentinel://{HOST}:{sentinel.port}/{SENTINEL_SERVICE}"


@asynccontextmanager
async def started(services: Sequence[ServiceProcess]) -> AsyncIterator[None]:
    try:
        await asyncio.gather(*(asyncio.to_thread(each.start) for each in services))
        yield
    finally:
        await asyncio.gather(*(asyncio.to_thread(each.stop) for each in services))


# --- faults ---------------------------------------------------------------------------------------


def service_faults(service: ServiceProcess) -> dict[str, Fault]:
    return {
        "kill -9": partial(down, service.kill, partial(supervise, service)),
        "stop in order": partial(down, service.stop, partial(supervise, service)),
        "pause": partial(
            down, partial(to_group, service, signal.SIGSTOP), partial(to_group, service, signal.SIGCONT)
        ),
    }


def store_faults(proxy: FaultyProxy) -> dict[str, Fault]:
    return {
        "503 SlowDown to half of it": partial(
            failing, proxy, every_second(faulty_proxy.refuse(503, "SlowDown"))
        ),
        "connections reset": partial(failing, proxy, every_second(faulty_proxy.reset)),
        "answers lost": partial(failing, proxy, every_second(faulty_proxy.lose_reply)),
        "answers cut in half": partial(failing, proxy, every_second(faulty_proxy.halve_reply)),
        "no answers": partial(failing, proxy, faulty_proxy.stall),
        "slow": partial(failing, proxy, slow),
    }


def redis_faults(servers: list[RedisServer]) -> dict[str, Fault]:
    return {
        "the master is emptied": partial(down, partial(flush, servers), lambda: None),
        "the master is paused (fails over, then two masters)": partial(masters_paused, servers),
        "the master restarts empty": partial(down, partial(restart_master, servers), lambda: None),
    }


@asynccontextmanager
async def down(strike: Callable[[], object], mend: Callable[[], object]) -> AsyncIterator[None]:
    await asyncio.to_thread(strike)
    try:
        yield
    finally:
        await asyncio.to_thread(mend)


@asynccontextmanager
async def masters_paused(servers: list[RedisServer]) -> AsyncIterator[None]:
    paused = masters(servers)
    for each in paused:
        each.pause()
    try:
        yield
    finally:
        for each in paused:
            each.resume()


@asynccontextmanager
async def failing(proxy: FaultyProxy, fault: faulty_proxy.Fault) -> AsyncIterator[None]:
    for method in ("GET", "PUT", "POST", "DELETE", "HEAD"):
        proxy.always(method, fault)
    try:
        yield
    finally:
        proxy.heal()


def every_second(fault: faulty_proxy.Fault) -> faulty_proxy.Fault:
    count = 0

    async def act(exchange: faulty_proxy.Exchange) -> web.Response:
        nonlocal count
        count += 1
        return await (fault(exchange) if count % 2 else exchange.forward())

    return act


async def slow(exchange: faulty_proxy.Exchange) -> web.Response:
    await asyncio.sleep(SLOW_SECONDS)
    return await exchange.forward()


def supervise(service: ServiceProcess) -> None:
    """Start it, again where it gives up because Redis or the store is away for too long."""
    for _ in range(STARTS):
        with suppress(RuntimeError):
            service.start()
            return
    service.start()


def to_group(service: ServiceProcess, number: signal.Signals) -> None:
    os.killpg(service.pid, number)


def masters(servers: list[RedisServer]) -> list[RedisServer]:
    """Those that take themselves for the master: after a failover, for a while, it may be both."""
    return [each for each in servers if each.command("ROLE")[0] == b"master"]


def flush(servers: list[RedisServer]) -> None:
    for each in masters(servers):
        each.command("FLUSHALL")


def restart_master(servers: list[RedisServer]) -> None:
    for each in masters(servers):
        each.restart(empty=False)
