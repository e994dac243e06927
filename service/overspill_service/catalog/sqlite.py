"""The catalog in one SQLite file: durable on one machine, for any number of processes on it.

The file must be on a local disk: SQLite's write-ahead log does not work over a network.
"""

from __future__ import annotations

import secrets
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from overspill_service.catalog import UNCOUNTED, Entry, Tombstone, Totals, records, sqlite_schema
from overspill_service.catalog.sqlite_worker import Worker
from overspill_service.errors import CatalogIncomplete, QuotaExceeded

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from overspill_service.catalog import KeyRecord, Query, Quota

READERS: Final = 2
PURGED: Final = 100
"""Lapsed tombstones or leases that one step clears away."""

_CONDITIONS: Final = {
    "tool": "tool = :tool",
    "state": "state = :state",
    "since": "created >= :since",
    "until": "created < :until",
}


class SqliteCatalog:
    def __init__(self, path: Path | None, clock: Callable[[], float] = time.time) -> None:
        """Open or create the file; None keeps everything in memory. Raises `CatalogUnavailable`."""
        self._clock = clock
        self._writer = Worker([sqlite_schema.prepare(path)], "catalog-writer", writes=True)
        self._reader = self._writer
        if path is not None:
            readers = [sqlite_schema.connect(path) for _ in range(READERS)]
            self._reader = Worker(readers, "catalog-reader", writes=False)

    # --- entries ----------------------------------------------------------------------------------

    async def commit(self, entry: Entry, quota: Quota) -> Entry | Tombstone:
        return await self._writer.run(partial(_commit, entry, quota))

    async def get(self, tenant: str, capture: str) -> Entry | Tombstone | None:
        return await self._reader.run(partial(_get, tenant, capture, self._clock()))

    async def find(
        self, tenant: str, query: Query, *, now: float, limit: int, cursor: str | None = None
    ) -> tuple[list[Entry], str | None]:
        where, values = _conditions(query)
        values |= {"tenant": tenant, "now": now, "limit": limit + 1}
        if cursor is not None:
            where.append("(created, id) < (:created, :id)")
            values["created"], values["id"] = records.decode_cursor(cursor)
        entries = await self._reader.run(partial(_find, _index(query), where, values))
        if len(entries) <= limit:
            return entries, None
        last = entries[limit - 1]
        return entries[:limit], records.encode_cursor(records.position(last.created, last.id))

    async def amend(self, entry: Entry, *, expires: float, marker: str | None) -> Entry | None:
        return await self._writer.run(partial(_amend, entry, expires, marker))

    async def remove(self, entry: Entry, tombstone: Tombstone, *, keep: float) -> bool:
        now = self._clock()
        return await self._writer.run(partial(_remove, entry, tombstone, now, now + keep))

    # --- ledger -----------------------------------------------------------------------------------

    async def tenants(self) -> list[str]:
        return [name for (name,) in await self._rows("SELECT tenant FROM totals ORDER BY tenant")]

    async def totals(self, tenant: str) -> Totals:
        statement = (
            "SELECT captures, size, stored_size, (SELECT min(created) FROM captures"
            " WHERE tenant = :tenant AND created IS NOT NULL) FROM totals WHERE tenant = :tenant"
        )
        rows = await self._rows(statement, {"tenant": tenant})
        return Totals(*rows[0]) if rows else Totals()

    async def expired(self, tenant: str, *, now: float, limit: int) -> list[Entry]:
        return await self._reader.run(partial(_expired, tenant, now, limit))

    # --- coordination -----------------------------------------------------------------------------

    async def lease(self, name: str, holder: str, ttl: float) -> bool:
        now = self._clock()
        return await self._writer.run(partial(_lease, f"lease:{name}", holder, now, now + ttl))

    async def release(self, name: str, holder: str) -> None:
        await self._write("DELETE FROM leases WHERE name = ? AND holder = ?", (f"lease:{name}", holder))

    async def once(self, name: str, ttl: float) -> bool:
        now = self._clock()
        return await self._writer.run(partial(_lease, f"once:{name}", secrets.token_hex(8), now, now + ttl))

    async def is_complete(self) -> bool:
        return await self._reader.run(_is_complete)

    async def is_rebuild_due(self) -> bool:
        return not await self.is_complete()

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


# --- steps: each runs in a worker's thread, those that write inside a transaction ----------------------


def _commit(entry: Entry, quota: Quota, db: sqlite3.Connection) -> Entry | Tombstone:
    found = _found(entry.tenant, entry.id, db)
    if isinstance(found, Entry) or (found is not None and found.is_of(entry)):
        return found
    row = (
        *(entry.tenant, entry.id, entry.created, entry.expires, entry.state.value, entry.tool),
        *(_digest(entry.session), _digest(entry.call_id), entry.size, entry.stored_size),
        records.encode_entry(entry),
    )
    db.execute("INSERT OR REPLACE INTO captures VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    _count(entry, 1, db)
    _check(entry.tenant, quota, db)
    return entry


def _count(entry: Entry, times: int, db: sqlite3.Connection) -> None:
    """Add the entry to the totals, or with -1 take it off."""
    db.execute(
        "INSERT INTO totals VALUES (?, ?, ?, ?) ON CONFLICT (tenant) DO UPDATE SET captures = captures"
        " + excluded.captures, size = size + excluded.size, stored_size = stored_size + excluded.stored_size",
        (entry.tenant, times, times * entry.size, times * entry.stored_size),
    )


def _check(tenant: str, quota: Quota, db: sqlite3.Connection) -> None:
    if not quota.is_limited:
        return
    if not _is_complete(db):
        raise CatalogIncomplete(UNCOUNTED)
    select = "SELECT captures, stored_size FROM totals WHERE tenant = ?"
    captures, stored_size = db.execute(select, (tenant,)).fetchone()
    if 0 < quota.captures < captures:
        raise QuotaExceeded("captures", quota.captures)
    if 0 < quota.stored_size < stored_size:
        raise QuotaExceeded("stored bytes", quota.stored_size)


def _is_complete(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM facts WHERE name = 'complete'").fetchone() is not None


def _get(tenant: str, capture: str, now: float, db: sqlite3.Connection) -> Entry | Tombstone | None:
    select = "SELECT value FROM captures WHERE tenant = ? AND id = ? AND (created IS NOT NULL OR expires > ?)"
    row = db.execute(select, (tenant, capture, now)).fetchone()
    return records.decode(row[0]) if row else None


def _held(tenant: str, capture: str, db: sqlite3.Connection) -> Entry | None:
    found = _found(tenant, capture, db)
    return found if isinstance(found, Entry) else None


def _found(tenant: str, capture: str, db: sqlite3.Connection) -> Entry | Tombstone | None:
    select = "SELECT value FROM captures WHERE tenant = ? AND id = ?"
    row = db.execute(select, (tenant, capture)).fetchone()
    return records.decode(row[0]) if row else None


def _find(index: str, where: Sequence[str], values: dict[str, Any], db: sqlite3.Connection) -> list[Entry]:
    select = f"SELECT value FROM captures INDEXED BY {index} WHERE {' AND '.join(where)}"  # noqa: S608
    rows = db.execute(f"{select} ORDER BY created DESC, id DESC LIMIT :limit", values)
    return [_entry(value) for (value,) in rows]


def _index(query: Query) -> str:
    """The most selective index; left to itself SQLite may walk by expiry and sort everything."""
    if query.call_id:
        return "captures_by_call"
    return "captures_by_session" if query.session else "captures_by_created"


def _conditions(query: Query) -> tuple[list[str], dict[str, Any]]:
    """What a row must meet to be selected, and the values in it."""
    where = ["tenant = :tenant", "created IS NOT NULL", "expires > :now"]
    values: dict[str, Any] = {}
    for name, text in (("session", query.session), ("call_id", query.call_id)):
        if text is not None:
            where.append(f"{name} = :{name}" if text else f"{name} IS NULL")
            values[name] = _digest(text)
    for name, condition in _CONDITIONS.items():
        if (value := getattr(query, name)) is not None:
            where.append(condition)
            values[name] = value
    return where, values


def _amend(entry: Entry, expires: float, marker: str | None, db: sqlite3.Connection) -> Entry | None:
    stored = _held(entry.tenant, entry.id, db)
    if stored is None or stored.upload != entry.upload:
        return None
    if stored.marker != entry.marker:
        return stored
    changed = replace(stored, expires=expires, marker=marker)
    update = "UPDATE captures SET expires = ?, value = ? WHERE tenant = ? AND id = ?"
    db.execute(update, (expires, records.encode_entry(changed), entry.tenant, entry.id))
    return changed


def _remove(entry: Entry, tombstone: Tombstone, now: float, until: float, db: sqlite3.Connection) -> bool:
    stored = _held(entry.tenant, entry.id, db)
    if stored is None or stored.upload != entry.upload or not tombstone.may_replace(stored):
        return False
    value = records.encode_tombstone(tombstone, secrets.token_bytes(records.NONCE))
    db.execute(
        "UPDATE captures SET created = NULL, expires = ?, state = NULL, tool = NULL, session = NULL,"
        " call_id = NULL, size = NULL, stored_size = NULL, value = ? WHERE tenant = ? AND id = ?",
        (until, value, entry.tenant, entry.id),
    )
    _count(stored, -1, db)
    lapsed = "SELECT rowid FROM captures WHERE created IS NULL AND expires <= ? LIMIT ?"
    db.execute(f"DELETE FROM captures WHERE rowid IN ({lapsed})", (now, PURGED))  # noqa: S608  (a constant)
    return True


def _expired(tenant: str, now: float, limit: int, db: sqlite3.Connection) -> list[Entry]:
    select = (
        "SELECT value FROM captures WHERE tenant = ? AND created IS NOT NULL AND expires <= ?"
        " ORDER BY expires, id LIMIT ?"
    )
    return [_entry(value) for (value,) in db.execute(select, (tenant, now, limit))]


def _lease(name: str, holder: str, now: float, until: float, db: sqlite3.Connection) -> bool:
    lapsed = "SELECT name FROM leases WHERE until <= ? LIMIT ?"
    db.execute(f"DELETE FROM leases WHERE name IN ({lapsed})", (now, PURGED))  # noqa: S608  (a constant)
    taken = db.execute(
        "INSERT INTO leases VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET holder = excluded.holder,"
        " until = excluded.until WHERE leases.holder = excluded.holder OR leases.until <= ?",
        (name, holder, until, now),
    )
    return taken.rowcount > 0


def _digest(text: str) -> bytes | None:
    return records.digest(text) if text else None


def _entry(value: bytes) -> Entry:
    record = records.decode(value)
    assert isinstance(record, Entry)
    return record
