"""The catalog on Redis: shared by every replica of the service, fast, and never trusted to last.

Needs Redis 6.2 or Valkey, no modules, and a `maxmemory-policy` that does not evict (`ping` says so).
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from overspill_service.catalog import (
    UNCOUNTED,
    Entry,
    Tombstone,
    Totals,
    records,
)
from overspill_service.catalog.redis import key_names, scripts, server_settings
from overspill_service.catalog.redis.completeness import EVICTED, Completeness
from overspill_service.catalog.redis.pages import Pages, position_of
from overspill_service.errors import CatalogIncomplete, CatalogRefuses, CatalogUnavailable, QuotaExceeded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from overspill_service.catalog import KeyRecord, Query, Quota
    from overspill_service.catalog.redis.link import Link

UNKNOWN: Final = "?"
"""A complete state that no totals were ever counted in."""


class RedisCatalog:
    def __init__(self, link: Link) -> None:
        self._link = link
        self._completeness = Completeness(link)
        self._registered: set[str] = set()
        self._pages = Pages(link)
        self._eviction: str | None = None
        """Why commits are refused; empty where they are not, None until Redis was asked."""

    # --- entries ----------------------------------------------------------------------------------

    async def commit(self, entry: Entry, quota: Quota) -> Entry | Tombstone:
        await self._require_no_eviction()
        if entry.tenant not in self._registered:
            await self._register(entry.tenant, quota)
        answer = await self._commit(entry, quota)
        if answer == scripts.UNREGISTERED:  # Redis has lost it since, or limits are held to it anew
            await self._register(entry.tenant, quota)
            answer = await self._commit(entry, quota)
        if answer == scripts.DONE:
            self._completeness.note_write()
            return entry
        if answer == scripts.TOO_MANY:
            raise QuotaExceeded("captures", quota.captures)
        if answer == scripts.TOO_LARGE:
            raise QuotaExceeded("stored bytes", quota.stored_size)
        if answer == scripts.UNREGISTERED:
            raise CatalogUnavailable("Redis loses data while it is being written")
        return records.decode(answer)

    async def _commit(self, entry: Entry, quota: Quota) -> Any:
        return await self._link.step(
            scripts.COMMIT,
            key_names.of_entry(entry),
            records.encode_entry(entry),
            records.position(entry.created, entry.id),
            entry.id,
            repr(entry.expires),
            entry.size,
            entry.stored_size,
            quota.stored_size,
            quota.captures,
            entry.upload,
            (self._completeness.state or UNKNOWN) if quota.is_limited else "",
        )

    async def _register(self, tenant: str, quota: Quota) -> None:
        """Make the tenant known before its first entry, so that no sweep overlooks it.

        Where there are limits, note that its totals are complete. Raises `CatalogIncomplete` if they are not.
        """
        await self._link.call("SADD", key_names.TENANTS, tenant)
        await self._link.call("HSETNX", key_names.totals(tenant), "captures", 0)
        if quota.is_limited:
            if not await self.is_complete():
                raise CatalogIncomplete(UNCOUNTED)
            await self._link.call("HSET", key_names.totals(tenant), "complete", self._completeness.state)
        self._registered.add(tenant)

    async def get(self, tenant: str, capture: str) -> Entry | Tombstone | None:
        value = await self._link.call("GET", key_names.capture(tenant, capture))
        return None if value is None else records.decode(value)

    async def restore(self, entry: Entry) -> bool:
        value = await self._link.call("GET", key_names.capture(entry.tenant, entry.id))
        if value is None or not records.is_damaged(value):
            return False
        answer = await self._link.step(
            scripts.RESTORE,
            key_names.of_entry(entry),
            value,
            records.encode_entry(entry),
            records.position(entry.created, entry.id),
            entry.id,
            repr(entry.expires),
        )
        return bool(answer == scripts.DONE)

    def damaged(self) -> list[tuple[str, str]]:
        return self._pages.damaged.take()

    async def find(
        self, tenant: str, query: Query, *, now: float, limit: int, cursor: str | None = None
    ) -> tuple[list[Entry], str | None]:
        return await self._pages.find(tenant, query, now=now, limit=limit, cursor=cursor)

    async def expired(self, tenant: str, *, now: float, limit: int) -> list[Entry]:
        return await self._pages.expired(tenant, now=now, limit=limit)

    async def amend(self, entry: Entry, *, expires: float, marker: str | None) -> Entry | None:
        stored: Entry | None = entry
        keys = key_names.of_entry(entry)[:2]
        while stored is not None and stored.marker == entry.marker:
            changed = replace(stored, expires=expires, marker=marker)
            values = records.encode_entry(stored), records.encode_entry(changed)
            answer = await self._link.step(scripts.AMEND, keys, *values, entry.id, repr(expires))
            if answer == scripts.DONE:
                self._completeness.note_write()
                return changed
            stored = _same_upload(entry, answer)
        return stored

    async def remove(self, entry: Entry, tombstone: Tombstone, *, keep: float) -> bool:
        grave = records.encode_tombstone(tombstone, secrets.token_bytes(records.NONCE))
        stored: Entry | None = entry
        value = records.encode_entry(entry)
        while stored is not None:
            value = await self._link.step(
                scripts.REMOVE,
                key_names.of_entry(stored),
                value,
                position_of(stored),
                stored.id,
                grave,
                _milliseconds(keep),
                -stored.size,
                -stored.stored_size,
            )
            if value == scripts.DONE:
                self._completeness.note_write()
                return True
            stored = _same_upload(entry, value)
            if stored is not None and not tombstone.may_replace(stored):
                return False
        return False

    # --- ledger -----------------------------------------------------------------------------------

    async def tenants(self) -> list[str]:
        return sorted(name.decode() for name in await self._link.call("SMEMBERS", key_names.TENANTS))

    async def forget_tenant(self, tenant: str) -> None:
        self._registered.discard(tenant)
        await self._link.call("SREM", key_names.TENANTS, tenant)
        await self._link.call("DEL", key_names.totals(tenant))

    async def totals(self, tenant: str) -> Totals:
        keys = [key_names.totals(tenant), key_names.created(tenant)]
        captures, size, stored_size, *oldest = await self._link.step(scripts.TOTALS, keys)
        when = records.instant_of(oldest[0]) if oldest else None
        return Totals(int(captures), int(size), int(stored_size), when)

    # --- coordination -----------------------------------------------------------------------------

    async def lease(self, name: str, holder: str, ttl: float) -> bool:
        return await self._hold(key_names.lease(name), holder, ttl)

    async def release(self, name: str, holder: str) -> None:
        await self._link.step(scripts.RELEASE, [key_names.lease(name)], holder)

    async def once(self, name: str, ttl: float) -> bool:
        return await self._hold(key_names.once(name), secrets.token_hex(8), ttl)

    async def _hold(self, key: str, holder: str, ttl: float) -> bool:
        return bool(await self._link.step(scripts.LEASE, [key], holder, _milliseconds(ttl)))

    async def is_complete(self) -> bool:
        """Also false once a server was restarted or promoted, or a split ended: writes may be lost."""
        if await self._completeness.is_complete():
            return True
        self._registered.clear()
        return False

    async def is_rebuild_due(self) -> bool:
        return not await self.is_complete() or await self._completeness.is_rebuild_due()

    async def is_settled(self) -> bool:
        return await self._completeness.is_settled()

    async def begin_rebuild(self) -> str:
        return await self._completeness.begin()

    async def mark_complete(self, began: str) -> None:
        await self._completeness.finish(began)

    async def generation(self) -> None:
        """Nothing: the mark of the last rebuild names the servers, which differ after every restart."""

    async def begin_generation(self, name: str, *, is_closed: bool) -> None:
        """Do nothing, as above."""

    async def doubt(self, *, is_older: bool) -> None:  # noqa: ARG002  (a doubt makes the mark void)
        await self._completeness.doubt()

    # --- keys -------------------------------------------------------------------------------------

    async def add_key(self, key: KeyRecord) -> None:
        await self._link.call("HSET", key_names.KEYS, key.hash, records.encode_key(key))

    async def find_key(self, key_hash: str) -> KeyRecord | None:
        value = await self._link.call("HGET", key_names.KEYS, key_hash)
        return None if value is None else records.decode_key(value)

    async def keys(self) -> list[KeyRecord]:
        keys = [records.decode_key(value) for value in await self._link.call("HVALS", key_names.KEYS)]
        return sorted(keys, key=lambda key: (key.created, key.hash))

    async def revoke_key(self, key_hash: str) -> bool:
        await self._link.call("HDEL", key_names.USES, key_hash)
        return bool(await self._link.call("HDEL", key_names.KEYS, key_hash))

    async def note_uses(self, uses: Mapping[str, float]) -> None:
        words = [word for key_hash, at in uses.items() for word in (key_hash, f"{key_hash} {at!r}")]
        if words:
            await self._link.call("HSET", key_names.USES, *words)

    async def uses(self) -> dict[str, float]:
        told = [value.decode().split() for value in await self._link.call("HVALS", key_names.USES)]
        return {key_hash: float(at) for key_hash, at in told}

    # --- service ----------------------------------------------------------------------------------

    async def now(self) -> float:
        seconds, microseconds = await self._link.step(scripts.NOW, [key_names.COMPLETE])
        return int(seconds) + int(microseconds) / 1e6

    async def ping(self) -> None:
        await self._link.call("SET", key_names.PING, 1, "PX", key_names.PING_LIFE)
        known, self._eviction = self._eviction, server_settings.eviction(await self._link.info("memory"))
        if self._eviction:
            if not known:  # what was evicted meanwhile is only found by a rebuild
                await self._completeness.doubt(EVICTED)
            raise CatalogRefuses(self._eviction)

    async def warnings(self) -> list[str]:
        return await server_settings.warnings(self._link)

    async def _require_no_eviction(self) -> None:
        """Raise `CatalogRefuses` where entries may be evicted, as the last `ping` found."""
        if self._eviction is None:
            await self.ping()
        if self._eviction:
            raise CatalogRefuses(self._eviction)

    async def close(self) -> None:
        await self._link.close()


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))


def _same_upload(entry: Entry, value: bytes | None) -> Entry | None:
    """What is stored, where it is still this upload; its expiry may have changed."""
    stored = None if value is None else records.decode(value)
    return stored if isinstance(stored, Entry) and stored.upload == entry.upload else None
