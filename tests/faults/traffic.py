"""The traffic through the services under test, and waits for what they do by themselves."""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from overspill import wire
from overspill.errors import OverspillError
from overspill.transfer.client import Client
from overspill_service.archive.upload_memory import UploadMemory, memory_need
from overspill_service.resources.memory_budget import MemoryBudget

from tests.web.conftest import problem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from aiohttp import ClientResponse

    from tests.servers.overspill import ServiceProcess
    from tests.web.conftest import Api

MIB = 2**20
PATIENCE = 30.0


def noise(size: int, seed: int = 0) -> bytes:
    """Content that no compressor makes smaller, so that it fills segments."""
    return random.Random(seed).randbytes(size)


def log_lines(size: int, seed: int = 0) -> bytes:
    """About `size` bytes of lines that compress."""
    chance = random.Random(seed)
    jobs, workers = chance.choices(range(10**6), k=999), chance.choices(range(9), k=999)
    lines = "".join(f"{job} worker {worker} took a job\n" for job, worker in zip(jobs, workers, strict=True))
    return (lines.encode() * (size // len(lines) + 1))[:size]


async def until(holds: Callable[[], Awaitable[object]], within: float = PATIENCE) -> None:
    """Ask until it holds. Raises `TimeoutError`."""
    async with asyncio.timeout(within):
        while not await holds():  # noqa: ASYNC110  (another process sets no event)
            await asyncio.sleep(0.02)


def client_of(service: ServiceProcess, retries: int = 0) -> Client:
    return Client(service.url, timeout=PATIENCE, retries=retries)


class Uploads:
    """Many uploads to several services at once: what was sent, and what was acknowledged."""

    def __init__(self, clients: Sequence[Client]) -> None:
        self._clients = clients
        self.sent: dict[str, bytes] = {}
        self.acknowledged: dict[str, str] = {}
        """Capture ids by call id."""
        self.grown = asyncio.Event()

    async def go_on(self, seed: int, pause: float = 0.0) -> None:
        """Put one capture after another until the service is gone, with so many seconds between two."""
        chance, client = random.Random(seed), self._clients[seed % len(self._clients)]
        for number in range(1000):
            call_id = f"{seed}-{number}"
            make = chance.choice((noise, log_lines))
            self.sent[call_id] = make(chance.choice((0, 10, 5_000, 700_000, 2 * MIB)), seed * 1000 + number)
            try:
                entry = await client.put(self.sent[call_id], call_id=call_id)
            except OverspillError:
                return
            self.acknowledged[call_id] = entry.id
            self.grown.set()
            await asyncio.sleep(pause)

    async def until_acknowledged(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while len(self.acknowledged) < count:
                self.grown.clear()
                await self.grown.wait()

    @property
    def unanswered(self) -> dict[str, bytes]:
        return {call: content for call, content in self.sent.items() if call not in self.acknowledged}


async def ample_memory() -> UploadMemory:
    """More memory than any upload needs."""
    memory = UploadMemory(MemoryBudget(2**30), "acme", AsyncExitStack(), None)
    await memory.enter(memory_need(None, None))
    return memory


# --- services in this process ---------------------------------------------------------------------


async def content_of(api: Api, path: str) -> bytes:
    response = await api.get(f"{path}/content")
    assert response.status == 200, await response.text()
    return await response.read()


async def code_of(response: ClientResponse) -> str:
    return (await problem(response)).code


async def usage_of(api: Api) -> wire.Usage:
    return msgspec.json.decode(await (await api.get(wire.Path.USAGE)).read(), type=wire.Usage)


async def keys_in(api: Api) -> list[str]:
    """The keys of all objects that the service's store holds."""
    return [each.key async for each in api.service.archive.store.list("v1/")]


async def segments_in(api: Api) -> list[str]:
    """The same without markers of removals, which stay for a while."""
    return [key for key in await keys_in(api) if "/removed-" not in key]


def advance(apis: Iterable[Api], seconds: float) -> None:
    """Let time pass for these services."""
    for api in apis:
        archive = api.service.archive
        archive.clock = partial(_later, archive.clock, seconds)


def _later(clock: Callable[[], float], seconds: float) -> float:
    return clock() + seconds
