"""Backlogs in Redis: one hash for all tenants, whose lapsed fields are removed when it is read."""

from __future__ import annotations

from overspill_service.catalog.backlogs import MAX_SPOOLS, Backlog, added_up
from overspill_service.catalog.redis import key_names
from overspill_service.catalog.redis.access import RedisAccess

_SEPARATOR = "\0"


class RedisBacklogs(RedisAccess):
    async def note_backlog(
        self, tenant: str, spool: str, backlog: Backlog, *, now: float, keep: float
    ) -> None:
        field = f"{tenant}{_SEPARATOR}{spool}"
        if not backlog.captures:
            await self._client.call("HDEL", key_names.BACKLOGS, field)
        elif await self._client.call("HLEN", key_names.BACKLOGS) < MAX_SPOOLS:
            value = f"{backlog.captures} {backlog.size} {backlog.oldest!r} {now + keep!r}"
            await self._client.call("HSET", key_names.BACKLOGS, field, value)

    async def backlogs(self, now: float) -> dict[str, Backlog]:
        found = await self._client.call("HGETALL", key_names.BACKLOGS)
        kept: list[tuple[str, Backlog]] = []
        lapsed: list[bytes] = []
        for field, value in found.items():
            captures, size, oldest, until = value.decode().split()
            if float(until) <= now:
                lapsed.append(field)
            else:
                tenant = field.decode().rpartition(_SEPARATOR)[0]
                kept.append((tenant, Backlog(int(captures), int(size), float(oldest))))
        if lapsed:
            await self._client.call("HDEL", key_names.BACKLOGS, *lapsed)
        return added_up(kept)
