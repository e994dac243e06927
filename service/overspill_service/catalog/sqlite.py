"""The catalog in one SQLite file: durable on one machine, for any number of processes on it.

The file must be on a local disk: SQLite's write-ahead log does not work over a network.
"""

from __future__ import annotations

import secrets
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from overspill_service.catalog import Entry, Tombstone, Totals, records, sqlite_schema, sqlite_steps
from overspill_service.catalog.sqlite_worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from overspill_service.catalog import KeyRecord, Query, Quota

READERS: Final = 2


class SqliteCatalog:
    def __init__(self, path: Path | None, clock: Callable[[], float] = time.time) -> None:
        """Open or create the file; None keeps everything in memory. Raises `CatalogUnavailable`."""
        self._clock = clock
        self._damaged = records.Damaged()
        self._writer = Worker([sqlite_schema.prepare(path)], "catalog-writer", writes=True)
        self._reader = self._writer
        if path is not None:
            readers = [sqlite_schema.connect(path) for _ in range(READERS)]
            self._reader = Worker(readers, "catalog-reader", writes=False)

    # --- entries ----------------------------------------------------------------------------------

    async def commit(self, entry: Entry, quota: Quota) -> Entry | Tombstone:
        return await self._writer.run(partial(sqlite_steps.commit, entry, quota))

    async def get(self, tenant: str, capture: str) -> Entry | Tombstone | None:
        return await self._reader.run(partial(sqlite_steps.get, tenant, capture, self._clock()))

    async def restore(self, entry: Entry) -> bool:
        return await self._writer.run(partial(sqlite_steps.restore, entry))

    def damaged(self) -> list[tuple[str, str]]:
        return self._damaged.take()

    async def find(
        self, tenant: str, query: Query, *, now: float, limit: int, cursor: str | None = None
    ) -> tuple[list[Entry], str | None]:
        where, values = sqlite_steps.conditions(query)
        values |= {"tenant": tenant, "now": now, "limit": limit + 1}
        if cursor is not None:
            where.append("(created, id) < (:created, :id)")
            values["created"], values["id"] = records.decode_cursor(cursor)
        entries = await self._reader.run(
            partial(sqlite_steps.find, self._damaged, sqlite_steps.index(query), where, values)
        )
        if len(entries) <= limit:
            return entries, None
        last = entries[limit - 1]
        return entries[:limit], records.encode_cursor(records.position(last.created, last.id))

    async def amend(self, entry: Entry, *, expires: float, marker: str | None) -> Entry | None:
        return await self._writer.run(partial(sqlite_steps.amend, entry, expires, marker))

    async def remove(self, entry: Entry, tombstone: Tombstone, *, keep: float) -> bool:
        now = self._clock()
        return await self._writer.run(partial(sqlite_steps.remove, entry, tombstone, now, now + keep))

    # --- ledger -----------------------------------------------------------------------------------

    async def tenants(self) -> list[str]:
        return [name for (name,) in await self._rows("SELECT tenant FROM totals ORDER BY tenant")]

    async def forget_tenant(self, tenant: str) -> None:
        for table in ("captures", "totals"):
            await self._write(f"DELETE FROM {table} WHERE tenant = ?", (tenant,))  # noqa: S608  (a constant)

    async def totals(self, tenant: str) -> Totals:
        statement = (
            "SELECT captures, size, stored_size, (SELECT min(created) FROM captures"
            " WHERE tenant = :tenant AND created IS NOT NULL) FROM totals WHERE tenant = :tenant"
        )
        rows = await self._rows(statement, {"tenant": tenant})
        return Totals(*rows[0]) if rows else Totals()

    async def expired(self, tenant: str, *, now: float, limit: int) -> list[Entry]:
        return await self._reader.run(partial(sqlite_steps.expired, self._damaged, tenant, now, limit))

    # --- coordination -----------------------------------------------------------------------------

    async def lease(self, name: str, holder: str, ttl: float) -> bool:
        now = self._clock()
        return await self._writer.run(partial(sqlite_steps.lease, f"lease:{name}", holder, now, now + ttl))

    async def release(self, name: str, holder: str) -> None:
        await self._write("DELETE FROM leases WHERE name = ? AND holder = ?", (f"lease:{name}", holder))

    async def once(self, name: str, ttl: float) -> bool:
        now = self._clock()
        return await self._writer.run(
            partial(sqlite_steps.lease, f"once:{name}", secrets.token_hex(8), now, now + ttl)
        )

    async def is_complete(self) -> bool:
        return await self._reader.run(sqlite_steps.is_complete)

    async def is_rebuild_due(self) -> bool:
        return not await self.is_complete()

    async def is_settled(self) -> bool:
        return await self.is_complete()

    async def begin_rebuild(self) -> str:
        return ""

    async def mark_complete(self, began: str) -> None:  # noqa: ARG002  (a file loses nothing meanwhile)
        await self._write("INSERT OR IGNORE INTO facts VALUES ('complete')")

    # --- keys -------------------------------------------------------------------------------------

    async def add_key(self, key: KeyRecord) -> None:
        await self._write("INSERT OR REPLACE INTO keys VALUES (?, ?)", (key.hash, records.encode_key(key)))

    async def find_key(self, key_hash: str) -> KeyRecord | None:
        rows = await self._rows("SELECT record FROM keys WHERE hash = ?", (key_hash,))
        return records.decode_key(rows[0][0]) if rows else None

    async def keys(self) -> list[KeyRecord]:
        keys = [records.decode_key(record) for (record,) in await self._rows("SELECT record FROM keys")]
        return sorted(keys, key=lambda key: (key.created, key.hash))

    async def revoke_key(self, key_hash: str) -> bool:
        return await self._write("DELETE FROM keys WHERE hash = ?", (key_hash,)) > 0

    # --- service ----------------------------------------------------------------------------------

    async def now(self) -> None:
        """Nothing: a file has the clock of the machine that it is on."""

    async def ping(self) -> None:
        await self._write("INSERT OR REPLACE INTO facts VALUES ('ping')")
        await self._rows("SELECT 1")

    async def close(self) -> None:
        await self._reader.close()
        await self._writer.close()

    async def _rows(self, statement: str, values: Any = ()) -> list[Any]:
        return await self._reader.run(lambda db: db.execute(statement, values).fetchall())

    async def _write(self, statement: str, values: Any = ()) -> int:
        """The number of rows that the statement changed."""
        return await self._writer.run(lambda db: db.execute(statement, values).rowcount)
