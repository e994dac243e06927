"""The entries of captures in Redis."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from overspill_service.catalog import encoding
from overspill_service.catalog.records import TOTALS_INCOMPLETE, Entry, Tombstone
from overspill_service.catalog.redis import key_names, scripts
from overspill_service.catalog.redis.access import RedisAccess
from overspill_service.catalog.redis.pages import position_of
from overspill_service.catalog.redis.scripts import milliseconds
from overspill_service.errors import CatalogIncomplete, CatalogUnavailable, QuotaExceeded

if TYPE_CHECKING:
    from overspill_service.catalog.records import Query, Quota

UNKNOWN: Final = "?"
"""The name of a complete state that never exists, so that no totals are of it."""


class RedisEntries(RedisAccess):
    async def commit(self, entry: Entry, quota: Quota) -> Entry | Tombstone:
        await self._require_no_eviction()
        if entry.tenant not in self._registered:
            await self._register(entry.tenant, quota)
        answer = await self._commit(entry, quota)
        # Redis has lost the totals since, or they are of an older complete state.
        if answer == scripts.UNREGISTERED:
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
        return encoding.decode(answer)

    async def _commit(self, entry: Entry, quota: Quota) -> Any:
        return await self._client.step(
            scripts.COMMIT,
            key_names.of_entry(entry),
            encoding.encode_entry(entry),
            encoding.position(entry.created, entry.id),
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
        """Register the tenant before its first entry, so that no sweep misses it.

        If there are limits, record that its totals are complete. Raises `CatalogIncomplete` if they are not.
        """
        await self._client.call("SADD", key_names.TENANTS, tenant)
        await self._client.call("HSETNX", key_names.totals(tenant), "captures", 0)
        if quota.is_limited:
            if not await self.is_complete():
                raise CatalogIncomplete(TOTALS_INCOMPLETE)
            await self._client.call("HSET", key_names.totals(tenant), "complete", self._completeness.state)
        self._registered.add(tenant)

    async def get(self, tenant: str, capture: str) -> Entry | Tombstone | None:
        value = await self._client.call("GET", key_names.capture(tenant, capture))
        return None if value is None else encoding.decode(value)

    async def restore(self, entry: Entry) -> bool:
        value = await self._client.call("GET", key_names.capture(entry.tenant, entry.id))
        if value is None or not encoding.is_damaged(value):
            return False
        answer = await self._client.step(
            scripts.RESTORE,
            key_names.of_entry(entry),
            value,
            encoding.encode_entry(entry),
            encoding.position(entry.created, entry.id),
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

    async def amend(self, entry: Entry, *, expires: float, marker: str | None) -> Entry | None:
        stored: Entry | None = entry
        while stored is not None and stored.marker == entry.marker:
            changed = replace(stored, expires=expires, marker=marker)
            stored = await self._replace(stored, changed)
            if stored is changed:
                return changed
        return stored

    async def note_read(self, entry: Entry, at: float) -> bool:
        stored: Entry | None = entry
        while stored is not None and stored.first_read is None:
            changed = replace(stored, first_read=at)
            stored = await self._replace(stored, changed)
            if stored is changed:
                return True
        return False

    async def _replace(self, stored: Entry, changed: Entry) -> Entry | None:
        """Compare and set. Return `changed`, or what another request has made of the upload meanwhile."""
        keys = key_names.of_entry(stored)[:2]
        values = encoding.encode_entry(stored), encoding.encode_entry(changed)
        answer = await self._client.step(scripts.AMEND, keys, *values, changed.id, repr(changed.expires))
        if answer != scripts.DONE:
            return _same_upload(stored, answer)
        self._completeness.note_write()
        return changed

    async def remove(self, entry: Entry, tombstone: Tombstone, *, keep: float) -> bool:
        encoded_tombstone = encoding.encode_tombstone(tombstone, secrets.token_bytes(encoding.NONCE))
        stored: Entry | None = entry
        value = encoding.encode_entry(entry)
        while stored is not None:
            value = await self._client.step(
                scripts.REMOVE,
                key_names.of_entry(stored),
                value,
                position_of(stored),
                stored.id,
                encoded_tombstone,
                milliseconds(keep) if keep else 0,
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


def _same_upload(entry: Entry, value: bytes | None) -> Entry | None:
    """Return what is stored if it is the same upload. Its expiry may differ."""
    stored = None if value is None else encoding.decode(value)
    return stored if isinstance(stored, Entry) and stored.upload == entry.upload else None
