"""Tenants and their totals in the SQLite file."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from overspill_service.catalog.quotas import Totals
from overspill_service.catalog.sqlite import listings
from overspill_service.catalog.sqlite.access import SqliteAccess

if TYPE_CHECKING:
    from overspill_service.catalog.records import Entry


class SqliteLedger(SqliteAccess):
    async def tenants(self) -> list[str]:
        return [name for (name,) in await self._rows("SELECT tenant FROM totals ORDER BY tenant")]

    async def forget_tenant(self, tenant: str) -> None:
        for table in (
            "captures",
            "readers",
            "totals",
            "sums",
            "sum_sizes",
            "rollups",
            "batches",
            "reservations",
        ):
            await self._write(f"DELETE FROM {table} WHERE tenant = ?", (tenant,))  # noqa: S608  (a constant)

    async def totals(self, tenant: str) -> Totals:
        statement = (
            "SELECT captures, size, stored_size, metadata, (SELECT min(created) FROM captures"
            " WHERE tenant = :tenant AND created IS NOT NULL) FROM totals WHERE tenant = :tenant"
        )
        rows = await self._rows(statement, {"tenant": tenant})
        return Totals(*rows[0]) if rows else Totals()

    async def recount(self, tenant: str) -> None:
        """Do nothing: a table of numbers holds nothing else."""

    async def expired(self, tenant: str, *, now: float, limit: int) -> list[Entry]:
        return await self._reader.run(partial(listings.expired, self._damaged, tenant, now, limit))
