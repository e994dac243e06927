"""The entries of captures in the SQLite file."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from overspill_service.catalog import encoding
from overspill_service.catalog.sqlite import entry_steps, listings
from overspill_service.catalog.sqlite.access import SqliteAccess

if TYPE_CHECKING:
    from overspill_service.catalog.quotas import Quota
    from overspill_service.catalog.records import Entry, Query, Tombstone


class SqliteEntries(SqliteAccess):
    async def commit(self, entry: Entry, quota: Quota) -> Entry | Tombstone:
        return await self._writer.run(partial(entry_steps.commit, entry, quota, self._clock()))

    async def reserve(
        self,
        tenant: str,
        upload: str,
        size: int,
        stored_size: int,
        quota: Quota,
        *,
        keep: float,
        captures: int = 1,
    ) -> None:
        now = self._clock()
        row = tenant, upload, captures, size, stored_size, now + keep
        await self._writer.run(partial(entry_steps.reserve, row, quota, now))

    async def free(self, tenant: str, upload: str) -> None:
        await self._writer.run(partial(entry_steps.free, tenant, upload))

    async def get(self, tenant: str, capture: str) -> Entry | Tombstone | None:
        return await self._points.run(partial(entry_steps.get, tenant, capture, self._clock()))

    async def restore(self, entry: Entry) -> bool:
        return await self._writer.run(partial(entry_steps.restore, entry))

    def damaged(self) -> list[tuple[str, str]]:
        return self._damaged.take()

    async def find(
        self, tenant: str, query: Query, *, now: float, limit: int, cursor: str | None = None
    ) -> tuple[list[Entry], str | None]:
        selected, page = listings.selection(tenant, query, now), encoding.Page(limit)
        after = None if cursor is None else encoding.position(*encoding.decode_cursor(cursor))
        while True:
            step = partial(listings.step, self._damaged, page, selected, after)
            after, is_full = await self._reader.run(step)
            if after is None or is_full or page.entries:
                return page.entries, None if after is None else encoding.encode_cursor(after)

    async def largest(self, tenant: str, *, now: float, limit: int) -> list[Entry]:
        return await self._reader.run(partial(listings.largest, self._damaged, tenant, now, limit))

    async def amend(self, entry: Entry, *, expires: float, marker: str | None) -> Entry | None:
        return await self._writer.run(partial(entry_steps.amend, entry, expires, marker))

    async def note_read(self, entry: Entry, at: float, reader: str = "") -> bool:
        return await self._writer.run(partial(entry_steps.note_read, entry, at, reader))

    async def remove(self, entry: Entry, tombstone: Tombstone, *, keep: float) -> bool:
        now = self._clock()
        return await self._writer.run(partial(entry_steps.remove, entry, tombstone, now, now + keep))
