"""The catalog in one SQLite file: durable on one machine, for any number of processes on it.

The file must be on a local disk: SQLite's write-ahead log does not work over a network.
"""

from __future__ import annotations

import secrets
import time
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from overspill_service.catalog import (
    Entry,
    Tombstone,
    Totals,
    records,
)
from overspill_service.catalog.sqlite import clock as file_clock
from overspill_service.catalog.sqlite import generations, schema, steps
from overspill_service.catalog.sqlite.worker import Worker
from overspill_service.errors import CatalogUnavailable

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from overspill_service.catalog import Generation, KeyRecord, Query, Quota

READERS: Final = 2


class SqliteCatalog:
    def __init__(self, path: Path | None, clock: Callable[[], float] = time.time) -> None:
        """Open or create the file; None keeps everything in memory. Raises `CatalogUnavailable`.

        `clock` is the machine's, in seconds since the epoch.
        """
        self._path, self._machine, self._boot = path, clock, file_clock.boot()
        self._damaged = records.Damaged()
        self._file, writer = schema.prepare(path)
        self._reading = file_clock.reconciled(file_clock.stored(writer), *self._moment())
        self._writer = Worker(self._file, [writer], "catalog-writer", writes=True)
        self._reader = self._writer
        if path is not None:
            readers = [schema.connect(path) for _ in range(READERS)]
            self._reader = Worker(self._file, readers, "catalog-reader", writes=False)

    # --- entries ----------------------------------------------------------------------------------

    async def commit(self, entry: Entry, quota: Quota) -> Entry | Tombstone:
        return await self._writer.run(partial(steps.commit, entry, quota))

    async def get(self, tenant: str, capture: str) -> Entry | Tombstone | None:
        return await self._reader.run(partial(steps.get, tenant, capture, self._clock()))

    async def restore(self, entry: Entry) -> bool:
        return await self._writer.run(partial(steps.restore, entry))

    def damaged(self) -> list[tuple[str, str]]:
        return self._damaged.take()

    async def find(
        self, tenant: str, query: Query, *, now: float, limit: int, cursor: str | None = None
    ) -> tuple[list[Entry], str | None]:
        where, values = steps.conditions(query)
        values |= {"tenant": tenant, "now": now}
        if cursor is not None:
            where.append("(created, id) < (:created, :id)")
            values["created"], values["id"] = records.decode_cursor(cursor)
        entries, has_more = await self._reader.run(
            partial(steps.find, self._damaged, steps.index(query), where, values, limit)
        )
        if not has_more:
            return entries, None
        last = entries[-1]
        return entries, records.encode_cursor(records.position(last.created, last.id))

    async def amend(self, entry: Entry, *, expires: float, marker: str | None) -> Entry | None:
        return await self._writer.run(partial(steps.amend, entry, expires, marker))

    async def remove(self, entry: Entry, tombstone: Tombstone, *, keep: float) -> bool:
        now = self._clock()
        return await self._writer.run(partial(steps.remove, entry, tombstone, now, now + keep))

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
        return await self._reader.run(partial(steps.expired, self._damaged, tenant, now, limit))

    # --- coordination -----------------------------------------------------------------------------

    async def lease(self, name: str, holder: str, ttl: float) -> bool:
        now = self._clock()
        return await self._writer.run(partial(steps.lease, f"lease:{name}", holder, now, now + ttl))

    async def release(self, name: str, holder: str) -> None:
        await self._write("DELETE FROM leases WHERE name = ? AND holder = ?", (f"lease:{name}", holder))

    async def once(self, name: str, ttl: float) -> bool:
        now = self._clock()
        return await self._writer.run(
            partial(steps.lease, f"once:{name}", secrets.token_hex(8), now, now + ttl)
        )

    async def is_complete(self) -> bool:
        return await self._reader.run(steps.is_complete)

    async def is_rebuild_due(self) -> bool:
        return await self._reader.run(generations.is_rebuild_due)

    async def is_settled(self) -> bool:
        return await self.is_complete()

    async def begin_rebuild(self) -> str:
        return ""

    async def mark_complete(self, began: str) -> None:  # noqa: ARG002  (a file loses nothing meanwhile)
        await self._writer.run(generations.mark_complete)

    async def generation(self) -> Generation:
        return await self._reader.run(generations.generation)

    async def begin_generation(self, name: str, *, is_closed: bool) -> None:
        await self._writer.run(partial(generations.begin, name, is_closed))

    async def doubt(self, *, is_older: bool) -> None:
        await self._writer.run(partial(generations.doubt, is_older))

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
        await self._write("DELETE FROM uses WHERE hash = ?", (key_hash,))
        return await self._write("DELETE FROM keys WHERE hash = ?", (key_hash,)) > 0

    async def note_uses(self, uses: Mapping[str, float]) -> None:
        await self._writer.run(partial(steps.note_uses, uses))

    async def uses(self) -> dict[str, float]:
        return dict(await self._rows("SELECT hash, used FROM uses"))

    # --- service ----------------------------------------------------------------------------------

    async def now(self) -> float:
        """The time by the file's clock, which is stored with it while that is possible."""
        moment = self._moment()
        with suppress(CatalogUnavailable):
            self._reading = await self._writer.run(partial(file_clock.tell, *moment))
        return self._clock()

    async def trust_clock(self) -> float:
        """Take the machine's clock as right from now on; return by how many seconds that moves the time."""
        boot, steady, machine = self._moment()
        moved = machine - await self.now()
        self._reading = file_clock.Reading(boot, steady, machine, is_sure=True)
        await self._writer.run(partial(file_clock.store, self._reading))
        return moved

    def _moment(self) -> tuple[str, float, float]:
        return self._boot, file_clock.steady_seconds(), self._machine()

    def _clock(self) -> float:
        """The time as it was last told, and as long as it is ago."""
        return self._reading.later(file_clock.steady_seconds())

    async def ping(self) -> None:
        try:
            await self._writer.run(self._examine)
        except OSError as error:
            raise self._file.explained(error) from error
        await self._rows("SELECT 1")

    def _examine(self, db: sqlite3.Connection) -> None:
        """Write to the catalog, and to the disk under it. Raises `OSError`."""
        if self._path is not None:
            with closing(schema.connect(self._path)) as fresh:  # which sees what the file is now
                fresh.execute("SELECT count(*) FROM facts").fetchone()
        self._file.try_out()
        db.execute("INSERT OR REPLACE INTO facts VALUES ('ping')")

    async def close(self) -> None:
        await self._reader.close()
        await self._writer.close()

    async def _rows(self, statement: str, values: Any = ()) -> list[Any]:
        return await self._reader.run(lambda db: db.execute(statement, values).fetchall())

    async def _write(self, statement: str, values: Any = ()) -> int:
        """The number of rows that the statement changed."""
        return await self._writer.run(lambda db: db.execute(statement, values).rowcount)
