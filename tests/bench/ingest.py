"""CPU of storing, against compressing the same bytes in memory with zstd alone, as one frame.

Of the service everything counts that its process does from the request to its answer: receiving, hashing,
framing, compressing, and writing the object and its entry out. The client and other servers do not count.
"""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Final

import zstandard
from overspill_service.store_format.frames import LEVEL
from overspill_service.store_format.ingest import Ingest

from tests.bench import http, measuring, table, texts
from tests.bench.measuring import compared, cost
from tests.bench.table import Goal, Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.bench.measuring import Cost
    from tests.bench.scale import Scale
    from tests.bench.servers import Servers
    from tests.servers.overspill import ServiceProcess

GOAL: Final = Goal(1.6)
READ_BATCH_BYTES: Final = 512 * 1024


def measure(servers: Servers, scale: Scale) -> Iterator[Row]:
    ways: dict[str, Callable[[bytes], Cost]] = {
        "HTTP to S3 and Redis": partial(through, servers.distributed),
        "HTTP to the embedded stores": partial(through, servers.embedded),
        "in process, bytes to frames": framed,
    }
    size = scale.pick(32 * 2**20, 2**20)
    kinds = scale.some([*texts.KINDS])
    for name, way in ways.items():
        ratios = {kind: _against_zstd(way, texts.text(kind, size), scale.rounds) for kind in kinds}
        what = f"CPU of storing {table.mebibytes(size)}, {name}; median of seven texts"
        yield Row(what, median(ratios.values()), GOAL, detail=table.listed(ratios))


def through(service: ServiceProcess, content: bytes) -> Cost:
    return cost(lambda: http.put(service, [content], len(content)), measuring.of_process(service.pid))


def framed(content: bytes) -> Cost:
    return cost(lambda: frame(content), measuring.own)


def frame(content: bytes) -> None:
    """What the service's threads do with a body, in the amounts in which it comes."""
    ingest = Ingest(None, level=LEVEL, limit=len(content))
    for start in range(0, len(content), READ_BATCH_BYTES):
        chunk = content[start : start + READ_BATCH_BYTES]
        for _ in ingest.take([chunk], is_last=start + READ_BATCH_BYTES >= len(content)):
            pass
    ingest.verify(None)


def _against_zstd(way: Callable[[bytes], Cost], content: bytes, rounds: int) -> float:
    compressor = zstandard.ZstdCompressor(LEVEL, write_checksum=True)
    bare = partial(cost, lambda: compressor.compress(content), measuring.own)
    return compared(rounds, partial(way, content), bare).cpu
