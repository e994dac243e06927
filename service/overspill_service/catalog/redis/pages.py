"""Pages of entries: listings by the indexes of positions, and expired entries."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from operator import add
from typing import TYPE_CHECKING, Final

from overspill_service.catalog import encoding
from overspill_service.catalog.quotas import Charge
from overspill_service.catalog.redis import entry_scripts, key_names

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from overspill_service.catalog.records import Entry, Query
    from overspill_service.catalog.redis.client import RedisClient

MAX_BATCH: Final = 128
"""Entries that one command fetches, at most."""
FIRST_BATCH: Final = 32
"""Entries that one command fetches before their sizes are known."""
SMALL_BATCH_BYTES: Final = 256 * 1024
"""If `FIRST_BATCH` entries have fewer bytes, the next batch is larger."""
MAX_SCANNED: Final = 4096
"""Entries that a listing reads before it returns a short page with a cursor."""


class Pages:
    """Reads many entries at once. A record that cannot be decoded is skipped and remembered."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client
        self.damaged = encoding.SkippedRecords()

    async def find(
        self, tenant: str, query: Query, *, now: float, limit: int, cursor: str | None = None
    ) -> tuple[list[Entry], str | None]:
        indexes = key_names.indexes(tenant, query)
        low, high = _bounds(query, cursor)
        page = encoding.Page(limit)
        scanned, count = 0, min(limit + 1, MAX_BATCH)
        while scanned < MAX_SCANNED or not page.entries:
            positions = await self._client.step(entry_scripts.PAGE, indexes, high, low, count)
            async with aclosing(self._listed(tenant, positions)) as entries:
                async for entry in entries:
                    if encoding.matches(entry, query, now) and not page.add(entry):
                        return page.entries, encoding.encode_cursor(position_of(page.entries[-1]))
            if len(positions) < count:
                return page.entries, None
            high = b"(" + positions[-1]  # "(": up to this position, without it (ZREVRANGEBYLEX)
            scanned, count = scanned + count, MAX_BATCH
        return page.entries, encoding.encode_cursor(high[1:])

    async def _listed(self, tenant: str, positions: Sequence[bytes]) -> AsyncGenerator[Entry, None]:
        """Yield the entries that are still at these positions.

        A capture that was removed and stored again is listed at its new position only.
        """
        names = [encoding.capture_of(position) for position in positions]
        async with aclosing(self._entries(tenant, names)) as entries:
            async for number, entry in entries:
                if position_of(entry) == positions[number]:
                    yield entry

    async def expired(self, tenant: str, *, now: float, limit: int) -> list[Entry]:
        page = encoding.Page(limit)
        offset = 0
        while len(page.entries) < limit:
            count = limit - len(page.entries)
            keys = (key_names.expiry(tenant), "-inf", repr(now), "LIMIT", offset, count)
            names = [
                name.decode(errors="replace") for name in await self._client.call("ZRANGEBYSCORE", *keys)
            ]
            async with aclosing(self._entries(tenant, names)) as entries:
                async for _, entry in entries:
                    if entry.is_expired(now) and not page.add(entry):
                        return page.entries
            if len(names) < count:
                break
            offset += count
        return page.entries

    async def largest(self, tenant: str, *, now: float, limit: int) -> list[Entry]:
        page = encoding.Page(limit)
        for offset in range(0, MAX_SCANNED, MAX_BATCH):
            ends = key_names.sizes(tenant), offset, offset + MAX_BATCH - 1
            names = [name.decode(errors="replace") for name in await self._client.call("ZREVRANGE", *ends)]
            async with aclosing(self._entries(tenant, names)) as entries:
                async for _, entry in entries:
                    if not entry.is_expired(now) and not page.add(entry):
                        return page.entries
            if len(names) < MAX_BATCH:
                break
        return page.entries

    async def charge(self, tenant: str) -> Charge:
        """Return the sums over all entries. Raises `RecordDamaged` if one of them cannot be decoded."""
        sums, high = Charge(0, 0, 0, 0), b"+"
        index = [key_names.created(tenant)]
        while positions := await self._client.step(entry_scripts.PAGE, index, high, "-", MAX_BATCH):
            keys = [key_names.capture(tenant, encoding.capture_of(each)) for each in positions]
            for position, value in zip(positions, await self._client.call("MGET", *keys), strict=True):
                entry = self.damaged.entry(tenant, encoding.capture_of(position), value)
                if entry is None and value and encoding.is_damaged(value):
                    raise encoding.damaged_record("entry of a capture")
                if entry is not None and position_of(entry) == position:
                    sums = Charge(*map(add, sums, entry.charge))
            high = b"(" + positions[-1]
        return sums

    async def _entries(self, tenant: str, captures: Sequence[str]) -> AsyncGenerator[tuple[int, Entry], None]:
        """Yield the existing entries of these captures, each with its index in `captures`.

        Large ones come in small batches.
        """
        start, count = 0, FIRST_BATCH
        while start < len(captures):
            batch = captures[start : start + count]
            values = await self._client.call("MGET", *(key_names.capture(tenant, name) for name in batch))
            for number, (name, value) in enumerate(zip(batch, values, strict=True), start):
                entry = self.damaged.entry(tenant, name, value)
                if entry is not None:
                    yield number, entry
            start += len(batch)
            count = (
                MAX_BATCH if sum(len(value or b"") for value in values) < SMALL_BATCH_BYTES else FIRST_BATCH
            )
            await asyncio.sleep(0)  # decoding a batch takes time: let other tasks run


def position_of(entry: Entry) -> bytes:
    return encoding.position(entry.created, entry.id)


def _bounds(query: Query, cursor: str | None) -> tuple[bytes, bytes]:
    """Return the lowest and highest position of a page, as ZREVRANGEBYLEX takes them."""
    low = b"-" if query.since is None else b"[" + encoding.pack_instant(query.since)
    high = b"+" if query.until is None else b"(" + encoding.pack_instant(query.until)
    if cursor is not None:
        after = b"(" + encoding.position(*encoding.decode_cursor(cursor))
        high = after if query.until is None else min(high, after)
    return low, high
