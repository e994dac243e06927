"""The last 100 lines over HTTP, against decoding it all: `zstd -dc | tail`."""

from __future__ import annotations

import subprocess
from functools import partial
from typing import TYPE_CHECKING, Final

from overspill.transfer.sync import SyncClient

from tests.bench import http, measuring, table, texts
from tests.bench.measuring import Cost, compared, cost
from tests.bench.servers import program
from tests.bench.table import Goal, Row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.scale import Scale
    from tests.bench.servers import Servers

GOAL: Final = Goal(1 / 20)
LINES: Final = 100
REPEATS: Final = 20
"""Our reads in a round: one is too short to be measured by itself."""


def measure(servers: Servers, scale: Scale) -> Iterator[Row]:
    size = scale.pick(250 * texts.MB, 2 * texts.MB)
    service = servers.embedded
    with SyncClient(service.url) as client:
        ref = http.put(service, texts.blocks(texts.LOG, size), size)
        file = servers.path("tail.zst")
        file.write_bytes(b"".join(map(bytes, http.get(service, http.content(ref), encoding="zstd"))))
        command = [program("sh"), "-c", f'zstd -dc "$0" | tail -n {LINES}', str(file)]
        program("zstd")
        assert client.tail(ref, LINES).content.encode() == subprocess.check_output(command)

        def ours() -> Cost:
            spent = cost(
                lambda: [client.tail(ref, LINES) for _ in range(REPEATS)], measuring.of_process(service.pid)
            )
            return Cost(spent.cpu / REPEATS, spent.wall / REPEATS)

        theirs = partial(cost, partial(subprocess.check_output, command), measuring.of_children)
        ratio = compared(scale.rounds, ours, theirs)
    yield Row(f"tail of {LINES} lines of {size // texts.MB} MB: CPU", ratio.cpu, GOAL, table.fraction)
    yield Row(f"tail of {LINES} lines of {size // texts.MB} MB: wall time", ratio.wall, GOAL, table.fraction)
