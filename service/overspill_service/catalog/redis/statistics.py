"""Statistics in Redis: one hash for each bucket, which expires."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from overspill_service.catalog.redis import key_names, statistics_scripts
from overspill_service.catalog.redis.access import RedisAccess
from overspill_service.catalog.redis.script import DONE, milliseconds
from overspill_service.catalog.statistics import (
    CELL_BYTES,
    MAX_BATCHES,
    MAX_CELLS,
    MAX_SUM,
    OTHER,
    RESOLUTIONS,
    Packed,
    Resolution,
    bounded,
    bucket_start,
    bucket_starts,
    of_tool,
    part_of_cell,
    room_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from overspill_service.catalog.statistics import Cell

_SUMS: Final = msgspec.msgpack.Decoder(dict[str, int], strict=False)
"""Reads a map whose values are numbers as texts."""
_ARRAY_16, _MAP_16 = b"\xdc", b"\xde"
_SHORT_ARRAY, _SHORT_MAP = 0x90, 0x80
"""MessagePack: the first byte of each; that of a short one has its length in the lower half."""


class RedisStatistics(RedisAccess):
    async def add_sums(
        self, tenant: str, sums: Mapping[Cell, int], *, now: float, batch: str, memory: float
    ) -> bool:
        lengths = [_Length.of(tenant, each, now) for each in RESOLUTIONS]
        added = await self._client.step(
            statistics_scripts.ADD_SUMS,
            [key_names.batches(tenant), *(key for each in lengths for key in each.keys)],
            *(batch, int(now) * 10**6 + secrets.randbelow(10**6), milliseconds(memory), MAX_BATCHES),
            *(MAX_CELLS, str(MAX_SUM), CELL_BYTES),
            *(value for each in lengths for value in each.values),
            *(word for cell, amount in sums.items() for word in _words(cell, amount)),
        )
        return bool(added == DONE)

    async def sums(
        self, tenant: str, resolution: Resolution, *, since: float, until: float, tool: str | None = None
    ) -> dict[int, Packed]:
        starts = bucket_starts(since, until, resolution)
        keys = [key_names.statistics(tenant, resolution.seconds, start) for start in starts]
        places = await self._client.step(statistics_scripts.EXISTING, keys) if keys else []
        existing = [place - 1 for place in places]
        part = "" if tool is None else part_of_cell(tool)
        answers = await asyncio.gather(  # one call for each: a full bucket takes Redis milliseconds
            *(self._client.step(statistics_scripts.BUCKET, [keys[place]], part) for place in existing)
        )
        found: dict[int, Packed] = {}
        for start, answer in zip((starts[place] for place in existing), answers, strict=True):
            sums = _decoded(answer)
            if sums := sums if tool is None else of_tool(sums, tool):
                found[start] = sums
                await asyncio.sleep(0)  # a full bucket takes the event loop milliseconds
        return found

    async def keep_rollup(
        self,
        tenant: str,
        name: str,
        rollup: bytes,
        *,
        now: float,  # noqa: ARG002  (Redis goes by its own clock)
        keep: float,
    ) -> None:
        key = key_names.rollups(tenant)
        await self._client.step(statistics_scripts.KEEP_ROLLUP, [key], name, rollup, milliseconds(keep))

    async def rollup(self, tenant: str, name: str) -> bytes | None:
        found: bytes | None = await self._client.call("HGET", key_names.rollups(tenant), name)
        return found

    async def forget_rollups(self, tenant: str) -> None:
        await self._client.call("DEL", key_names.rollups(tenant))


class _Length(NamedTuple):
    """The facts about the buckets of one length that `ADD_SUMS` needs."""

    keys: list[str]
    values: list[int]

    @classmethod
    def of(cls, tenant: str, resolution: Resolution, now: float) -> _Length:
        start, room = bucket_start(now, resolution), room_of(tenant, resolution)
        bucket = key_names.statistics(tenant, resolution.seconds, start)
        first = start - resolution.lifetime - resolution.seconds
        return cls(
            [bucket, key_names.statistics_sizes(tenant, resolution.seconds)],
            [start, first, resolution.seconds + resolution.lifetime, *room],
        )


def _words(cell: Cell, amount: int) -> tuple[str, str, int]:
    return cell.encode(), cell._replace(tool=OTHER).encode(), bounded(amount)


def _decoded(answer: bytes) -> Packed:
    """Read what the script `BUCKET` returns."""
    return _SUMS.decode(_as_map(answer))


def _as_map(array: bytes) -> bytes:
    """Return an array of keys and values in turn as a map: in MessagePack only their heads differ.

    It has fewer than 2 ** 16 of them, as a bucket has about `MAX_CELLS` sums at most.
    """
    if array.startswith(_ARRAY_16):
        pairs = int.from_bytes(array[1:3]) // 2
        return _MAP_16 + pairs.to_bytes(2) + array[3:]
    return bytes([_SHORT_MAP | (array[0] - _SHORT_ARRAY) // 2]) + array[1:]
