"""Counts exactly what a small read fetches from the object store, at a proxy in front of it."""

from __future__ import annotations

import asyncio
import random
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.transfer.client import Client
from overspill.wire import ByteRange

from tests.bench import table, texts
from tests.bench.table import Goal, Row
from tests.servers import faulty_proxy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from overspill.wire import Entry

    from tests.bench.scale import Scale
    from tests.bench.servers import Servers
    from tests.servers.faulty_proxy import FaultyProxy
    from tests.servers.overspill import ServiceProcess

    Read = Callable[[Client, Entry], Awaitable[object]]

SHARE: Final = Goal(1 / 300)
WARM_REQUESTS: Final = Goal(1)
COLD_REQUESTS: Final = Goal(2)
LINES: Final = 100
BYTES: Final = 4096

_rng: Final = random.Random(4096)


class Fetched(NamedTuple):
    """By one read: requests to the store, and bytes of their answers."""

    requests: int
    size: int


async def bytes_at_random(client: Client, entry: Entry) -> None:
    start = _rng.randrange(entry.size - BYTES)
    content = await client.content(entry.id, ByteRange(start, start + BYTES - 1))
    assert len(content) == BYTES


async def lines_at_random(client: Client, entry: Entry) -> None:
    start = _rng.randrange(1, entry.lines - LINES)
    text = await client.lines(entry.id, start, start + LINES - 1)
    assert (text.start_line, text.end_line) == (start, start + LINES - 1)


READS: Final[dict[str, Read]] = {"4 KiB": bytes_at_random, "100 lines": lines_at_random}


def measure(servers: Servers, scale: Scale) -> Iterator[Row]:
    yield from asyncio.run(_measured(servers, scale))


async def _measured(servers: Servers, scale: Scale) -> list[Row]:
    size = scale.pick(200 * texts.MB, 4 * texts.MB)
    async with faulty_proxy.running(servers.s3.endpoint) as proxy:
        store, catalog = servers.bucket(proxy.url), servers.catalog()
        service = await asyncio.to_thread(servers.service, store=store, catalog=catalog)
        entries = await _stored(service, texts.text(texts.LOG, size))
        rows: list[Row] = []
        warm = await _warm(proxy, service, entries, scale.pick(100, 5))
        cold = await _cold(proxy, service, entries, scale.pick(3, 1))
        for name, entry in entries.items():
            rows += _rows(f"{name} of {size // texts.MB} MB", entry, warm[name], cold[name])
        await asyncio.to_thread(service.stop)
        return rows


async def _stored(service: ServiceProcess, content: bytes) -> dict[str, Entry]:
    """A capture for each kind of read, so that one does not warm what another finds cold."""
    async with Client(service.url) as client:
        return {name: await client.put(content, call_id=name) for name in READS}


async def _warm(
    proxy: FaultyProxy, service: ServiceProcess, entries: dict[str, Entry], count: int
) -> dict[str, list[Fetched]]:
    fetched = {}
    async with Client(service.url) as client:
        for name, entry in entries.items():
            await READS[name](client, entry)
            fetched[name] = [await _one(proxy, client, entry, READS[name]) for _ in range(count)]
    return fetched


async def _cold(
    proxy: FaultyProxy, service: ServiceProcess, entries: dict[str, Entry], count: int
) -> dict[str, list[Fetched]]:
    """Each the first read of its capture since the service has started."""
    fetched: dict[str, list[Fetched]] = {name: [] for name in entries}
    for _ in range(count):
        await asyncio.to_thread(service.restart)
        async with Client(service.url) as client:
            for name, entry in entries.items():
                fetched[name].append(await _one(proxy, client, entry, READS[name]))
    return fetched


async def _one(proxy: FaultyProxy, client: Client, entry: Entry, read: Read) -> Fetched:
    proxy.forget()
    await read(client, entry)
    seen = [request for request in proxy.seen if entry.id in request.path]
    return Fetched(len(seen), sum(request.sent for request in seen))


def _rows(what: str, entry: Entry, warm: list[Fetched], cold: list[Fetched]) -> Iterator[Row]:
    shares = [fetched.size / entry.stored_size for fetched in warm]
    worst = table.listed({"most": max(shares)}, table.fraction)
    yield Row(f"{what}: bytes fetched, of those stored", median(shares), SHARE, table.fraction, worst)
    for state, fetched, goal in ("warm", warm, WARM_REQUESTS), ("cold", cold, COLD_REQUESTS):
        counts = [each.requests for each in fetched]
        detail = f"most {max(counts)} in {len(counts)} reads"
        yield Row(f"{what}: requests, {state}", median(counts), goal, table.number, detail)
