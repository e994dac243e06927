"""Leases in the SQLite file, and whether it is complete and not an older copy.

Rows of `facts`:

    complete                    a rebuild has ended
    unverified                  a rebuild should run, though nothing is known to be missing
    generation:NAME:open        the generation; entries may have been recorded since it began
    generation:NAME:closed      the generation; its last process has stopped
"""

from __future__ import annotations

import secrets
from functools import partial
from typing import TYPE_CHECKING, Final

from overspill_service.catalog.records import Generation
from overspill_service.catalog.sqlite import entry_steps
from overspill_service.catalog.sqlite.access import SqliteAccess

if TYPE_CHECKING:
    import sqlite3

CLOCK_TOLERANCE_SECONDS: Final = 60.0
"""A figure that ends later than its lifetime and this many seconds was told by a clock that is ahead."""
LEASE_TOLERANCE_SECONDS: Final = 600.0
"""The same for a lease, which is free then. Holders of one lease may ask for lifetimes that differ: for one
live capture, by five minutes.
"""
_GENERATIONS: Final = "generation:%"


class SqliteCoordination(SqliteAccess):
    async def lease(self, name: str, holder: str, ttl: float) -> bool:
        now = self._clock()
        return await self._writer.run(partial(_lease, f"lease:{name}", holder, now, now + ttl))

    async def release(self, name: str, holder: str) -> None:
        await self._write("DELETE FROM leases WHERE name = ? AND holder = ?", (f"lease:{name}", holder))

    async def is_leased(self, name: str) -> bool:
        statement = "SELECT 1 FROM leases WHERE name = ? AND until > ?"
        return bool(await self._rows(statement, (f"lease:{name}", self._clock())))

    async def once(self, name: str, ttl: float) -> bool:
        now = self._clock()
        return await self._writer.run(partial(_lease, f"once:{name}", secrets.token_hex(8), now, now + ttl))

    async def tell(self, name: str, holder: str, figure: float, *, keep: float) -> float:
        now = self._clock()
        step = partial(_tell, name, holder, figure, now, now + keep)
        return await self._writer.run(step, is_durable=False)

    async def is_complete(self) -> bool:
        return await self._reader.run(entry_steps.is_complete)

    async def is_rebuild_due(self) -> bool:
        return await self._reader.run(_is_rebuild_due)

    async def is_settled(self) -> bool:
        return await self.is_complete()

    async def begin_rebuild(self) -> str:
        return ""

    async def mark_complete(self, began: str) -> None:  # noqa: ARG002  (a file loses nothing meanwhile)
        await self._writer.run(_mark_complete)

    async def generation(self) -> Generation:
        return await self._reader.run(_generation)

    async def begin_generation(self, name: str, *, is_closed: bool) -> None:
        await self._writer.run(partial(_begin, name, is_closed))

    async def doubt(self, *, is_older: bool) -> None:
        await self._writer.run(partial(_doubt, is_older))


def _lease(name: str, holder: str, now: float, until: float, db: sqlite3.Connection) -> bool:
    lapsed = "SELECT name FROM leases WHERE until <= ? LIMIT ?"
    db.execute(f"DELETE FROM leases WHERE name IN ({lapsed})", (now, entry_steps.MAX_PURGED))  # noqa: S608  (a constant)
    cursor = db.execute(
        "INSERT INTO leases VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET holder = excluded.holder,"
        " until = excluded.until WHERE leases.holder = excluded.holder OR leases.until <= ?"
        " OR leases.until > ?",
        (name, holder, until, now, until + LEASE_TOLERANCE_SECONDS),
    )
    return cursor.rowcount > 0


def _tell(name: str, holder: str, figure: float, now: float, until: float, db: sqlite3.Connection) -> float:
    lapsed = "SELECT name, holder FROM figures WHERE until <= ? LIMIT ?"
    db.execute(f"DELETE FROM figures WHERE (name, holder) IN ({lapsed})", (now, entry_steps.MAX_PURGED))  # noqa: S608  (a constant)
    db.execute("INSERT OR REPLACE INTO figures VALUES (?, ?, ?, ?)", (name, holder, figure, until))
    others = "SELECT total(figure) FROM figures WHERE name = ? AND holder != ? AND until > ? AND until <= ?"
    (found,) = db.execute(others, (name, holder, now, until + CLOCK_TOLERANCE_SECONDS)).fetchone()
    return float(found)


def _is_rebuild_due(db: sqlite3.Connection) -> bool:
    known = {
        name for (name,) in db.execute("SELECT name FROM facts WHERE name IN ('complete', 'unverified')")
    }
    return known != {"complete"}


def _mark_complete(db: sqlite3.Connection) -> None:
    db.execute("INSERT OR IGNORE INTO facts VALUES ('complete')")
    db.execute("DELETE FROM facts WHERE name = 'unverified'")


def _doubt(is_older: bool, db: sqlite3.Connection) -> None:  # noqa: FBT001  (one of a step's parameters)
    db.execute("INSERT OR IGNORE INTO facts VALUES ('unverified')")
    if is_older:
        db.execute("DELETE FROM facts WHERE name = 'complete'")


def _generation(db: sqlite3.Connection) -> Generation:
    row = db.execute("SELECT name FROM facts WHERE name LIKE ?", (_GENERATIONS,)).fetchone()
    _, name, end = row[0].split(":") if row else ("", "", "")
    newest, captures = db.execute(
        "SELECT (SELECT max(rowid) FROM captures), (SELECT sum(captures) FROM totals)"
    ).fetchone()
    return Generation(name=name, is_closed=end == "closed", state=f"{newest} {captures}")


def _begin(name: str, is_closed: bool, db: sqlite3.Connection) -> None:  # noqa: FBT001  (as above)
    db.execute("DELETE FROM facts WHERE name LIKE ?", (_GENERATIONS,))
    db.execute("INSERT INTO facts VALUES (?)", (f"generation:{name}:{'closed' if is_closed else 'open'}",))
