"""Captures of 64 KB on S3 and Redis, against a script that compresses, puts and records the same by itself.

Both run in this process, 32 at once, against the same servers. CPU is that of the client and the service
together, against the script's; the servers' does not count.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Final

import boto3
import redis
import zstandard
from botocore.config import Config
from overspill.transfer.client import Client
from overspill_service.store_format.frames import LEVEL

from tests.bench import measuring, texts
from tests.bench.measuring import compared, cost
from tests.bench.table import Goal, Row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_s3 import S3Client

    from tests.bench.measuring import Cost
    from tests.bench.scale import Scale
    from tests.bench.servers import Servers
    from tests.servers.overspill import ServiceProcess

FASTER: Final = Goal(1.0, is_least=True)
CHEAPER: Final = Goal(1.0)
AT_ONCE: Final = 32
SIZE: Final = 64_000
DAY: Final = 24 * 3600


def measure(servers: Servers, scale: Scale) -> Iterator[Row]:
    number = scale.pick(600, 8)
    log = texts.block(texts.LOG, scale.pick(texts.BLOCK, 2 * SIZE))
    rounds = [(outputs(log, number, each) for each in count()) for _ in range(2)]
    script = Script(servers)
    ratio = compared(
        scale.rounds,
        lambda: captured(servers.distributed, next(rounds[0])),
        lambda: cost(partial(script.run, next(rounds[1])), measuring.own),
    )
    what = f"{number} captures of 64 KB on S3 and Redis, {AT_ONCE} at once, against boto3 in threads:"
    yield Row(f"{what} captures per second", 1 / ratio.wall, FASTER)
    yield Row(f"{what} CPU of service and client", ratio.cpu, CHEAPER)


def outputs(log: bytes, number: int, round_: int) -> list[str]:
    """Outputs that differ, from everywhere in a log; those of a round from those of all others."""
    step = (len(log) - SIZE) // number
    return [
        f"output {each} of round {round_}\n{log[each * step : each * step + SIZE].decode()}"
        for each in range(number)
    ]


def captured(service: ServiceProcess, contents: list[str]) -> Cost:
    clocks = measuring.own, measuring.of_process(service.pid)
    return cost(lambda: asyncio.run(_capture(service.url, contents)), *clocks)


async def _capture(url: str, contents: list[str]) -> None:
    turns = asyncio.Semaphore(AT_ONCE)
    async with Client(url) as client:

        async def one(number: int, content: str) -> None:
            async with turns:
                await client.put(content, call_id=f"call_{number}", tool="run_command")

        await asyncio.gather(*(one(number, content) for number, content in enumerate(contents)))


class Script:
    """What one would write without a service: boto3 in threads, and a hash in Redis for every output."""

    def __init__(self, servers: Servers) -> None:
        self._bucket = servers.s3.create_bucket()
        self._s3: S3Client = boto3.client(
            "s3",
            endpoint_url=servers.s3.endpoint,
            region_name=servers.s3.region,
            config=Config(max_pool_connections=AT_ONCE, s3={"addressing_style": "path"}),
        )
        self._redis = redis.Redis.from_url(servers.redis.url)
        self._local = threading.local()
        self._rounds = count()

    def run(self, contents: list[str]) -> None:
        prefix = f"round-{next(self._rounds)}"
        with ThreadPoolExecutor(AT_ONCE) as threads:
            list(threads.map(partial(self._store, prefix), range(len(contents)), contents))

    def _store(self, prefix: str, number: int, content: str) -> None:
        data, key = content.encode(), f"{prefix}/call_{number}"
        self._s3.put_object(Bucket=self._bucket, Key=key, Body=self._compressor.compress(data))
        digest = hashlib.sha256(data).hexdigest()
        self._redis.hset(
            f"output:{key}", mapping={"size": len(data), "sha256": digest, "tool": "run_command"}
        )
        self._redis.expire(f"output:{key}", DAY)

    @property
    def _compressor(self) -> zstandard.ZstdCompressor:
        if not hasattr(self._local, "compressor"):
            self._local.compressor = zstandard.ZstdCompressor(LEVEL)
        compressor: zstandard.ZstdCompressor = self._local.compressor
        return compressor
