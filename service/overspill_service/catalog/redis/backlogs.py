"""Backlogs in Redis: one hash for each tenant, whose lapsed fields are removed when it is read."""

from __future__ import annotations

from functools import partial

from overspill_service.catalog.backlogs import MAX_SPOOLS, Backlog, added_up
from overspill_service.catalog.redis import key_names
from overspill_service.catalog.redis.access import RedisAccess
from overspill_service.resources.tasks import in_batches


class RedisBacklogs(RedisAccess):
    async def note_backlog(
        self, tenant: str, spool: str, backlog: Backlog, *, now: float, keep: float
    ) -> None:
        key = key_names.backlogs(tenant)
        if not backlog.captures:
            await self._client.call("HDEL", key, spool)
        elif await self._client.call("HLEN", key) < MAX_SPOOLS or await self._client.call(
            "HEXISTS", key, spool
        ):
            await self._client.call("SADD", key_names.BACKLOGS, tenant)
            value = f"{backlog.captures} {backlog.size} {backlog.oldest!r} {now + keep!r}"
            await self._client.call("HSET", key, spool, value)

    async def backlogs(self, now: float) -> dict[str, Backlog]:
        tenants = key_names.tenants(await self._client.call("SMEMBERS", key_names.BACKLOGS))
        found = await in_batches(partial(self._of_tenant, now), tenants)
        return added_up(
            (tenant, each) for tenant, backlogs in zip(tenants, found, strict=True) for each in backlogs
        )

    async def _of_tenant(self, now: float, tenant: str) -> list[Backlog]:
        """Return what waits in each spool of a tenant. A tenant without any is forgotten until a report."""
        key = key_names.backlogs(tenant)
        backlogs: list[Backlog] = []
        lapsed: list[bytes] = []
        for spool, value in (await self._client.hash(key)).items():
            backlog = _unlapsed(value, now)
            if backlog is None:
                lapsed.append(spool)
            else:
                backlogs.append(backlog)
        if lapsed:
            await self._client.call("HDEL", key, *lapsed)
        if not backlogs:
            await self._client.call("SREM", key_names.BACKLOGS, tenant)
        return backlogs


def _unlapsed(value: bytes, now: float) -> Backlog | None:
    """Return what a spool reported. None if that has lapsed, or is damaged: then its next report counts."""
    try:
        captures, size, oldest, until = value.split()
        backlog = Backlog(int(captures), int(size), float(oldest))
        return backlog if float(until) > now else None
    except ValueError:
        return None
