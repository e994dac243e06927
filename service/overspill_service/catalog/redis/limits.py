"""Tenants held to their limits in Redis: their registration, and what running uploads have reserved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from overspill_service.catalog.quotas import TOTALS_INCOMPLETE, Charge
from overspill_service.catalog.redis import entry_scripts, key_names
from overspill_service.catalog.redis.access import RedisAccess
from overspill_service.catalog.redis.script import UNREGISTERED, milliseconds
from overspill_service.errors import CatalogIncomplete, CatalogUnavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from overspill_service.catalog.quotas import Quota

UNKNOWN: Final = "?"
"""The name of a complete state that never exists, so that no totals are of it."""


class RedisLimits(RedisAccess):
    async def reserve(
        self,
        tenant: str,
        upload: str,
        size: int,
        stored_size: int,
        quota: Quota,
        *,
        keep: float,
        captures: int = 1,
    ) -> None:
        async def step() -> Any:
            return await self._client.step(
                entry_scripts.RESERVE,
                [key_names.totals(tenant), key_names.reserved(tenant)],
                upload,
                milliseconds(keep),
                self._complete_state(quota),
                *Charge(captures, size, stored_size, 0),
                *quota.limits,
            )

        await self._limited(tenant, quota, step)

    async def free(self, tenant: str, upload: str) -> None:
        await self._client.call("HDEL", key_names.reserved(tenant), upload)

    async def _limited(self, tenant: str, quota: Quota, step: Callable[[], Awaitable[Any]]) -> Any:
        """Return the answer of a step that holds a tenant to its limits, or raise what it refuses."""
        if tenant not in self._registered:
            await self._register(tenant, quota)
        answer = await step()
        # Redis has lost the totals since, or they are of an older complete state.
        if answer == UNREGISTERED:
            await self._register(tenant, quota)
            answer = await step()
        if answer == UNREGISTERED:
            raise CatalogUnavailable("Redis loses data while it is being written")
        if isinstance(answer, int) and answer < 0:
            raise quota.refusal(-answer - 1)
        return answer

    def _complete_state(self, quota: Quota) -> str:
        """Return the complete state that the tenant's totals must be of, empty for any."""
        return (self._completeness.state or UNKNOWN) if quota.needs_totals else ""

    async def _register(self, tenant: str, quota: Quota) -> None:
        """Register the tenant before its first entry, so that no sweep misses it.

        If its limits are exact, record that its totals are complete. Raises `CatalogIncomplete` if they are
        not.
        """
        await self._client.call("SADD", key_names.TENANTS, tenant)
        await self._client.call("HSETNX", key_names.totals(tenant), "captures", 0)
        if quota.needs_totals:
            if not await self.is_complete():
                raise CatalogIncomplete(TOTALS_INCOMPLETE)
            await self._client.call("HSET", key_names.totals(tenant), "complete", self._completeness.state)
        self._registered.add(tenant)
