"""Leases in the SQLite file, and whether it is complete and not an older copy."""

from __future__ import annotations

import secrets
from functools import partial
from typing import TYPE_CHECKING

from overspill_service.catalog.sqlite import generations, steps
from overspill_service.catalog.sqlite.access import SqliteAccess

if TYPE_CHECKING:
    from overspill_service.catalog.records import Generation


class SqliteCoordination(SqliteAccess):
    async def lease(self, name: str, holder: str, ttl: float) -> bool:
        now = self._clock()
        return await self._writer.run(partial(steps.lease, f"lease:{name}", holder, now, now + ttl))

    async def release(self, name: str, holder: str) -> None:
        await self._write("DELETE FROM leases WHERE name = ? AND holder = ?", (f"lease:{name}", holder))

    async def is_leased(self, name: str) -> bool:
        statement = "SELECT 1 FROM leases WHERE name = ? AND until > ?"
        return bool(await self._rows(statement, (f"lease:{name}", self._clock())))

    async def once(self, name: str, ttl: float) -> bool:
        now = self._clock()
        return await self._writer.run(
            partial(steps.lease, f"once:{name}", secrets.token_hex(8), now, now + ttl)
        )

    async def tell(self, name: str, holder: str, figure: float, *, keep: float) -> float:
        now = self._clock()
        step = partial(steps.tell, name, holder, figure, now, now + keep)
        return await self._writer.run(step, is_durable=False)

    async def is_complete(self) -> bool:
        return await self._reader.run(steps.is_complete)

    async def is_rebuild_due(self) -> bool:
        return await self._reader.run(generations.is_rebuild_due)

    async def is_settled(self) -> bool:
        return await self.is_complete()

    async def begin_rebuild(self) -> str:
        return ""

    async def mark_complete(self, began: str) -> None:  # noqa: ARG002  (a file loses nothing meanwhile)
        await self._writer.run(generations.mark_complete)

    async def generation(self) -> Generation:
        return await self._reader.run(generations.generation)

    async def begin_generation(self, name: str, *, is_closed: bool) -> None:
        await self._writer.run(partial(generations.begin, name, is_closed))

    async def doubt(self, *, is_older: bool) -> None:
        await self._writer.run(partial(generations.doubt, is_older))
