"""The entries of captures in Redis."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from overspill_service.catalog import encoding
from overspill_service.catalog.readers import KEY_BYTES
from overspill_service.catalog.records import Entry, Tombstone
from overspill_service.catalog.redis import entry_scripts, key_names
from overspill_service.catalog.redis.limits import RedisLimits
from overspill_service.catalog.redis.pages import position_of
from overspill_service.catalog.redis.script import DONE, milliseconds

if TYPE_CHECKING:
    from overspill_service.catalog.quotas import Quota
    from overspill_service.catalog.records import Query


class RedisEntries(RedisLimits):
    async def commit(self, entry: Entry, quota: Quota) -> Entry | Tombstone:
        await self._require_no_eviction()
        answer = await self._limited(entry.tenant, quota, lambda: self._commit(entry, quota))
        if answer == DONE:
            self._completeness.note_write()
            return entry
        return encoding.decode(answer)

    async def _commit(self, entry: Entry, quota: Quota) -> Any:
        return await self._client.step(
            entry_scripts.COMMIT,
            key_names.of_entry(entry),
            encoding.encode_entry(entry),
            encoding.position(entry.created, entry.id),
            entry.id,
            repr(entry.expires),
            entry.upload,
            self._complete_state(quota),
            *entry.charge,
            *quota.limits,
        )

    async def get(self, tenant: str, capture: str) -> Entry | Tombstone | None:
        value = await self._client.call("GET", key_names.capture(tenant, capture))
        return None if value is None else encoding.decode(value)

    async def restore(self, entry: Entry) -> bool:
        value = await self._client.call("GET", key_names.capture(entry.tenant, entry.id))
        if value is None or not encoding.is_damaged(value):
            return False
        answer = await self._client.step(
            entry_scripts.RESTORE,
            key_names.of_entry(entry),
            value,
            encoding.encode_entry(entry),
            encoding.position(entry.created, entry.id),
            entry.id,
            repr(entry.expires),
            entry.size,
        )
        return bool(answer == DONE)

    def damaged(self) -> list[tuple[str, str]]:
        return self._pages.damaged.take()

    async def find(
        self, tenant: str, query: Query, *, now: float, limit: int, cursor: str | None = None
    ) -> tuple[list[Entry], str | None]:
        return await self._pages.find(tenant, query, now=now, limit=limit, cursor=cursor)

    async def largest(self, tenant: str, *, now: float, limit: int) -> list[Entry]:
        return await self._pages.largest(tenant, now=now, limit=limit)

    async def amend(self, entry: Entry, *, expires: float, marker: str | None) -> Entry | None:
        stored: Entry | None = entry
        while stored is not None and stored.marker == entry.marker:
            changed = replace(stored, expires=expires, marker=marker)
            stored = await self._replace(stored, changed)
            if stored is changed:
                return changed
        return stored

    async def note_read(self, entry: Entry, at: float, reader: str = "") -> bool:
        stored: Entry | None = entry
        while stored is not None and stored.first_read is None:
            changed = replace(stored, first_read=at, first_reader=reader)
            stored = await self._replace(stored, changed)
            if stored is changed:
                return True
        return False

    async def _replace(self, stored: Entry, changed: Entry) -> Entry | None:
        """Compare and set. Return `changed`, or what another request has made of the upload meanwhile."""
        keys, new = key_names.of_entry(stored)[:2], encoding.encode_entry(changed)
        answer = await self._compared(
            stored,
            lambda value: self._client.step(
                entry_scripts.AMEND, keys, value, new, changed.id, repr(changed.expires)
            ),
        )
        if answer != DONE:
            return _same_upload(stored, answer)
        self._completeness.note_write()
        return changed

    async def remove(self, entry: Entry, tombstone: Tombstone, *, keep: float) -> bool:
        encoded_tombstone = encoding.encode_tombstone(tombstone, secrets.token_bytes(encoding.NONCE))
        stored: Entry | None = entry
        value = encoding.encode_entry(entry)
        while stored is not None:
            value = await self._client.step(
                entry_scripts.REMOVE,
                key_names.of_entry(stored),
                value,
                position_of(stored),
                stored.id,
                encoded_tombstone,
                milliseconds(keep) if keep else 0,
                -stored.size,
                -stored.stored_size,
                -stored.metadata_size,
                encoding.MAX_TOMBSTONES,
                KEY_BYTES,
            )
            if isinstance(value, list):
                self._completeness.note_write()
                await self._forget(entry.tenant, value)
                return True
            stored = _same_upload(entry, value)
            if stored is not None and not tombstone.may_replace(stored):
                return False
        return False

    async def _forget(self, tenant: str, surplus: list[bytes]) -> None:
        """Forget tombstones, unless captures have taken their place."""
        if surplus:
            keys = [key_names.capture(tenant, name.decode(errors="replace")) for name in surplus]
            await self._client.step(entry_scripts.FORGET, [key_names.tombstones(tenant), *keys], *surplus)


def _same_upload(entry: Entry, value: bytes | None) -> Entry | None:
    """Return what is stored if it is the same upload. Its expiry may differ."""
    stored = None if value is None else encoding.decode(value)
    return stored if isinstance(stored, Entry) and stored.upload == entry.upload else None
