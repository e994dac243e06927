"""Statistics in Redis: one hash for each bucket, which expires."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Final

import msgspec

from overspill_service.catalog.redis import key_names, scripts
from overspill_service.catalog.redis.access import RedisAccess
from overspill_service.catalog.redis.scripts import milliseconds
from overspill_service.catalog.statistics import (
    MAX_BATCHES,
    MAX_CELLS,
    MAX_SUM,
    OTHER,
    RESOLUTIONS,
    Cell,
    Resolution,
    Sums,
    bounded,
    bucket_start,
    bucket_starts,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_WORDS: Final = msgspec.msgpack.Decoder(list[str])


class RedisStatistics(RedisAccess):
    async def add_sums(
        self, tenant: str, sums: Mapping[Cell, int], *, now: float, batch: str, memory: float
    ) -> bool:
        buckets = [
            key_names.statistics(tenant, each.seconds, bucket_start(now, each)) for each in RESOLUTIONS
        ]
        lifetimes = [each.seconds + each.kept for each in RESOLUTIONS]
        added = await self._client.step(
            scripts.ADD_SUMS,
            [key_names.batches(tenant), *buckets],
            *(batch, int(now) * 10**6 + secrets.randbelow(10**6), milliseconds(memory), MAX_BATCHES),
            *(MAX_CELLS, str(MAX_SUM), *lifetimes),
            *(word for cell, amount in sums.items() for word in _words(cell, amount)),
        )
        return bool(added == scripts.DONE)

    async def sums(
        self, tenant: str, resolution: Resolution, *, since: float, until: float
    ) -> dict[int, Sums]:
        starts = bucket_starts(since, until, resolution)
        keys = (key_names.statistics(tenant, resolution.seconds, start) for start in starts)
        answers = await asyncio.gather(*(self._client.step(scripts.BUCKET, [key]) for key in keys))
        found: dict[int, Sums] = {}
        for start, answer in zip(starts, answers, strict=True):
            if sums := _decoded(answer):
                found[start] = sums
                await asyncio.sleep(0)  # a full bucket takes the event loop milliseconds
        return found


def _words(cell: Cell, amount: int) -> tuple[str, str, int]:
    return cell.encode(), cell._replace(tool=OTHER).encode(), bounded(amount)


def _decoded(answer: bytes) -> Sums:
    """Read what the script `BUCKET` returns."""
    words = _WORDS.decode(answer)
    return dict(zip(map(Cell.decode, words[::2]), map(int, words[1::2]), strict=True))
