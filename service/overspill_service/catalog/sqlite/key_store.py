"""API keys in the SQLite file."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from overspill_service.catalog import encoding
from overspill_service.catalog.key_records import AccessMode
from overspill_service.catalog.sqlite.access import SqliteAccess

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

    from overspill_service.catalog.key_records import KeyRecord


class SqliteKeyStore(SqliteAccess):
    async def add_key(self, key: KeyRecord) -> None:
        await self._write("INSERT OR REPLACE INTO keys VALUES (?, ?)", (key.hash, encoding.encode_key(key)))

    async def find_key(self, key_hash: str) -> KeyRecord | None:
        rows = await self._rows("SELECT record FROM keys WHERE hash = ?", (key_hash,))
        return encoding.decode_key(rows[0][0]) if rows else None

    async def keys(self) -> list[KeyRecord]:
        return encoding.decode_keys(record for (record,) in await self._rows("SELECT record FROM keys"))

    async def revoke_key(self, key_hash: str) -> bool:
        await self._write("DELETE FROM uses WHERE hash = ?", (key_hash,))
        return await self._write("DELETE FROM keys WHERE hash = ?", (key_hash,)) > 0

    async def access_mode(self) -> AccessMode | None:
        rows = await self._rows("SELECT name FROM facts WHERE name LIKE 'access:%'")
        return AccessMode.stored(rows[0][0].removeprefix("access:")) if rows else None

    async def set_access_mode(self, mode: AccessMode) -> None:
        await self._writer.run(partial(_set_access_mode, mode.value))

    async def note_uses(self, uses: Mapping[str, float]) -> None:
        await self._writer.run(partial(_note_uses, uses))

    async def uses(self) -> dict[str, float]:
        return dict(await self._rows("SELECT hash, used FROM uses"))


def _note_uses(uses: Mapping[str, float], db: sqlite3.Connection) -> None:
    db.executemany("INSERT OR REPLACE INTO uses VALUES (?, ?)", [*uses.items()])


def _set_access_mode(mode: str, db: sqlite3.Connection) -> None:
    db.execute("DELETE FROM facts WHERE name LIKE 'access:%'")
    db.execute("INSERT INTO facts VALUES (?)", (f"access:{mode}",))
