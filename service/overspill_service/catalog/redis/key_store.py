"""API keys in Redis."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from overspill_service.catalog import encoding
from overspill_service.catalog.key_records import AccessMode
from overspill_service.catalog.redis import key_names
from overspill_service.catalog.redis.access import RedisAccess

if TYPE_CHECKING:
    from collections.abc import Mapping

    from overspill_service.catalog.key_records import KeyRecord

_USE: Final = re.compile(r"(\S+) (\d{1,11}(?:\.\d+)?)")
"""The hash of a key, and when it was used last. A damaged value is no use: the key's next one replaces it."""


class RedisKeyStore(RedisAccess):
    async def add_key(self, key: KeyRecord) -> None:
        await self._client.call("HSET", key_names.KEYS, key.hash, encoding.encode_key(key))

    async def find_key(self, key_hash: str) -> KeyRecord | None:
        value = await self._client.call("HGET", key_names.KEYS, key_hash)
        return None if value is None else encoding.decode_key(value)

    async def keys(self) -> list[KeyRecord]:
        return encoding.decode_keys(await self._client.call("HVALS", key_names.KEYS))

    async def revoke_key(self, key_hash: str) -> bool:
        await self._client.call("HDEL", key_names.USES, key_hash)
        return bool(await self._client.call("HDEL", key_names.KEYS, key_hash))

    async def access_mode(self) -> AccessMode | None:
        value = await self._client.call("GET", key_names.ACCESS)
        return None if value is None else AccessMode.stored(value.decode(errors="replace"))

    async def set_access_mode(self, mode: AccessMode) -> None:
        await self._client.call("SET", key_names.ACCESS, mode.value)

    async def note_uses(self, uses: Mapping[str, float]) -> None:
        words = [word for key_hash, at in uses.items() for word in (key_hash, f"{key_hash} {at!r}")]
        if words:
            await self._client.call("HSET", key_names.USES, *words)

    async def uses(self) -> dict[str, float]:
        values = await self._client.call("HVALS", key_names.USES)
        found = (_USE.fullmatch(value.decode(errors="replace")) for value in values)
        return {use[1]: float(use[2]) for use in found if use is not None}
