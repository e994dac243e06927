"""The effect of a tenant with thousands of live captures on another tenant."""

from __future__ import annotations

import asyncio
import time
from statistics import median
from typing import TYPE_CHECKING, Final

import aiohttp
from overspill_service.tenants.keys import hash_key, new_key

from tests.bench import table
from tests.bench.live import begun
from tests.bench.table import Goal, Row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.scale import Scale
    from tests.bench.servers import Servers
    from tests.servers.overspill import ServiceProcess

BESIDE: Final = Goal(2.0)
TENANTS: Final = ("crowded", "quiet")
AT_ONCE: Final = 16
LINE: Final = b"a line of a live capture\n"


def measure(servers: Servers, scale: Scale) -> Iterator[Row]:
    keys = {tenant: new_key() for tenant in TENANTS}
    file = servers.path("tenants-of-a-crowd.toml")
    file.write_text(
        "".join(
            f'[[tenants]]\nname = "{tenant}"\n[[tenants.keys]]\nhash = "{hash_key(key)}"\n'
            'scopes = ["read", "write"]\n'
            for tenant, key in keys.items()
        )
    )
    service = servers.service(tenants=file, anonymous=False)
    yield asyncio.run(_first_beside(service, keys, scale))


async def _first_beside(service: ServiceProcess, keys: dict[str, str], scale: Scale) -> Row:
    """Begin, append to and end captures of one tenant, beside those of the other and before."""
    count, rounds = scale.pick(10_000, 20), scale.pick(40, 3)
    async with _caller(keys["crowded"]) as crowded, _caller(keys["quiet"]) as quiet:
        alone = [await _whole_life(quiet, service) for _ in range(rounds)]
        places = asyncio.Semaphore(AT_ONCE)

        async def one() -> None:
            async with places:
                await (await begun(crowded, service)).append(LINE)

        start = time.perf_counter()
        await asyncio.gather(*(one() for _ in range(count)))
        seconds = time.perf_counter() - start
        beside = [await _whole_life(quiet, service) for _ in range(rounds)]
    detail = f"{1e3 * median(beside):.1f} ms against {1e3 * median(alone):.1f} ms; begun in {seconds:.0f} s"
    what = f"begin, append and end of a tenant, beside {count} live captures of another one, over without"
    return Row(what, median(beside) / median(alone), BESIDE, table.ratio, detail)


def _caller(key: str) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        headers={"Authorization": f"Bearer {key}"}, timeout=aiohttp.ClientTimeout(total=60)
    )


async def _whole_life(session: aiohttp.ClientSession, service: ServiceProcess) -> float:
    start = time.perf_counter()
    producer = await begun(session, service)
    await producer.append(LINE)
    await producer.complete()
    return time.perf_counter() - start
