"""Statistics in the SQLite file: one row for each sum."""

from __future__ import annotations

import secrets
from functools import partial
from typing import TYPE_CHECKING, Final

from overspill_service.catalog.sqlite import steps
from overspill_service.catalog.sqlite.access import SqliteAccess
from overspill_service.catalog.statistics import (
    MAX_CELLS,
    MAX_SUM,
    OTHER,
    RESOLUTIONS,
    Cell,
    bounded,
    bucket_start,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

    from overspill_service.catalog.statistics import Resolution, Sums

_ADD: Final = (  # a sum beyond 64 bits would become a float
    "INSERT INTO sums VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE"
    " SET amount = amount + min(excluded.amount, ? - amount)"
)


class SqliteStatistics(SqliteAccess):
    async def add_sums(
        self, tenant: str, sums: Mapping[Cell, int], *, now: float, batch: str, memory: float
    ) -> bool:
        clock = self._clock()
        once = partial(steps.lease, f"sums:{tenant}:{batch}", secrets.token_hex(8), clock, clock + memory)
        return await self._writer.run(lambda db: once(db) and _add(tenant, sums, now, db))

    async def sums(
        self, tenant: str, resolution: Resolution, *, since: float, until: float
    ) -> dict[int, Sums]:
        return await self._reader.run(partial(_read, (tenant, resolution.seconds, since, until)))


def _read(values: tuple[object, ...], db: sqlite3.Connection) -> dict[int, Sums]:
    found: dict[int, Sums] = {}
    for start, cell, amount in db.execute(
        "SELECT start, cell, amount FROM sums WHERE tenant = ? AND seconds = ? AND ? <= start AND start < ?",
        values,
    ):
        found.setdefault(start, {})[Cell.decode(cell)] = amount
    return found


def _add(tenant: str, sums: Mapping[Cell, int], now: float, db: sqlite3.Connection) -> bool:
    for resolution in RESOLUTIONS:
        bucket = tenant, resolution.seconds, bucket_start(now, resolution)
        select = "SELECT cell FROM sums WHERE tenant = ? AND seconds = ? AND start = ?"
        known = {cell for (cell,) in db.execute(select, bucket)}
        for cell, amount in sums.items():
            name = cell.encode()
            if name not in known and len(known) >= MAX_CELLS:
                name = cell._replace(tool=OTHER).encode()
            known.add(name)
            db.execute(_ADD, (*bucket, name, bounded(amount), MAX_SUM))
        db.execute(
            "DELETE FROM sums WHERE tenant = ? AND seconds = ? AND start < ?",
            (tenant, resolution.seconds, now - resolution.seconds - resolution.kept),
        )
    return True
