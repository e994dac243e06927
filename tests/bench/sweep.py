"""Removing expired captures against storing them, with an object store that is 20 ms away."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator
from functools import partial
from typing import TYPE_CHECKING, Final

from overspill import wire
from overspill_service.access import directory_of
from overspill_service.archive.captures import Captures
from overspill_service.archive.metadata import CaptureMetadata
from overspill_service.archive.storing import UploadBody, put
from overspill_service.archive.sweep import sweep_expired
from overspill_service.archive.upload_memory import upload_memory
from overspill_service.back_ends import open_archive
from overspill_service.resources.tasks import fan_out
from overspill_service.settings.settings import Settings

from tests.bench.table import Goal, Row
from tests.servers import faulty_proxy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiohttp import web
    from overspill_service.catalog.records import Entry

    from tests.bench.scale import Scale
    from tests.bench.servers import Servers
    from tests.servers.faulty_proxy import Exchange

FASTER: Final = Goal(1.0, is_least=True)
AT_ONCE: Final = 32
AWAY_SECONDS: Final = 0.02
TTL: Final = 60


def measure(servers: Servers, scale: Scale) -> Iterator[Row]:
    number = scale.pick(300, 5)
    ratio = asyncio.run(_measured(servers, scale.rounds, number))
    what = f"{number} expired captures on S3 and Redis, the store {1000 * AWAY_SECONDS:g} ms away:"
    yield Row(f"{what} swept per second against stored per second, {AT_ONCE} at once", ratio, FASTER)


async def _measured(servers: Servers, rounds: int, number: int) -> float:
    async with faulty_proxy.running(servers.s3.endpoint) as proxy:
        for method in ("GET", "PUT", "POST", "DELETE", "HEAD"):
            proxy.always(method, far)
        settings = Settings(store=servers.bucket(proxy.url), catalog=servers.catalog())
        async with open_archive(settings) as archive:
            tenants = map(directory_of(settings).tenant, map("sweep-{}".format, range(rounds + 1)))
            ratios = [await _round(Captures(archive, tenant), number) for tenant in tenants]
    return sorted(ratios[1:])[rounds // 2]


async def far(exchange: Exchange) -> web.Response:
    await asyncio.sleep(AWAY_SECONDS)
    return await exchange.forward()


async def _round(captures: Captures, number: int) -> float:
    """How many times faster a number of captures is swept than it was stored."""
    archive = captures.archive
    begun = time.perf_counter()
    await fan_out(partial(_store, captures), range(number), concurrency=AT_ONCE)
    stored = time.perf_counter()
    archive.clock = lambda: archive.shared_clock.now() + TTL + 1
    removed = await sweep_expired(archive, captures.tenant.name)
    swept = time.perf_counter()
    archive.clock = archive.shared_clock.now
    assert removed.captures == number
    return (stored - begun) / (swept - stored)


def _ignored(entry: Entry, *, is_new: bool) -> None:
    """No metric counts what is stored here."""


async def _store(captures: Captures, number: int) -> None:
    content = b"output %d of %s\n" % (number, captures.tenant.name.encode())

    async def chunks() -> AsyncIterator[bytes]:
        yield content

    capture = wire.capture_id("", "", hashlib.sha256(content).digest())
    memory = captures.archive.memory, captures.tenant.name
    async with upload_memory(*memory, None, len(content)) as held:
        await put(captures, capture, CaptureMetadata(ttl=TTL), UploadBody(chunks(), held), _ignored)
