"""Pages of entries: listings through the indexes of positions, and what has expired."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from overspill_service.catalog import records, redis_keys, scripts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overspill_service.catalog import Entry, Query
    from overspill_service.catalog.redis_link import Link

BATCH: Final = 128
"""Entries that one command fetches at most."""
SCANNED: Final = 4096
"""Entries that a listing looks at before it hands back a short page and a cursor to go on from."""


class Pages:
    """Reads entries many at a time; what cannot be decoded is passed over and remembered."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.damaged = records.Damaged()

    async def find(
        self, tenant: str, query: Query, *, now: float, limit: int, cursor: str | None = None
    ) -> tuple[list[Entry], str | None]:
        indexes = redis_keys.indexes(tenant, query)
        low, high = _bounds(query, cursor)
        found: list[Entry] = []
        scanned, count = 0, min(limit + 1, BATCH)
        while scanned < SCANNED or not found:
            positions, entries = await self._batch(tenant, indexes, low, high, count)
            for entry in entries:
                if records.matches(entry, query, now):
                    if len(found) == limit:
                        return found, records.encode_cursor(position_of(found[-1]))
                    found.append(entry)
            if len(positions) < count:
                return found, None
            high = b"(" + positions[-1]
            scanned, count = scanned + count, BATCH
        return found, records.encode_cursor(high[1:])

    async def _batch(
        self, tenant: str, indexes: list[str], low: bytes, high: bytes, count: int
    ) -> tuple[list[bytes], list[Entry]]:
        """The next positions below `high`, and the entries that are still there."""
        positions = await self._link.step(scripts.PAGE, indexes, high, low, count)
        entries = await self._entries(tenant, [records.capture_of(position) for position in positions])
        pairs = zip(positions, entries, strict=True)
        # A capture that was removed and stored anew has another position now, and is listed there.
        return positions, [entry for position, entry in pairs if entry and position_of(entry) == position]

    async def expired(self, tenant: str, *, now: float, limit: int) -> list[Entry]:
        found: list[Entry] = []
        offset = 0
        while len(found) < limit:
            count = limit - len(found)
            keys = (redis_keys.expiry(tenant), "-inf", repr(now), "LIMIT", offset, count)
            names = [name.decode() for name in await self._link.call("ZRANGEBYSCORE", *keys)]
            entries = await self._entries(tenant, names)
            found += [entry for entry in entries if entry is not None and entry.is_expired(now)]
            if len(names) < count:
                break
            offset += count
        return found

    async def _entries(self, tenant: str, captures: Sequence[str]) -> list[Entry | None]:
        found: list[Entry | None] = []
        for start in range(0, len(captures), BATCH):
            keys = [redis_keys.capture(tenant, name) for name in captures[start : start + BATCH]]
            values = await self._link.call("MGET", *keys)
            batch = zip(captures[start : start + BATCH], values, strict=True)
            found += [self.damaged.entry(tenant, name, value) for name, value in batch]
            await asyncio.sleep(0)  # decoding many is work: let others run between batches
        return found


def position_of(entry: Entry) -> bytes:
    return records.position(entry.created, entry.id)


def _bounds(query: Query, cursor: str | None) -> tuple[bytes, bytes]:
    """The lowest and highest position of a page, as ZREVRANGEBYLEX takes them."""
    low = b"-" if query.since is None else b"[" + records.pack_instant(query.since)
    high = b"+" if query.until is None else b"(" + records.pack_instant(query.until)
    if cursor is not None:
        after = b"(" + records.position(*records.decode_cursor(cursor))
        high = after if query.until is None else min(high, after)
    return low, high
