"""The service's CPU for a whole capture: as stored, to a client that accepts zstd, against decoded."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from tests.bench import http, measuring, texts
from tests.bench.measuring import compared, cost
from tests.bench.table import Goal, Row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.scale import Scale
    from tests.bench.servers import Servers
    from tests.servers.overspill import ServiceProcess

GOAL: Final = Goal(0.5)


def measure(servers: Servers, scale: Scale) -> Iterator[Row]:
    size = scale.pick(64 * texts.MB, 2 * texts.MB)
    for name, service in ("S3", servers.distributed), ("the embedded store", servers.embedded):
        what = f"GET content of {size // texts.MB} MB from {name}: CPU, zstd against decoded"
        yield Row(what, _ratio(service, size, scale.rounds), GOAL)


def _ratio(service: ServiceProcess, size: int, rounds: int) -> float:
    path = http.content(http.put(service, texts.blocks(texts.LOG, size), size))
    assert http.drain(service, path) == size
    clock = measuring.of_process(service.pid)
    stored = partial(cost, partial(http.drain, service, path, encoding="zstd"), clock)
    decoded = partial(cost, partial(http.drain, service, path), clock)
    return compared(rounds, stored, decoded).cpu
