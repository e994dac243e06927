"""The steps of entries on their tables. Each function is one step; the worker runs it in a transaction."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from overspill_service.catalog import encoding
from overspill_service.catalog.quotas import TOTALS_INCOMPLETE, Charge
from overspill_service.catalog.records import Entry, Tombstone
from overspill_service.catalog.sqlite import readers
from overspill_service.errors import CatalogIncomplete

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from overspill_service.catalog.quotas import Quota

MAX_PURGED: Final = 100
"""Rows whose time is over that one step deletes."""
MAX_RESERVED_SECONDS: Final = 3600.0
"""No reservation lasts so long. One with more time left was made by a clock that was ahead."""


def commit(entry: Entry, quota: Quota, now: float, db: sqlite3.Connection) -> Entry | Tombstone:
    found = _stored_record(entry.tenant, entry.id, db)
    if isinstance(found, Entry) or (found is not None and found.is_of_upload(entry)):
        return found
    insert(entry, db)
    count(entry.tenant, entry.charge, 1, db)
    if found is not None:
        _count_tombstones(entry.tenant, -1, db)
    free(entry.tenant, entry.upload, db)
    _require_quota(entry.tenant, quota, now, db)
    return entry


def reserve(
    row: tuple[str, str, int, int, int, float], quota: Quota, now: float, db: sqlite3.Connection
) -> None:
    columns = "tenant, upload, captures, size, stored_size, until"
    db.execute(f"INSERT OR REPLACE INTO reservations ({columns}) VALUES (?, ?, ?, ?, ?, ?)", row)  # noqa: S608  (a constant)
    _require_quota(row[0], quota, now, db)


def free(tenant: str, upload: str, db: sqlite3.Connection) -> None:
    db.execute("DELETE FROM reservations WHERE tenant = ? AND upload = ?", (tenant, upload))


def insert(entry: Entry, db: sqlite3.Connection) -> None:
    row = (
        *(entry.tenant, entry.id, entry.created, entry.expires, entry.state.value, entry.tool),
        *(_digest(entry.session), _digest(entry.call_id), entry.size, entry.stored_size),
        *(encoding.encode_entry(entry), entry.metadata_size),
    )
    db.execute("INSERT OR REPLACE INTO captures VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)


def restore(entry: Entry, db: sqlite3.Connection) -> bool:
    select = (
        "SELECT value, created, size, stored_size, coalesce(metadata, 0) FROM captures"
        " WHERE tenant = ? AND id = ?"
    )
    row = db.execute(select, (entry.tenant, entry.id)).fetchone()
    if row is None or not encoding.is_damaged(row[0]):
        return False
    _, created, *charged = row
    if created is not None:
        count(entry.tenant, Charge(1, *charged), -1, db)
    insert(entry, db)
    count(entry.tenant, entry.charge, 1, db)
    return True


def count(tenant: str, charge: Charge, times: int, db: sqlite3.Connection) -> None:
    """Add a charge `times` times to the totals. With -1 it is subtracted."""
    db.execute(
        "INSERT INTO totals (tenant, captures, size, stored_size, metadata) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (tenant) DO UPDATE SET captures = captures + excluded.captures,"
        " size = size + excluded.size, stored_size = stored_size + excluded.stored_size,"
        " metadata = metadata + excluded.metadata",
        (tenant, *(times * part for part in charge)),
    )


def _require_quota(tenant: str, quota: Quota, now: float, db: sqlite3.Connection) -> None:
    """Raise `QuotaExceeded` if what the tenant has and what its uploads have reserved exceeds the quota."""
    if not quota.is_limited:
        return
    if quota.needs_totals and not is_complete(db):
        raise CatalogIncomplete(TOTALS_INCOMPLETE)
    lapsed = "DELETE FROM reservations WHERE tenant = ? AND (until <= ? OR until > ?)"
    db.execute(lapsed, (tenant, now, now + MAX_RESERVED_SECONDS))
    totals = db.execute(
        "SELECT sum(captures), sum(size), sum(stored_size), sum(metadata) FROM ("
        "SELECT captures, size, stored_size, metadata FROM totals WHERE tenant = :tenant UNION ALL "
        "SELECT captures, size, stored_size, 0 FROM reservations WHERE tenant = :tenant)",
        {"tenant": tenant},
    ).fetchone()
    quota.require(Charge(*(part or 0 for part in totals)))


def is_complete(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM facts WHERE name = 'complete'").fetchone() is not None


def get(tenant: str, capture: str, now: float, db: sqlite3.Connection) -> Entry | Tombstone | None:
    select = "SELECT value FROM captures WHERE tenant = ? AND id = ? AND (created IS NOT NULL OR expires > ?)"
    row = db.execute(select, (tenant, capture, now)).fetchone()
    return encoding.decode(row[0]) if row else None


def stored_entry(tenant: str, capture: str, db: sqlite3.Connection) -> Entry | None:
    found = _stored_record(tenant, capture, db)
    return found if isinstance(found, Entry) else None


def _stored_record(tenant: str, capture: str, db: sqlite3.Connection) -> Entry | Tombstone | None:
    select = "SELECT value FROM captures WHERE tenant = ? AND id = ?"
    row = db.execute(select, (tenant, capture)).fetchone()
    return encoding.decode(row[0]) if row else None


def amend(entry: Entry, expires: float, marker: str | None, db: sqlite3.Connection) -> Entry | None:
    stored = stored_entry(entry.tenant, entry.id, db)
    if stored is None or stored.upload != entry.upload:
        return None
    if stored.marker != entry.marker:
        return stored
    changed = replace(stored, expires=expires, marker=marker)
    _replace(changed, db)
    return changed


def note_read(entry: Entry, at: float, reader: str, db: sqlite3.Connection) -> bool:
    stored = stored_entry(entry.tenant, entry.id, db)
    if stored is None or stored.upload != entry.upload or stored.first_read is not None:
        return False
    _replace(replace(stored, first_read=at, first_reader=reader), db)
    return True


def _replace(changed: Entry, db: sqlite3.Connection) -> None:
    update = "UPDATE captures SET expires = ?, value = ? WHERE tenant = ? AND id = ?"
    db.execute(update, (changed.expires, encoding.encode_entry(changed), changed.tenant, changed.id))


def remove(entry: Entry, tombstone: Tombstone, now: float, until: float, db: sqlite3.Connection) -> bool:
    stored = stored_entry(entry.tenant, entry.id, db)
    if stored is None or stored.upload != entry.upload or not tombstone.may_replace(stored):
        return False
    value = encoding.encode_tombstone(tombstone, secrets.token_bytes(encoding.NONCE))
    db.execute(
        "UPDATE captures SET created = NULL, expires = ?, state = NULL, tool = NULL, session = NULL,"
        " call_id = NULL, size = NULL, stored_size = NULL, metadata = NULL, value = ?"
        " WHERE tenant = ? AND id = ?",
        (until, value, entry.tenant, entry.id),
    )
    count(entry.tenant, stored.charge, -1, db)
    readers.forget(entry.tenant, entry.id, db)
    tombstones = _count_tombstones(entry.tenant, 1, db)
    # Old tombstones are deleted here, a few at a time: nothing else visits them.
    lapsed = "SELECT rowid, tenant FROM captures WHERE created IS NULL AND expires <= ? LIMIT ?"
    _drop_tombstones(db.execute(lapsed, (now, MAX_PURGED)).fetchall(), db)
    if tombstones > encoding.MAX_TOMBSTONES:
        oldest = (
            "SELECT rowid, tenant FROM captures INDEXED BY tombstones_by_tenant"
            " WHERE tenant = ? AND created IS NULL ORDER BY expires LIMIT ?"
        )
        surplus = min(tombstones - encoding.MAX_TOMBSTONES, MAX_PURGED)
        _drop_tombstones(db.execute(oldest, (entry.tenant, surplus)).fetchall(), db)
    return True


def _drop_tombstones(rows: Iterable[tuple[int, str]], db: sqlite3.Connection) -> None:
    for rowid, tenant in rows:
        db.execute("DELETE FROM captures WHERE rowid = ?", (rowid,))
        _count_tombstones(tenant, -1, db)


def _count_tombstones(tenant: str, change: int, db: sqlite3.Connection) -> int:
    """Return how many tombstones the tenant has now."""
    db.execute("UPDATE totals SET tombstones = tombstones + ? WHERE tenant = ?", (change, tenant))
    row = db.execute("SELECT tombstones FROM totals WHERE tenant = ?", (tenant,)).fetchone()
    return row[0] if row else 0


def _digest(text: str) -> bytes | None:
    return encoding.digest(text) if text else None
