"""The cost of spooling an output beside many others, against an empty spool."""

from __future__ import annotations

import os
import secrets
import tempfile
import time
from base64 import b32encode
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

import msgspec
from overspill.spools.partition import Partition
from overspill.spools.spool import Spool

from tests.bench import measuring, table
from tests.bench.table import Goal, Row
from tests.client.spooling import spilled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.scale import Scale
    from tests.bench.servers import Servers

MANY: Final = 16_000
FEW: Final = 200
OTHER: Final = 2_000
"""Bytes of each of the others."""
SIZE: Final = 60_000


def measure(_servers: Servers, scale: Scale) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="overspill-spool-") as root:
        empty = Spool(Path(root, "empty")).partition("http://service.example", "")
        filled = Spool(Path(root, "filled")).partition("http://service.example", "")
        count = scale.pick(MANY, FEW)
        _fill(filled, count)
        empty.keep(spilled("first"), "down")
        rounds = [
            (*_spent(filled, number), *_spent(empty, number))
            for number in range(scale.pick(40, 4) * scale.rounds)
        ]
    wall, cpu, least_wall, least_cpu = map(median, zip(*rounds, strict=True))
    what = f"an output of 60 KB beside {count:,} others: over an empty spool"
    detail = f"{1e3 * wall:.2f} ms against {1e3 * least_wall:.2f} ms"
    yield Row(f"{what}, time", wall / least_wall, Goal(1.5), table.ratio, detail)
    detail = f"{1e3 * cpu:.2f} ms against {1e3 * least_cpu:.2f} ms of CPU"
    yield Row(f"{what}, CPU", cpu / least_cpu, Goal(1.5), table.ratio, detail)


def _spent(partition: Partition, number: int) -> tuple[float, float]:
    """Seconds that one more takes, and CPU seconds."""
    spill = spilled("y" * SIZE, f"call_{number}")
    start, cpu = time.perf_counter(), measuring.own()
    partition.keep(spill, "down")
    return time.perf_counter() - start, measuring.own() - cpu


def _fill(partition: Partition, count: int) -> None:
    """Put captures there as if other processes had kept them."""
    pattern = partition.keep(spilled("x" * OTHER, "pattern"), "down")
    for _ in range(count):
        name = "cap_" + b32encode(secrets.token_bytes(13)).decode().lower()[:20]
        entry = msgspec.structs.replace(pattern, id=name)
        (partition.folder.path / f"{name}.bin").write_bytes(b"x" * OTHER)
        known = partition.folder.path / f"{name}.json"
        known.write_bytes(msgspec.json.encode(entry))
        os.utime(known, (entry.expires.timestamp(),) * 2)
    partition.spool.room.tidy()
