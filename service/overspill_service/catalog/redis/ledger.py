"""Tenants and their totals in Redis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overspill_service.catalog import encoding
from overspill_service.catalog.quotas import Totals
from overspill_service.catalog.redis import entry_scripts, key_names
from overspill_service.catalog.redis.access import RedisAccess

if TYPE_CHECKING:
    from overspill_service.catalog.records import Entry


class RedisLedger(RedisAccess):
    async def tenants(self) -> list[str]:
        return sorted(key_names.tenants(await self._client.call("SMEMBERS", key_names.TENANTS)))

    async def forget_tenant(self, tenant: str) -> None:
        self._registered.discard(tenant)
        await self._client.call("SREM", key_names.TENANTS, tenant)
        for key in (key_names.totals(tenant), key_names.reserved(tenant), key_names.tombstones(tenant)):
            await self._client.call("DEL", key)
        await self._client.call("DEL", key_names.rollups(tenant))
        await self._client.delete_matching(key_names.statistics(tenant, "*", "*"))

    async def totals(self, tenant: str) -> Totals:
        keys = [key_names.totals(tenant), key_names.created(tenant)]
        is_whole, *sums = await self._client.step(entry_scripts.TOTALS, keys)
        if not is_whole:
            raise encoding.damaged_record("account of a tenant's totals")
        captures, size, stored_size, metadata, *oldest = sums
        when = encoding.instant_of(oldest[0]) if oldest else None
        return Totals(int(captures), int(size), int(stored_size), int(metadata), when)

    async def recount(self, tenant: str) -> None:
        sums = await self._pages.charge(tenant)
        await self._client.step(entry_scripts.RECOUNT, [key_names.totals(tenant)], *sums)

    async def expired(self, tenant: str, *, now: float, limit: int) -> list[Entry]:
        return await self._pages.expired(tenant, now=now, limit=limit)
