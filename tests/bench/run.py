"""The cost of `overspill run` for a long output, over the command into a file and then `zstd`.

Its start counts: half a second, and more where no bytecode is kept.
"""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from itertools import product
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.bench import measuring, servers, texts
from tests.bench.measuring import Cost
from tests.bench.table import Goal, Row
from tests.servers.overspill import clean_environment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.bench.scale import Scale
    from tests.bench.servers import Servers
    from tests.servers.overspill import ServiceProcess

SIZE: Final = 200_000_000
FEW_BYTES: Final = 2_000_000
TIME: Final = Goal(1.3)
PROGRAM: Final = """
import sys

size = 0
while size < int(sys.argv[1]):
    line = f"2026-11-22T02:11:{size % 60:02} INFO worker-{size % 16} request {size * 7919 % 1000003} done\\n"
    size += sys.stdout.write(line)
"""
"""It formats each line, as programs do that print logs."""


class Round(NamedTuple):
    """The costs of one command: with `run`, and into a file. `service` is the service's part of the CPU."""

    ours: Cost
    theirs: Cost
    service: float


def measure(servers: Servers, scale: Scale) -> Iterator[Row]:
    """Yield the rows of the table."""
    size = scale.pick(SIZE, FEW_BYTES)
    text = servers.path("text")
    text.write_bytes(texts.text(texts.LOG, size))
    commands = {
        "a program that formats each line": [sys.executable, "-c", PROGRAM, str(size)],
        "`cat` of a service log": ["cat", str(text)],
    }
    services = {"SQLite, a folder": servers.embedded, "Redis, S3": servers.distributed}
    for where, what in scale.some([*product(services, commands)]):
        yield _row(f"{what}, {size // 10**6} MB, {where}", commands[what], services[where], servers, scale)


def _row(what: str, command: Sequence[str], service: ServiceProcess, servers: Servers, scale: Scale) -> Row:
    rounds = [_round(command, service, servers) for _ in range(scale.rounds + scale.pick(1, 0))]
    rounds = rounds[-scale.rounds :]  # the first one warms everything up
    wall = median(each.ours.wall / each.theirs.wall for each in rounds)
    ours, theirs = median(each.ours.cpu for each in rounds), median(each.theirs.cpu for each in rounds)
    share = median(each.service for each in rounds)
    cpu = f"CPU {ours:.1f} s, {share:.1f} of it the service's, against {theirs:.1f} s"
    walls = ", ".join(f"{each.ours.wall:.1f}/{each.theirs.wall:.1f}" for each in rounds)
    return Row(f"`overspill run` of {what}", wall, TIME, detail=f"{cpu}; wall seconds {walls}")


def _round(command: Sequence[str], service: ServiceProcess, servers: Servers) -> Round:
    clock = measuring.of_process(service.pid)
    theirs = measuring.cost(partial(_compressed, command, servers.path("plain")), measuring.of_children)
    before = clock()
    ours = measuring.cost(
        partial(_stored, command, service.url, servers.path("spool")), measuring.of_children, clock
    )
    return Round(ours, theirs, clock() - before)


def _compressed(command: Sequence[str], path: Path) -> None:
    with path.open("wb") as file:
        subprocess.run(command, stdout=file, check=True, env=clean_environment())
    subprocess.run([servers.program("zstd"), "-qf", str(path)], check=True)


def _stored(command: Sequence[str], url: str, spool: Path) -> None:
    environment = clean_environment(OVERSPILL_URL=url, OVERSPILL_SPOOL=str(spool))
    words = [sys.executable, "-m", "overspill", "run", "--", *command]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=True, env=environment)
    assert b"Stored whole until" in done.stdout, done.stdout[:1000]
