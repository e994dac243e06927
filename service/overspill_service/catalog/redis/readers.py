"""The readers of captures in Redis: one value for each capture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overspill import wire

from overspill_service.catalog import readers
from overspill_service.catalog.redis import entry_scripts, key_names
from overspill_service.catalog.redis.access import RedisAccess

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overspill_service.catalog.readers import Reader, ReadNote


class RedisReaders(RedisAccess):
    async def note_readers(self, tenant: str, notes: Sequence[ReadNote], *, max_bytes: int) -> None:
        keys = [key_names.totals(tenant)]
        words: list[str | int] = []
        for capture, upload, name, on_page, at in notes:
            keys += key_names.capture(tenant, capture), key_names.readers(tenant, capture)
            words += upload, name, int(on_page), repr(at)
        bounds = wire.MAX_READERS, readers.MAX_BYTES, readers.READER_BYTES, readers.KEY_BYTES
        await self._client.step(entry_scripts.NOTE_READERS, keys, max_bytes, *bounds, *words)

    async def readers(self, tenant: str, capture: str) -> list[Reader]:
        return readers.decode(await self._client.call("GET", key_names.readers(tenant, capture)))
