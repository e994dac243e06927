"""Probes of an object store: each operation of the port, as the service uses it. All adapters share them.

The keys lie beside the captures and the records of removals, so that the permissions for these are checked.
No listing of captures takes them for one. The objects are deleted at the end.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

from overspill_service.errors import CaptureDamaged, StoreUnavailable
from overspill_service.errors.checks import CheckResult, run_probe
from overspill_service.store_format.object_keys import PROBES, REMOVALS

if TYPE_CHECKING:
    from overspill_service.objects import ObjectStore

CONTENT: Final = bytes(range(256)) * 400
TAIL: Final = 64 * 1024
"""Bytes that the service reads of an object's end. The object may be smaller."""
DELETED_KEYS: Final = 6
"""Keys of one deletion: enough for a multi-delete."""


def probe_key(prefix: str = PROBES) -> str:
    return f"{prefix}probe-{secrets.token_hex(8)}"


async def check_operations(store: ObjectStore) -> list[CheckResult]:
    """Probe each operation of the port. A failed probe does not stop the others, except a failed put."""
    probes = Probes(store)
    results = [await run_probe("ping", probes.ping), await run_probe("put", probes.put)]
    if results[-1].ok:
        results += [
            await run_probe("put again", probes.put_again),
            await run_probe("read a range", probes.read_range),
            await run_probe("read the end", probes.read_end),
            await run_probe("read more than the end", probes.read_past_start),
            await run_probe("read what is missing", probes.read_missing),
            await run_probe("copy", probes.copy),
            await run_probe("list", probes.list_one),
            await run_probe("delete", probes.delete),
        ]
    results.append(await run_probe("delete several", probes.delete_several))
    results.append(await run_probe("record a removal", probes.record_removal))
    return results


class Probes:
    """One run of probes with one key. Each probe raises a `ServiceError` that says what is wrong."""

    def __init__(self, store: ObjectStore) -> None:
        self._store, self._key = store, probe_key()

    async def ping(self) -> str:
        await self._store.ping()
        return ""

    async def put(self) -> str:
        await self._store.put(self._key, [CONTENT[:1000], CONTENT[1000:]])
        return ""

    async def put_again(self) -> str:
        """Put the same object again, as after a lost answer. That must be no error and change nothing."""
        await self._store.put(self._key, [CONTENT[:1000], CONTENT[1000:]])
        return ""

    async def read_range(self) -> str:
        for start, length in ((0, 1), (4, 5), (len(CONTENT) - 7, 7), (0, len(CONTENT))):
            await self._expect(start, length, CONTENT[start : start + length])
        return ""

    async def read_end(self) -> str:
        for length in (1, 17, TAIL, len(CONTENT)):
            await self._expect(-length, length, CONTENT[-length:])
        return ""

    async def read_past_start(self) -> str:
        """Read a suffix longer than the object: it is the whole object (RFC 9110, section 14.1.2)."""
        await self._expect(-2 * len(CONTENT), 2 * len(CONTENT), CONTENT)
        return ""

    async def read_missing(self) -> str:
        """Read a missing object: it must not look like a forbidden one."""
        for start in (0, -TAIL):
            try:
                await self._store.read(probe_key(), start, TAIL)
            except KeyError:
                continue
            raise StoreUnavailable("an object that was never stored can be read")
        return ""

    async def copy(self) -> str:
        new_key = probe_key()
        await self._store.copy(self._key, new_key)
        try:
            await self._expect(-len(CONTENT), 0, CONTENT, new_key)
        finally:
            await self._store.delete([new_key])
        return ""

    async def list_one(self) -> str:
        found = {stored.key: stored.size async for stored in self._store.list(PROBES)}
        if found.get(self._key) != len(CONTENT):
            raise StoreUnavailable(
                "a listing does not show an object that was just written, or shows another size"
            )
        return ""

    async def delete(self) -> str:
        await self._store.delete([self._key])
        return await self._require_gone([self._key])

    async def delete_several(self) -> str:
        """Delete several keys, also missing ones, as after an interrupted removal."""
        keys = [probe_key() for _ in range(DELETED_KEYS)]
        await self._store.put(keys[0], [b"x"])
        await self._store.delete(keys)
        return await self._require_gone(keys)

    async def record_removal(self) -> str:
        key = probe_key(f"{REMOVALS}.probe/")
        await self._store.put(key, [b"x"])
        await self._store.delete([key])
        return await self._require_gone([key])

    async def _expect(self, start: int, length: int, expected: bytes, key: str = "") -> None:
        span = f"{length} bytes from {start}" if start >= 0 else f"the last {length} bytes"
        try:
            found = await self._store.read(key or self._key, start, length)
        except KeyError:
            raise StoreUnavailable(
                "an object that was just written is not there yet: the store is not consistent"
            ) from None
        except CaptureDamaged as error:
            raise StoreUnavailable(f"asked for {span}, the store gives fewer") from error
        if found != expected:
            raise StoreUnavailable(f"asked for {span}, the store gives {len(found)} bytes, or other ones")

    async def _require_gone(self, keys: list[str]) -> str:
        for key in keys:
            try:
                await self._store.read(key, 0, 1)
            except KeyError:
                continue
            raise StoreUnavailable("a deleted object can still be read")
        return ""
