"""Statistics in the SQLite file: one row for each sum."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from overspill_service.catalog.sqlite import steps
from overspill_service.catalog.sqlite.access import SqliteAccess
from overspill_service.catalog.statistics import (
    MAX_BATCHES,
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
_READ: Final = (  # in one text a bucket, because thousands of rows take Python long
    "SELECT start, json_group_object(cell, amount) FROM sums"
    " WHERE tenant = ? AND seconds = ? AND ? <= start AND start < ? GROUP BY start"
)
_PACKED: Final = msgspec.json.Decoder(dict[str, int])


class SqliteStatistics(SqliteAccess):
    async def add_sums(
        self, tenant: str, sums: Mapping[Cell, int], *, now: float, batch: str, memory: float
    ) -> bool:
        is_new = partial(_remember, (tenant, batch), now, now + memory)
        return await self._writer.run(lambda db: is_new(db) and _add(tenant, sums, now, db))

    async def sums(
        self, tenant: str, resolution: Resolution, *, since: float, until: float
    ) -> dict[int, Sums]:
        return await self._reader.run(partial(_read, (tenant, resolution.seconds, since, until)))


def _read(values: tuple[object, ...], db: sqlite3.Connection) -> dict[int, Sums]:
    found = {}
    for start, packed in db.execute(_READ, values):
        sums = _PACKED.decode(packed)
        found[start] = dict(zip(map(Cell.decode, sums), sums.values(), strict=True))
    return found


def _remember(batch: tuple[str, str], now: float, until: float, db: sqlite3.Connection) -> bool:
    """Return whether the tenant's batch is new. The oldest ones are forgotten."""
    db.execute(
        "DELETE FROM batches WHERE (tenant, name) IN"
        " (SELECT tenant, name FROM batches WHERE until <= ? LIMIT ?)",
        (now, steps.MAX_PURGED),
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
        bucket = tenant, resolution.seconds, bucket_start(now, resolution)
        select = "SELECT cell FROM sums WHERE tenant = ? AND seconds = ? AND start = ?"
        known = {cell for (cell,) in db.execute(select, bucket)}
        amounts: dict[str, int] = {}  # many cells of one batch may be the same of other tools
        for own, other, amount in named:
            name = own if own in known or len(known) < MAX_CELLS else other
            known.add(name)
            amounts[name] = bounded(amounts.get(name, 0) + amount)
        db.executemany(_ADD, [(*bucket, name, amount, MAX_SUM) for name, amount in amounts.items()])
        db.execute(
            "DELETE FROM sums WHERE tenant = ? AND seconds = ? AND start < ?",
            (tenant, resolution.seconds, now - resolution.seconds - resolution.kept),
        )
    return True
