"""The steps of the catalog on its tables. Each function is one step; the worker runs it in a transaction."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from overspill_service.catalog import encoding
from overspill_service.catalog.records import TOTALS_INCOMPLETE, Entry, Tombstone
from overspill_service.errors import CatalogIncomplete, QuotaExceeded

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping, Sequence

    from overspill_service.catalog.records import Query, Quota

CLOCK_TOLERANCE_SECONDS: Final = 60.0
"""A lease that ends later than its length and this many seconds was taken by a clock that is ahead: it is
free.
"""
MAX_PURGED: Final = 100
"""Lapsed tombstones or leases that one step deletes."""

_CONDITIONS: Final = {
    "tool": "tool = :tool",
    "state": "state = :state",
    "since": "created >= :since",
    "until": "created < :until",
}


def commit(entry: Entry, quota: Quota, db: sqlite3.Connection) -> Entry | Tombstone:
    found = _stored_record(entry.tenant, entry.id, db)
    if isinstance(found, Entry) or (found is not None and found.is_of_upload(entry)):
        return found
    _insert(entry, db)
    _count(entry, 1, db)
    _require_quota(entry.tenant, quota, db)
    return entry


def _insert(entry: Entry, db: sqlite3.Connection) -> None:
    row = (
        *(entry.tenant, entry.id, entry.created, entry.expires, entry.state.value, entry.tool),
        *(_digest(entry.session), _digest(entry.call_id), entry.size, entry.stored_size),
        encoding.encode_entry(entry),
    )
    db.execute("INSERT OR REPLACE INTO captures VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)


def restore(entry: Entry, db: sqlite3.Connection) -> bool:
    select = "SELECT value, created, size, stored_size FROM captures WHERE tenant = ? AND id = ?"
    row = db.execute(select, (entry.tenant, entry.id)).fetchone()
    if row is None or not encoding.is_damaged(row[0]):
        return False
    _, created, size, stored_size = row
    if created is not None:
        db.execute(
            "UPDATE totals SET captures = captures - 1, size = size - ?, stored_size = stored_size - ?"
            " WHERE tenant = ?",
            (size, stored_size, entry.tenant),
        )
    _insert(entry, db)
    _count(entry, 1, db)
    return True


def _count(entry: Entry, times: int, db: sqlite3.Connection) -> None:
    """Add the entry `times` times to the totals. With -1 it is subtracted."""
    db.execute(
        "INSERT INTO totals VALUES (?, ?, ?, ?) ON CONFLICT (tenant) DO UPDATE SET captures = captures"
        " + excluded.captures, size = size + excluded.size, stored_size = stored_size + excluded.stored_size",
        (entry.tenant, times, times * entry.size, times * entry.stored_size),
    )


def _require_quota(tenant: str, quota: Quota, db: sqlite3.Connection) -> None:
    if not quota.is_limited:
        return
    if not is_complete(db):
        raise CatalogIncomplete(TOTALS_INCOMPLETE)
    select = "SELECT captures, stored_size FROM totals WHERE tenant = ?"
    captures, stored_size = db.execute(select, (tenant,)).fetchone()
    if 0 < quota.captures < captures:
        raise QuotaExceeded("captures", quota.captures)
    if 0 < quota.stored_size < stored_size:
        raise QuotaExceeded("stored bytes", quota.stored_size)


def is_complete(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM facts WHERE name = 'complete'").fetchone() is not None


def get(tenant: str, capture: str, now: float, db: sqlite3.Connection) -> Entry | Tombstone | None:
    select = "SELECT value FROM captures WHERE tenant = ? AND id = ? AND (created IS NOT NULL OR expires > ?)"
    row = db.execute(select, (tenant, capture, now)).fetchone()
    return encoding.decode(row[0]) if row else None


def _stored_entry(tenant: str, capture: str, db: sqlite3.Connection) -> Entry | None:
    found = _stored_record(tenant, capture, db)
    return found if isinstance(found, Entry) else None


def _stored_record(tenant: str, capture: str, db: sqlite3.Connection) -> Entry | Tombstone | None:
    select = "SELECT value FROM captures WHERE tenant = ? AND id = ?"
    row = db.execute(select, (tenant, capture)).fetchone()
    return encoding.decode(row[0]) if row else None


def find(
    damaged: encoding.SkippedRecords,
    index: str,
    where: Sequence[str],
    values: dict[str, Any],
    limit: int,
    db: sqlite3.Connection,
) -> tuple[list[Entry], bool]:
    """Return a page of entries, and whether there are more."""
    select = f"SELECT id, value FROM captures INDEXED BY {index} WHERE {' AND '.join(where)}"  # noqa: S608
    rows = db.execute(f"{select} ORDER BY created DESC, id DESC", values)
    return _entries(damaged, values["tenant"], rows, limit)


def index(query: Query) -> str:
    """Return the most selective index. SQLite's own choice may walk by expiry and sort everything."""
    if query.call_id:
        return "captures_by_call"
    return "captures_by_session" if query.session else "captures_by_created"


def conditions(query: Query) -> tuple[list[str], dict[str, Any]]:
    """Return the conditions of a query, and the values in them."""
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


def amend(entry: Entry, expires: float, marker: str | None, db: sqlite3.Connection) -> Entry | None:
    stored = _stored_entry(entry.tenant, entry.id, db)
    if stored is None or stored.upload != entry.upload:
        return None
    if stored.marker != entry.marker:
        return stored
    changed = replace(stored, expires=expires, marker=marker)
    _replace(changed, db)
    return changed


def note_read(entry: Entry, at: float, db: sqlite3.Connection) -> bool:
    stored = _stored_entry(entry.tenant, entry.id, db)
    if stored is None or stored.upload != entry.upload or stored.first_read is not None:
        return False
    _replace(replace(stored, first_read=at), db)
    return True


def _replace(changed: Entry, db: sqlite3.Connection) -> None:
    update = "UPDATE captures SET expires = ?, value = ? WHERE tenant = ? AND id = ?"
    db.execute(update, (changed.expires, encoding.encode_entry(changed), changed.tenant, changed.id))


def remove(entry: Entry, tombstone: Tombstone, now: float, until: float, db: sqlite3.Connection) -> bool:
    stored = _stored_entry(entry.tenant, entry.id, db)
    if stored is None or stored.upload != entry.upload or not tombstone.may_replace(stored):
        return False
    value = encoding.encode_tombstone(tombstone, secrets.token_bytes(encoding.NONCE))
    db.execute(
        "UPDATE captures SET created = NULL, expires = ?, state = NULL, tool = NULL, session = NULL,"
        " call_id = NULL, size = NULL, stored_size = NULL, value = ? WHERE tenant = ? AND id = ?",
        (until, value, entry.tenant, entry.id),
    )
    _count(stored, -1, db)
    # Old tombstones are deleted here, a few at a time: nothing else visits them.
    lapsed = "SELECT rowid FROM captures WHERE created IS NULL AND expires <= ? LIMIT ?"
    db.execute(f"DELETE FROM captures WHERE rowid IN ({lapsed})", (now, MAX_PURGED))  # noqa: S608  (a constant)
    return True


def expired(
    damaged: encoding.SkippedRecords, tenant: str, now: float, limit: int, db: sqlite3.Connection
) -> list[Entry]:
    select = (
        "SELECT id, value FROM captures WHERE tenant = ? AND created IS NOT NULL AND expires <= ?"
        " ORDER BY expires, id"
    )
    entries, _ = _entries(damaged, tenant, db.execute(select, (tenant, now)), limit)
    return entries


def _entries(
    damaged: encoding.SkippedRecords, tenant: str, rows: Iterable[tuple[str, bytes]], limit: int
) -> tuple[list[Entry], bool]:
    """Return a page of the rows' entries, and whether there are more. Damaged records are skipped."""
    page = encoding.Page(limit)
    for capture, value in rows:
        entry = damaged.entry(tenant, capture, value)
        if entry is not None and not page.add(entry):
            return page.entries, True
    return page.entries, False


def lease(name: str, holder: str, now: float, until: float, db: sqlite3.Connection) -> bool:
    lapsed = "SELECT name FROM leases WHERE until <= ? LIMIT ?"
    db.execute(f"DELETE FROM leases WHERE name IN ({lapsed})", (now, MAX_PURGED))  # noqa: S608  (a constant)
    taken = db.execute(
        "INSERT INTO leases VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET holder = excluded.holder,"
        " until = excluded.until WHERE leases.holder = excluded.holder OR leases.until <= ?"
        " OR leases.until > ?",
        (name, holder, until, now, until + CLOCK_TOLERANCE_SECONDS),
    )
    return taken.rowcount > 0


def note_uses(uses: Mapping[str, float], db: sqlite3.Connection) -> None:
    db.executemany("INSERT OR REPLACE INTO uses VALUES (?, ?)", [*uses.items()])


def set_access_mode(mode: str, db: sqlite3.Connection) -> None:
    db.execute("DELETE FROM facts WHERE name LIKE 'access:%'")
    db.execute("INSERT INTO facts VALUES (?)", (f"access:{mode}",))


def _digest(text: str) -> bytes | None:
    return encoding.digest(text) if text else None
