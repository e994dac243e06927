"""Whether a process that stores and reads small captures for long grows from its second minute on.

The captures expire after a minute and are swept, so what the process remembers of them is all that can grow.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from typing import TYPE_CHECKING, Final

import aiohttp
from overspill.wire import Header, Path, capture_id

from tests.bench import table, texts
from tests.bench.measuring import Memory
from tests.bench.table import Goal, Row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.scale import Scale
    from tests.bench.servers import Servers
    from tests.servers.overspill import ServiceProcess

GOAL: Final = Goal(16 * 2**20)
TTL: Final = 60
SWEEP_SECONDS: Final = 15.0
AT_ONCE: Final = 8
LEAST: Final = 2_000
MOST: Final = 120_000
"""Bytes of a capture; there are as many of 2 to 4 KB as of 60 to 120 KB."""


def measure(servers: Servers, scale: Scale) -> Iterator[Row]:
    captures, warm = scale.pick(100_000, 60), scale.pick(60, 1)
    service = servers.service(sweep_interval=SWEEP_SECONDS)
    before, peak = asyncio.run(_soaked(service, captures, warm))
    what = f"{captures} captures stored and read: growth from the second minute on"
    detail = f"{table.mebibytes(before)} after {warm} s"
    yield Row(what, peak - before, GOAL, table.mebibytes, detail)
    service.stop()


async def _soaked(service: ServiceProcess, captures: int, warm: float) -> tuple[int, int]:
    """The memory of the process after `warm` seconds, and its peak from then on."""
    text, numbers, memory = texts.text(texts.LOG, 2 * MOST), iter(range(captures)), Memory(service.pid)
    begun, before = time.monotonic(), 0
    async with aiohttp.ClientSession(service.url) as session:

        async def work() -> None:
            nonlocal before
            for number in numbers:
                await _stored_and_read(session, text, number)
                if not before and time.monotonic() - begun > warm:
                    before = memory.now
                    memory.begin()

        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(work())
    return before or memory.now, memory.peak


async def _stored_and_read(session: aiohttp.ClientSession, text: bytes, number: int) -> None:
    chance = random.Random(number)
    size = round(LEAST * (MOST / LEAST) ** chance.random())
    start = chance.randrange(MOST)
    content = b"%d\n" % number + text[start : start + size]
    digest = hashlib.sha256(content).digest()
    capture = capture_id("", f"soak-{number}", digest)
    headers = {Header.TTL: str(TTL), Header.CALL_ID: f"soak-{number}", Header.TOOL: "run_command"}
    async with session.put(Path.CAPTURE.format(ref=capture), data=content, headers=headers) as response:
        assert response.status == 201, await response.text()
    async with session.get(Path.CONTENT.format(ref=capture)) as response:
        assert await response.read() == content
