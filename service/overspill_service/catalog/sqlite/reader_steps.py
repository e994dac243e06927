"""The steps of who has read captures. Each function is one step, as in `steps`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from overspill_service.catalog import readers

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from overspill_service.catalog.readers import Reader, ReadNote

_IS_STORED: Final = (  # an entry names its upload
    "SELECT 1 FROM captures WHERE tenant = ? AND id = ? AND created IS NOT NULL AND instr(value, ?)"
)


def note(tenant: str, notes: Sequence[ReadNote], most: int, db: sqlite3.Connection) -> None:
    (before,) = db.execute("SELECT max(readers) FROM totals WHERE tenant = ?", (tenant,)).fetchone()
    taken = before = before or 0
    for each in notes:
        name = tenant, each.capture
        if db.execute(_IS_STORED, (*name, each.upload.encode())).fetchone() is None:
            continue
        stored = _stored(*name, db)
        value = readers.encode(readers.noted(readers.decode(stored), each))
        growth = _charge(value) - _charge(stored)
        if growth <= 0 or not most or taken + growth <= most:
            db.execute("INSERT OR REPLACE INTO readers VALUES (?, ?, ?)", (*name, value))
            taken += growth
    _count(tenant, taken - before, db)


def read(tenant: str, capture: str, db: sqlite3.Connection) -> list[Reader]:
    return readers.decode(_stored(tenant, capture, db))


def forget(tenant: str, capture: str, db: sqlite3.Connection) -> None:
    stored = _stored(tenant, capture, db)
    if stored is not None:
        db.execute("DELETE FROM readers WHERE tenant = ? AND id = ?", (tenant, capture))
        _count(tenant, -_charge(stored), db)


def _stored(tenant: str, capture: str, db: sqlite3.Connection) -> bytes | None:
    select = "SELECT value FROM readers WHERE tenant = ? AND id = ?"
    row = db.execute(select, (tenant, capture)).fetchone()
    return row[0] if row else None


def _charge(value: bytes | None) -> int:
    return 0 if value is None else len(value) + readers.KEY_BYTES


def _count(tenant: str, growth: int, db: sqlite3.Connection) -> None:
    if growth:
        db.execute("UPDATE totals SET readers = readers + ? WHERE tenant = ?", (growth, tenant))
