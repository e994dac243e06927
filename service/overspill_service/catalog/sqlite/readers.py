"""The readers of captures in the SQLite file: one row for each capture."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from overspill_service.catalog import readers
from overspill_service.catalog.sqlite.access import SqliteAccess

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from overspill_service.catalog.readers import Reader, ReadNote

_IS_STORED: Final = (  # an entry names its upload
    "SELECT 1 FROM captures WHERE tenant = ? AND id = ? AND created IS NOT NULL AND instr(value, ?)"
)


class SqliteReaders(SqliteAccess):
    async def note_readers(self, tenant: str, notes: Sequence[ReadNote], *, max_bytes: int) -> None:
        await self._writer.run(partial(_note, tenant, notes, max_bytes), is_durable=False)

    async def readers(self, tenant: str, capture: str) -> list[Reader]:
        return await self._points.run(lambda db: readers.decode(_stored(tenant, capture, db)))


def _note(tenant: str, notes: Sequence[ReadNote], max_bytes: int, db: sqlite3.Connection) -> None:
    (before,) = db.execute("SELECT max(readers) FROM totals WHERE tenant = ?", (tenant,)).fetchone()
    used = before = before or 0
    for each in notes:
        name = tenant, each.capture
        if db.execute(_IS_STORED, (*name, each.upload.encode())).fetchone() is None:
            continue
        stored = _stored(*name, db)
        value = readers.encode(readers.noted(readers.decode(stored), each))
        growth = _charge(value) - _charge(stored)
        if growth <= 0 or not max_bytes or used + growth <= max_bytes:
            db.execute("INSERT OR REPLACE INTO readers VALUES (?, ?, ?)", (*name, value))
            used += growth
    _count(tenant, used - before, db)


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
