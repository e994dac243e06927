"""Pages of entries: listings through the indexes of positions, and what has expired."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from overspill_service.catalog import encoding
from overspill_service.catalog.redis import key_names, scripts

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from overspill_service.catalog.records import Entry, Query
    from overspill_service.catalog.redis.link import Link

MAX_BATCH: Final = 128
"""Entries that one command fetches at most."""
FIRST_BATCH: Final = 32
"""Entries that one command fetches while it is not known that they are small."""
SMALL_BATCH_BYTES: Final = 256 * 1024
"""Bytes of `FIRST_BATCH` entries that are small."""
MAX_SCANNED: Final = 4096
"""Entries that a listing looks at before it hands back a short page and a cursor to go on from."""


class Pages:
    """Reads entries many at a time; what cannot be decoded is passed over and remembered."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.damaged = encoding.Damaged()

    async def find(
        self, tenant: str, query: Query, *, now: float, limit: int, cursor: str | None = None
    ) -> tuple[list[Entry], str | None]:
        indexes = key_names.indexes(tenant, query)
        low, high = _bounds(query, cursor)
        page = encoding.Page(limit)
        scanned, count = 0, min(limit + 1, MAX_BATCH)
        while scanned < MAX_SCANNED or not page.entries:
            positions = await self._link.step(scripts.PAGE, indexes, high, low, count)
            async with aclosing(self._listed(tenant, positions)) as entries:
                async for entry in entries:
                    if encoding.matches(entry, query, now) and not page.add(entry):
                        return page.entries, encoding.encode_cursor(position_of(page.entries[-1]))
            if len(positions) < count:
                return page.entries, None
            high = b"(" + positions[-1]
            scanned, count = scanned + count, MAX_BATCH
        return page.entries, encoding.encode_cursor(high[1:])

    async def _listed(self, tenant: str, positions: Sequence[bytes]) -> AsyncGenerator[Entry, None]:
        """The entries that are still at these positions.

        A capture that was removed and stored anew has another position now, and is listed there.
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
            names = [name.decode() for name in await self._link.call("ZRANGEBYSCORE", *keys)]
            async with aclosing(self._entries(tenant, names)) as entries:
                async for _, entry in entries:
                    if entry.is_expired(now) and not page.add(entry):
                        return page.entries
            if len(names) < count:
                break
            offset += count
        return page.entries

    async def _entries(self, tenant: str, captures: Sequence[str]) -> AsyncGenerator[tuple[int, Entry], None]:
        """The entries that there are of these captures, each with its place; large ones come few at once."""
        start, count = 0, FIRST_BATCH
        while start < len(captures):
            batch = captures[start : start + count]
            values = await self._link.call("MGET", *(key_names.capture(tenant, name) for name in batch))
            for number, (name, value) in enumerate(zip(batch, values, strict=True), start):
                entry = self.damaged.entry(tenant, name, value)
                if entry is not None:
                    yield number, entry
            start += len(batch)
            count = (
                MAX_BATCH if sum(len(value or b"") for value in values) < SMALL_BATCH_BYTES else FIRST_BATCH
            )
            await asyncio.sleep(0)  # decoding many is work: let others run between batches


def position_of(entry: Entry) -> bytes:
    return encoding.position(entry.created, entry.id)


def _bounds(query: Query, cursor: str | None) -> tuple[bytes, bytes]:
    """The lowest and highest position of a page, as ZREVRANGEBYLEX takes them."""
    low = b"-" if query.since is None else b"[" + encoding.pack_instant(query.since)
    high = b"+" if query.until is None else b"(" + encoding.pack_instant(query.until)
    if cursor is not None:
        after = b"(" + encoding.position(*encoding.decode_cursor(cursor))
        high = after if query.until is None else min(high, after)
    return low, high
