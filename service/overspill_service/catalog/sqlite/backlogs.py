"""Backlogs in the SQLite file: one row for each spool."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from overspill_service.catalog.backlogs import MAX_SPOOLS, Backlog, added_up
from overspill_service.catalog.sqlite.access import SqliteAccess

if TYPE_CHECKING:
    import sqlite3


class SqliteBacklogs(SqliteAccess):
    async def note_backlog(
        self, tenant: str, spool: str, backlog: Backlog, *, now: float, keep: float
    ) -> None:
        row = (tenant, spool, *backlog, now + keep)
        await self._writer.run(partial(_note, row, now) if backlog.captures else partial(_forget, row[:2]))

    async def backlogs(self, now: float) -> dict[str, Backlog]:
        rows = await self._rows("SELECT tenant, captures, size, oldest FROM backlogs WHERE until > ?", (now,))
        return added_up((tenant, Backlog(*each)) for tenant, *each in rows)


def _note(row: tuple[object, ...], now: float, db: sqlite3.Connection) -> None:
    db.execute("DELETE FROM backlogs WHERE until <= ?", (now,))
    others = "SELECT count(*) FROM backlogs WHERE tenant = ? AND spool <> ?"
    (count,) = db.execute(others, row[:2]).fetchone()
    if count < MAX_SPOOLS:
        db.execute("INSERT OR REPLACE INTO backlogs VALUES (?, ?, ?, ?, ?, ?)", row)


def _forget(spool: tuple[object, ...], db: sqlite3.Connection) -> None:
    db.execute("DELETE FROM backlogs WHERE tenant = ? AND spool = ?", spool)
