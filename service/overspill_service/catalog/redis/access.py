"""The base of all parts of the Redis catalog: the link, and the state of the server as far as it is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from overspill_service.catalog import encoding
from overspill_service.catalog.redis import coordination_scripts, key_names, server_settings
from overspill_service.catalog.redis.completeness import EVICTED, Completeness
from overspill_service.catalog.redis.pages import Pages
from overspill_service.errors import CatalogRefuses

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from overspill_service.catalog.records import Entry
    from overspill_service.catalog.redis.client import RedisClient


class RedisAccess:
    def __init__(self, client: RedisClient) -> None:
        self._client = client
        self._completeness = Completeness(client)
        self._pages = Pages(client)
        self._registered: set[str] = set()
        """Tenants that are registered in Redis, so that it keeps their totals."""
        self._eviction: str | None = None
        """Why commits are refused. Empty if they are not, None before Redis was asked."""

    async def is_complete(self) -> bool:
        """Also return False after a restart, a promotion or a split: then writes may be lost."""
        if await self._completeness.is_complete():
            return True
        self._registered.clear()
        return False

    async def now(self) -> float:
        seconds, microseconds = await self._client.step(coordination_scripts.NOW, [key_names.COMPLETE])
        return int(seconds) + int(microseconds) / 1e6

    async def ping(self) -> None:
        await self._client.call("DEL", key_names.PING)  # a write that changes nothing, and needs no memory
        previous, self._eviction = self._eviction, server_settings.eviction(await self._client.info("memory"))
        if self._eviction:
            if not previous:  # only a rebuild finds what was evicted meanwhile
                await self._completeness.doubt(EVICTED)
            raise CatalogRefuses(self._eviction)
        if previous:
            await self._completeness.note_end_of_eviction()

    async def warnings(self) -> list[str]:
        return await server_settings.warnings(self._client)

    async def _compared(self, stored: Entry, step: Callable[[bytes], Awaitable[Any]]) -> Any:
        """Return the answer of a step that compares the stored value with that of `stored`.

        A version of the service with other fields has other bytes for an equal entry: compare with those.
        """
        value = encoding.encode_entry(stored)
        answer = await step(value)
        if isinstance(answer, bytes) and answer != value and encoding.decode(answer) == stored:
            answer = await step(answer)
        return answer

    async def _require_no_eviction(self) -> None:
        """Raise `CatalogRefuses` if the last `ping` found that entries may be evicted."""
        if self._eviction is None:
            await self.ping()
        if self._eviction:
            raise CatalogRefuses(self._eviction)

    async def close(self) -> None:
        await self._client.close()
