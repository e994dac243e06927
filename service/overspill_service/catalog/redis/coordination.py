"""Leases in Redis, and whether it still holds what a rebuild put there."""

from __future__ import annotations

import secrets

from overspill_service.catalog.redis import coordination_scripts, key_names
from overspill_service.catalog.redis.access import RedisAccess
from overspill_service.catalog.redis.script import milliseconds


class RedisCoordination(RedisAccess):
    async def lease(self, name: str, holder: str, ttl: float) -> bool:
        return await self._hold(key_names.lease(name), holder, ttl)

    async def release(self, name: str, holder: str) -> None:
        await self._client.step(coordination_scripts.RELEASE, [key_names.lease(name)], holder)

    async def is_leased(self, name: str) -> bool:
        return bool(await self._client.call("EXISTS", key_names.lease(name)))

    async def once(self, name: str, ttl: float) -> bool:
        return await self._hold(key_names.once(name), secrets.token_hex(8), ttl)

    async def tell(self, name: str, holder: str, figure: float, *, keep: float) -> float:
        report = holder, repr(figure), milliseconds(keep)
        return float(await self._client.step(coordination_scripts.TELL, [key_names.figures(name)], *report))

    async def _hold(self, key: str, holder: str, ttl: float) -> bool:
        return bool(await self._client.step(coordination_scripts.LEASE, [key], holder, milliseconds(ttl)))

    async def is_rebuild_due(self) -> bool:
        return not await self.is_complete() or await self._completeness.is_rebuild_due()

    async def is_settled(self) -> bool:
        return await self._completeness.is_settled()

    async def begin_rebuild(self) -> str:
        return await self._completeness.begin()

    async def mark_complete(self, began: str) -> None:
        await self._completeness.finish(began)

    async def generation(self) -> None:
        """Return None: the mark names the servers, which differ after every restart."""

    async def begin_generation(self, name: str, *, is_closed: bool) -> None:
        """Do nothing: there are no generations."""

    async def doubt(self, *, is_older: bool) -> None:  # noqa: ARG002  (a doubt makes the mark void)
        await self._completeness.doubt()
