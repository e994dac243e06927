"""The service's peak of resident memory over that at rest, while it stores and while it reads 1 GiB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.bench import http, table, texts
from tests.bench.measuring import Memory
from tests.bench.table import Goal, Row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.scale import Scale
    from tests.bench.servers import Servers
    from tests.servers.overspill import ServiceProcess

GOAL: Final = Goal(64 * 2**20)


def measure(servers: Servers, scale: Scale) -> Iterator[Row]:
    size = scale.pick(2**30, 4 * 2**20)
    yield from _rows("S3", servers.service(store=servers.bucket(), catalog=servers.catalog()), size)
    if not scale.is_quick:
        yield from _rows("the embedded store", servers.service(), size)


def _rows(name: str, service: ServiceProcess, size: int) -> Iterator[Row]:
    """One service that has done nothing before: what it holds then is its memory at rest."""
    memory = Memory(service.pid)
    idle = memory.now
    what = f"{table.mebibytes(size)}, {name}: peak memory over idle"
    memory.begin()
    path = http.content(http.put(service, texts.blocks(texts.LOG, size), size))
    detail = f"idle {table.mebibytes(idle)}"
    yield Row(f"storing {what}", memory.peak - idle, GOAL, table.mebibytes, detail)
    for encoding in ("identity", "zstd"):
        memory.begin()
        http.drain(service, path, encoding=encoding)
        yield Row(f"reading ({encoding}) {what}", memory.peak - idle, GOAL, table.mebibytes)
    service.stop()
