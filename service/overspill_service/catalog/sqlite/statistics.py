"""Statistics in the SQLite file: one row for each sum."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from overspill_service.catalog.sqlite import entry_steps
from overspill_service.catalog.sqlite.access import SqliteAccess
from overspill_service.catalog.statistics import (
    MAX_BATCHES,
    MAX_CELLS,
    MAX_SUM,
    OTHER,
    RESOLUTIONS,
    bounded,
    bucket_start,
    of_tool,
    part_of_cell,
    room_of,
    size_of,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

    from overspill_service.catalog.statistics import Cell, Packed, Resolution

_ADD: Final = (  # a sum beyond 64 bits would become a float
    "INSERT INTO sums VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE"
    " SET amount = amount + min(excluded.amount, ? - amount)"
)
_BUCKETS: Final = (  # in two texts a bucket, because thousands of rows take Python long
    "SELECT start, json_group_array(cell), json_group_array(amount) FROM sums"
    " WHERE tenant = ? AND seconds = ? AND ? <= start AND start < ?"
)
"""No `json_group_object`: SQLite 3.53 cuts its names at a NUL, and cells have some."""
_READ: Final = f"{_BUCKETS} GROUP BY start"
_READ_TOOL: Final = f"{_BUCKETS} AND instr(cell, ?) GROUP BY start"
_CELLS: Final = msgspec.json.Decoder(list[str])
_AMOUNTS: Final = msgspec.json.Decoder(list[int])


class SqliteStatistics(SqliteAccess):
    async def add_sums(
        self, tenant: str, sums: Mapping[Cell, int], *, now: float, batch: str, memory: float
    ) -> bool:
        is_new = partial(_remember, (tenant, batch), now, now + memory)
        return await self._writer.run(lambda db: is_new(db) and _add(tenant, sums, now, db))

    async def sums(
        self, tenant: str, resolution: Resolution, *, since: float, until: float, tool: str | None = None
    ) -> dict[int, Packed]:
        span = tenant, resolution.seconds, since, until
        if tool is None:
            return await self._reader.run(partial(_read, _READ, span))
        found = await self._reader.run(partial(_read, _READ_TOOL, (*span, part_of_cell(tool))))
        own = {start: of_tool(sums, tool) for start, sums in found.items()}
        return {start: sums for start, sums in own.items() if sums}

    async def keep_rollup(self, tenant: str, name: str, rollup: bytes, *, now: float, keep: float) -> None:
        await self._writer.run(partial(_keep_rollup, (tenant, name, rollup, now + keep), now))

    async def rollup(self, tenant: str, name: str) -> bytes | None:
        rows = await self._rows("SELECT value FROM rollups WHERE tenant = ? AND name = ?", (tenant, name))
        return rows[0][0] if rows else None

    async def forget_rollups(self, tenant: str) -> None:
        await self._write("DELETE FROM rollups WHERE tenant = ?", (tenant,))


def _read(statement: str, values: tuple[object, ...], db: sqlite3.Connection) -> dict[int, Packed]:
    return {
        start: dict(zip(_CELLS.decode(cells), _AMOUNTS.decode(amounts), strict=True))
        for start, cells, amounts in db.execute(statement, values)
    }


def _keep_rollup(row: tuple[object, ...], now: float, db: sqlite3.Connection) -> None:
    """Replace a roll-up, and forget some of those whose time is over."""
    ended = "SELECT tenant, name FROM rollups WHERE until <= ? LIMIT ?"
    db.execute(f"DELETE FROM rollups WHERE (tenant, name) IN ({ended})", (now, entry_steps.MAX_PURGED))  # noqa: S608  (constants)
    db.execute("INSERT OR REPLACE INTO rollups VALUES (?, ?, ?, ?)", row)


def _remember(batch: tuple[str, str], now: float, until: float, db: sqlite3.Connection) -> bool:
    """Return whether the tenant's batch is new. The oldest ones are forgotten."""
    db.execute(
        "DELETE FROM batches WHERE (tenant, name) IN"
        " (SELECT tenant, name FROM batches WHERE until <= ? LIMIT ?)",
        (now, entry_steps.MAX_PURGED),
    )
    tenant, name = batch
    select = "SELECT coalesce(max(number), 0) + 1 FROM batches WHERE tenant = ?"
    (number,) = db.execute(select, (tenant,)).fetchone()
    insert = "INSERT OR IGNORE INTO batches VALUES (?, ?, ?, ?)"
    is_new = db.execute(insert, (tenant, name, number, until)).rowcount > 0
    if is_new:
        db.execute("DELETE FROM batches WHERE tenant = ? AND number <= ?", (tenant, number - MAX_BATCHES))
    return is_new


def _add(tenant: str, sums: Mapping[Cell, int], now: float, db: sqlite3.Connection) -> bool:
    named = [(cell.encode(), cell._replace(tool=OTHER).encode(), amount) for cell, amount in sums.items()]
    for resolution in RESOLUTIONS:
        ended = tenant, resolution.seconds, now - resolution.seconds - resolution.lifetime
        for table in ("sums", "sum_sizes"):
            db.execute(f"DELETE FROM {table} WHERE tenant = ? AND seconds = ? AND start < ?", ended)  # noqa: S608  (constants)
        bucket = _Bucket(tenant, resolution, now, db)
        for own, other, amount in named:
            bucket.add(own, other, amount)
        bucket.write(db)
    return True


class _Bucket:
    """The bucket of an instant, and what is added to it in one step."""

    def __init__(self, tenant: str, resolution: Resolution, now: float, db: sqlite3.Connection) -> None:
        self._name = tenant, resolution.seconds, bucket_start(now, resolution)
        self._room = room_of(tenant, resolution)
        select = "SELECT cell FROM sums WHERE tenant = ? AND seconds = ? AND start = ?"
        self._known = {cell for (cell,) in db.execute(select, self._name)}
        self._size = sum(map(size_of, self._known))
        others = (
            "SELECT coalesce(sum(size), 0) FROM sum_sizes WHERE tenant = ? AND seconds = ? AND start != ?"
        )
        (elsewhere,) = db.execute(others, self._name).fetchone()
        self._elsewhere = int(elsewhere)
        self._amounts: dict[str, int] = {}
        """By cells: many cells of one batch may be the same of other tools."""

    def add(self, own: str, other: str, amount: int) -> None:
        name = own if own in self._known or self._has_room(own) else other
        if name not in self._known:
            self._known.add(name)
            self._size += size_of(name)
        self._amounts[name] = bounded(self._amounts.get(name, 0) + amount)

    def _has_room(self, cell: str) -> bool:
        size = self._size + size_of(cell)
        is_small = size <= self._room.each or self._elsewhere + size <= self._room.together
        return is_small and len(self._known) < MAX_CELLS

    def write(self, db: sqlite3.Connection) -> None:
        db.executemany(_ADD, [(*self._name, name, amount, MAX_SUM) for name, amount in self._amounts.items()])
        db.execute("INSERT OR REPLACE INTO sum_sizes VALUES (?, ?, ?, ?)", (*self._name, self._size))
