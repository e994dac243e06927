"""Many large uploads at once, to a service in a cgroup of 512 MiB: its peak, and whether all is stored.

Where no cgroup can be made, the service gets the same memory setting as in one, and only its peak is told.
Clients that are sent away come again when they were told to.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import random
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import aiohttp
from overspill.wire import Path, capture_id

from tests.bench import table
from tests.bench.measuring import Memory
from tests.bench.table import Goal, Row
from tests.servers import cgroup

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.bench.scale import Scale
    from tests.bench.servers import Servers
    from tests.servers.overspill import ServiceProcess

LIMIT: Final = 512 * 2**20
MEMORY: Final = 192 * 2**20
"""What a service takes of such a cgroup by itself."""
GOAL: Final = Goal(400 * 2**20)
NONE: Final = Goal(0)
PATIENCE: Final = 1800.0
ATTEMPTS: Final = 1000
BUSY: Final = frozenset({429, 503})


def measure(servers: Servers, scale: Scale) -> Iterator[Row]:
    count, size = scale.pick(200, 8), scale.pick(40 * 2**20, 2**20)
    yield from _rows(servers, "the embedded store", {}, count, size)
    if not scale.is_quick:
        distributed = {"store": servers.bucket(), "catalog": servers.catalog()}
        yield from _rows(servers, "S3", distributed, count, size)


def _rows(
    servers: Servers, name: str, settings: Mapping[str, object], count: int, size: int
) -> Iterator[Row]:
    with ExitStack() as stack:
        try:
            group = stack.enter_context(cgroup.limited(f"overspill-bench-{os.getpid()}", LIMIT))
        except cgroup.CannotLimit as reason:
            service, where = servers.service(None, memory=MEMORY, **settings), str(reason)
        else:
            service, where = servers.service(group, **settings), "in a cgroup of 512 MiB"
        stack.callback(service.stop)
        memory = Memory(service.pid)
        told = asyncio.run(all_stored(service, count, size))
        what = f"{count} uploads of {table.mebibytes(size)} at once, {name}"
        detail = f"{where}; answers: {', '.join(f'{what} {times}' for what, times in sorted(told.items()))}"
        yield Row(f"{what}: peak memory", memory.peak, GOAL, table.mebibytes, detail)
        yield Row(f"{what}: not stored", count - told["201"] - told["200"], NONE, table.number)


async def all_stored(service: ServiceProcess, count: int, size: int) -> Counter[str]:
    """How often each status came until every upload was stored."""
    content = random.Random(size).randbytes(size)
    sha256, told = hashlib.sha256(content).digest(), Counter[str]()
    connector = aiohttp.TCPConnector(limit=0)
    async with (
        asyncio.timeout(PATIENCE),
        aiohttp.ClientSession(service.url, connector=connector) as session,
        asyncio.TaskGroup() as group,
    ):
        for number in range(count):
            path = Path.CAPTURE.format(ref=capture_id("", f"upload-{number}", sha256))
            group.create_task(_stored(session, path, content, told))
    return told


async def _stored(session: aiohttp.ClientSession, path: str, content: bytes, told: Counter[str]) -> None:
    for _ in range(ATTEMPTS):
        try:
            async with session.put(path, data=io.BytesIO(content)) as response:
                told[str(response.status)] += 1
                if response.status not in BUSY:
                    return
                pause = float(response.headers["Retry-After"])
        except (aiohttp.ClientError, ConnectionError) as error:
            told[type(error).__name__] += 1
            pause = 1.0
        await asyncio.sleep(pause * random.uniform(1, 2))
