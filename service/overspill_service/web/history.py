"""Figures of past buckets, for dashboards.

Over a month of many tools the buckets take long to read. The figures of buckets that have ended are kept in
the catalog as a roll-up. It moves on with the time: newer buckets are added when they have ended, and buckets
that have become too old are subtracted.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

import msgspec

from overspill_service.catalog.statistics import DAYS, LATE_SECONDS, Packed, bucket_start
from overspill_service.errors import CatalogUnavailable
from overspill_service.store_format.frames import compress, decompress
from overspill_service.web import figures
from overspill_service.web.buckets import Span, packed_buckets, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from overspill_service.catalog import Catalog, Statistics
    from overspill_service.catalog.statistics import Resolution

KEPT_SECONDS: Final = 86_400.0
"""A roll-up is made anew from all its buckets after this time."""
MONTH: Final = 30 * 86_400
LENGTHS: Final = frozenset({3_600, 86_400, 7 * 86_400, MONTH})
"""The lengths of roll-ups, in seconds: only those that dashboards offer, so there are few."""
MAX_SIZE: Final = 4 * 2**20
"""Bytes of a roll-up that is kept, before it is compressed."""
_FORMAT: Final = 1
"""Part of a roll-up's name: another version of this module finds none."""


class Rollup(msgspec.Struct, array_like=True):
    """The figures of a dashboard for some buckets in a row."""

    first: int
    """The start of the first bucket. Every number here is in seconds."""
    last: int
    made: float
    """When all its buckets were read."""
    rows: dict[int, bytes]
    """The sums of all tools together as JSON, by the start of their bucket."""
    total: Packed
    is_exact: bool = True
    """Whether every sum in `total` is of its own cell, so that buckets can be subtracted."""

    def add(self, tenant: str, start: int, sums: Packed) -> None:
        rows = rows_of(tenant, start, figures.together(sums))
        self.rows[start] = msgspec.json.encode(rows)[1:-1]
        self.is_exact &= figures.add(self.total, sums)

    def encode(self) -> bytes | None:
        """Return the roll-up as the catalog keeps it, None if it is too large."""
        try:
            packed = msgspec.msgpack.encode(self)
        except OverflowError:  # many of its sums are the highest there is
            return None
        return compress(packed) if len(packed) <= MAX_SIZE else None

    @classmethod
    def decode(cls, value: bytes) -> Rollup:
        """The inverse of `encode`."""
        known = _decoded(value)
        return msgspec.structs.replace(known, rows=known.rows.copy(), total=known.total.copy())


@lru_cache(maxsize=8)
def _decoded(value: bytes) -> Rollup:
    return msgspec.msgpack.decode(decompress(value, MAX_SIZE), type=Rollup)


def rollup_name(resolution: Resolution, length: int) -> str:
    """Return the catalog's name of a roll-up of `length` seconds."""
    return f"{_FORMAT}:{resolution.seconds}:{length}"


class History:
    """Reads the figures of a time. One for each process."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._prepared_day = 0
        self._prepared: set[str] = set()
        """Tenants whose roll-up of the 30 days before today a process has made."""

    async def figures(
        self, catalog: Statistics, tenant: str, span: Span, now: float, tool: str | None = None
    ) -> Rollup:
        """Return the figures of a time, with `tool` of this tool alone.

        Buckets that may still change are read anew.
        """
        if tool is not None:
            return await _read(catalog, tenant, span, span.starts, now, tool)
        starts = span.starts
        ended = sum(start + span.resolution.seconds + LATE_SECONDS <= now for start in starts)
        found = await self._past(catalog, tenant, span, starts[:ended], now)
        async for start, sums in packed_buckets(catalog, tenant, span.resolution, starts[ended:]):
            found.add(tenant, start, sums)
        return found

    async def prepare(self, catalog: Catalog, tenants: Iterable[str], now: float) -> None:
        """Make the roll-ups of 30 days that are missing since a day has ended, each in one process."""
        today = bucket_start(now - LATE_SECONDS, DAYS)
        if today != self._prepared_day:
            self._prepared_day, self._prepared = today, set()
        for tenant in [*{*tenants} - self._prepared]:
            self._prepared.add(tenant)
            if await catalog.once(f"rollup:{tenant}:{today}", DAYS.seconds):
                span = Span(now - MONTH, now, DAYS)
                await self._past(catalog, tenant, span, span.starts[:-1], now)

    async def _past(self, catalog: Statistics, tenant: str, span: Span, starts: range, now: float) -> Rollup:
        length = _length(span, now)
        if length is None or not starts:
            return await _read(catalog, tenant, span, starts, now)
        name = rollup_name(span.resolution, length)
        async with self._lock(tenant):  # two requests of a tenant do not read the same
            value = await catalog.rollup(tenant, name)
            rollup = None if value is None else Rollup.decode(value)
            if rollup is not None and (rollup.first, rollup.last) == (starts[0], starts[-1]):
                return rollup
            found = await _moved(catalog, tenant, span, starts, now, rollup)
            await _keep(catalog, tenant, name, found, now)
            return found

    def _lock(self, tenant: str) -> asyncio.Lock:
        lock = self._locks.get(tenant)
        if lock is None:
            lock = self._locks[tenant] = asyncio.Lock()
        return lock


def _length(span: Span, now: float) -> int | None:
    """Return the length of the roll-ups for a time, None if it does not end now or has another length."""
    if now - span.until > LATE_SECONDS:
        return None
    return next((each for each in LENGTHS if abs(span.until - span.since - each) <= LATE_SECONDS), None)


async def _moved(
    catalog: Statistics, tenant: str, span: Span, starts: range, now: float, rollup: Rollup | None
) -> Rollup:
    """Return the roll-up of these buckets: the kept one moved on, or another one if that is no more work."""
    if rollup is None or not rollup.is_exact or now - rollup.made >= KEPT_SECONDS:
        return await _read(catalog, tenant, span, starts, now)
    step = span.resolution.seconds
    old = range(rollup.first, min(starts[0], rollup.last + step), step)
    new = range(max(rollup.last + step, starts[0]), starts[-1] + step, step)
    is_behind = starts[0] < rollup.first or starts[-1] < rollup.last
    if is_behind or len(old) + len(new) >= len(starts) or (old and not _is_there(old[0], span, now)):
        return await _read(catalog, tenant, span, starts, now)
    async for start, sums in packed_buckets(catalog, tenant, span.resolution, old):
        figures.subtract(rollup.total, sums)
        rollup.rows.pop(start, None)
    async for start, sums in packed_buckets(catalog, tenant, span.resolution, new):
        rollup.add(tenant, start, sums)
    rollup.first, rollup.last = starts[0], starts[-1]
    return rollup


def _is_there(start: int, span: Span, now: float) -> bool:
    """Whether the catalog still has a bucket."""
    return start + span.resolution.seconds + span.resolution.lifetime > now


async def _read(
    catalog: Statistics, tenant: str, span: Span, starts: range, now: float, tool: str | None = None
) -> Rollup:
    """Return the roll-up of these buckets, read anew."""
    found = Rollup(starts[0] if starts else 0, starts[-1] if starts else 0, now, {}, {})
    async for start, sums in packed_buckets(catalog, tenant, span.resolution, starts, tool):
        found.add(tenant, start, sums)
    return found


async def _keep(catalog: Statistics, tenant: str, name: str, found: Rollup, now: float) -> None:
    """Keep a roll-up, if the catalog takes it: the answer does not depend on that."""
    value = found.encode()
    if value is not None:
        with suppress(CatalogUnavailable):
            await catalog.keep_rollup(tenant, name, value, now=now, keep=KEPT_SECONDS)
