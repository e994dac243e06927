"""Thousands of outputs that spill at once in one process, with the service up, down and hanging.

What a spill costs is held against a script that compresses the same text and puts it with boto3.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from itertools import product
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import boto3
import msgspec
import zstandard

from tests.bench import fleet_process, table
from tests.bench.fleet_process import Figures, Task
from tests.bench.mixed import KINDS as MIXED_KINDS
from tests.bench.table import Goal, Row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.scale import Scale
    from tests.bench.servers import Servers

SIZE: Final = 64 * 1024
NONE: Final = Goal(0)
THREADS: Final = Goal(40)
BLOCK: Final = Goal(0.05)
MEMORY: Final = Goal(128 * 2**20)
COST: Final = Goal(1.5)
TIMEOUT_SECONDS: Final = 600


def measure(servers: Servers, scale: Scale) -> Iterator[Row]:
    count = scale.pick(3_000, 30)
    with _closed() as closed, _hanging() as hanging:
        urls = {"up": servers.embedded.url, "down": closed, "hanging": hanging}
        for how, state in scale.some([*product(("tasks", "threads"), urls)]):
            task = _task(servers, scale, how=how, url=urls[state], count=count)
            yield from _rows(f"{count} {how} of 64 KB, service {state}", _run(task), how)
        keys = [f"key-{number}-of-a-tenant-of-this-service" for number in range(scale.pick(200, 5))]
        figures = _run(_task(servers, scale, how="tasks", url=hanging, count=2 * len(keys), keys=keys))
        what = f"{len(keys)} clients with keys of their own"
        yield Row(f"{what}: threads", figures.threads, THREADS, table.number)
        yield Row(f"{what}: sockets", figures.sockets, THREADS, table.number)
    for mixed in scale.pick((False, True), (True,)):
        yield _cost(servers, scale, mixed=mixed)


def _rows(what: str, figures: Figures, how: str) -> Iterator[Row]:
    detail = ", ".join(f"{outcome} {count}" for outcome, count in sorted(figures.outcomes.items()))
    detail = f"{detail}; in {figures.seconds:.1f} s, {1e3 * figures.cpu / _total(figures):.1f} ms of CPU each"
    yield Row(f"{what}: lost", figures.outcomes.get("truncated", 0), NONE, table.number, detail)
    yield Row(f"{what}: threads", figures.threads, THREADS, table.number, f"{figures.threads_after} after")
    yield Row(f"{what}: memory beyond the outputs", figures.memory, MEMORY, table.mebibytes)
    if how == "tasks":
        own = f"{figures.own:.3f} s of CPU of the loop's thread"
        yield Row(f"{what}: longest block of the loop, s", figures.block, BLOCK, table.fine_ratio, own)


def _total(figures: Figures) -> int:
    return sum(figures.outcomes.values())


def _cost(servers: Servers, scale: Scale, *, mixed: bool) -> Row:
    count = scale.pick(300, 5)
    outputs = fleet_process.outputs_of(count, SIZE, mixed=mixed)
    rounds = []
    for _ in range(scale.rounds):
        task = _task(servers, scale, how="one by one", url=servers.embedded.url, count=count, mixed=mixed)
        rounds.append((_run(task).cpu / count, _put_with_boto3(servers, outputs)))
    ratio = median(ours / theirs for ours, theirs in rounds)
    detail = ", ".join(f"{1e3 * ours:.1f} ms against {1e3 * theirs:.1f} ms" for ours, theirs in rounds)
    kinds = f"{MIXED_KINDS} kinds" if mixed else "a log"
    return Row(
        f"CPU of a spill of 64 KB of {kinds}, over compressing it and boto3", ratio, COST, detail=detail
    )


def _put_with_boto3(servers: Servers, outputs: list[str]) -> float:
    """CPU seconds for each."""
    endpoint, bucket = servers.s3.endpoint, servers.s3.create_bucket()
    client = boto3.client("s3", endpoint_url=endpoint)
    compressor = zstandard.ZstdCompressor(3, write_checksum=True)
    client.put_object(Bucket=bucket, Key="first", Body=b"")
    start = time.process_time()
    for number, output in enumerate(outputs):
        client.put_object(Bucket=bucket, Key=str(number), Body=compressor.compress(output.encode()))
    return (time.process_time() - start) / len(outputs)


def _task(servers: Servers, scale: Scale, *, keys: list[str] | None = None, **fields: Any) -> Task:
    spool = servers.path(f"fleet-{time.monotonic_ns()}")
    wait, idle = scale.pick(2.0, 0.2), scale.pick(5.0, 0.0)
    return Task(spool=str(spool), size=SIZE, keys=keys or [""], wait=wait, idle=idle, **fields)


def _run(task: Task) -> Figures:
    command = [sys.executable, "-m", "tests.bench.fleet_process", msgspec.json.encode(task).decode()]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=TIMEOUT_SECONDS)
    return msgspec.json.decode(done.stdout, type=Figures)


@contextmanager
def _closed() -> Iterator[str]:
    """A port that refuses connections."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


@contextmanager
def _hanging() -> Iterator[str]:
    """A server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
