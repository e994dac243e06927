"""Who has read captures, in the SQLite file: one row for each capture."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from overspill_service.catalog.sqlite import reader_steps
from overspill_service.catalog.sqlite.access import SqliteAccess

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overspill_service.catalog.readers import Reader, ReadNote


class SqliteReaders(SqliteAccess):
    async def note_readers(self, tenant: str, notes: Sequence[ReadNote], *, most: int) -> None:
        await self._writer.run(partial(reader_steps.note, tenant, notes, most), is_durable=False)

    async def readers(self, tenant: str, capture: str) -> list[Reader]:
        return await self._points.run(partial(reader_steps.read, tenant, capture))
