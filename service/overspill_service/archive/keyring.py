"""The API keys, and whether requests need one: in the catalog, and beside the objects.

The object store is the truth, as for captures: a catalog that was lost, or is an older copy, gets its keys
back from there, and no revoked one. So every change is made in the object store first. There each change is a
new object, because no object is ever overwritten.

    v1-keys/{hash}/{revision}             the record of a key; the highest revision counts
    v1-keys/access/{revision}-{mode}      the choice whether requests need a key; the highest revision counts
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Final

from overspill_service.catalog import encoding
from overspill_service.catalog.key_records import AccessMode
from overspill_service.errors import RecordDamaged
from overspill_service.resources.tasks import run_to_completion
from overspill_service.store_format import object_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from overspill_service.catalog import Catalog
    from overspill_service.catalog.key_records import KeyRecord
    from overspill_service.objects import ObjectStore

log = logging.getLogger(__name__)

_CHOICE: Final = re.compile(rf"{object_keys.ACCESS}(\d{{16}})-({'|'.join(AccessMode)})")
_RECORD: Final = re.compile(rf"{object_keys.KEYS}([0-9a-f]{{64}})/(\d{{16}})")
"""The name of a record. Other objects there do not belong to the service."""
MICROSECONDS: Final = 10**6
MAX_RECORD: Final = 64 * 1024
"""Bytes of a stored key's record, at most."""


class Keyring:
    """The API keys of a service. `clock` gives seconds since the epoch."""

    def __init__(self, store: ObjectStore, catalog: Catalog, clock: Callable[[], float]) -> None:
        self._store, self._catalog, self._clock = store, catalog, clock

    async def add(self, record: KeyRecord) -> None:
        """Store a new key. The first one ends access that is open `UNTIL_KEY`."""
        await run_to_completion(self._add(record))

    async def change(self, record: KeyRecord) -> None:
        """Store a new state of a key, unless it was revoked, even at the same time."""
        await run_to_completion(self._change(record))

    async def revoke(self, key_hash: str) -> bool:
        """Remove a key for good. Return False if there is none."""
        return await run_to_completion(self._revoke(key_hash))

    async def choose(self, mode: AccessMode) -> None:
        """Remember whether requests need a key."""
        await run_to_completion(self._choose(mode))

    async def mode(self) -> AccessMode | None:
        """Return the last choice; None if there never was one. Asks the object store."""
        choices = await self._matches(_CHOICE, object_keys.ACCESS)
        return AccessMode(choices[-1][2]) if choices else None

    async def keys(self) -> list[KeyRecord]:
        """Return all keys. An incomplete catalog gets them from the object store first."""
        if not await self._catalog.is_complete():
            await self.restore()
        return await self._catalog.keys()

    async def has(self, key_hash: str) -> bool:
        """Return whether there is such a key. Asks the object store."""
        return bool(await self._names(key_hash))

    async def stored(self, key_hash: str) -> KeyRecord | None:
        """Return the key as it is now, None if there is none. Asks the object store."""
        names = await self._names(key_hash)
        return await self._read(names[-1]) if names else None

    async def restore(self) -> int:
        """Replace the catalog's keys by those of the object store. Return how many were missing or wrong.

        The catalog is read first, because the object store has every key before the catalog.
        """
        records = {record.hash: record for record in await self._catalog.keys()}
        mode, newest = await self._listed()
        if mode is not None and await self._catalog.access_mode() != mode:
            await self._catalog.set_access_mode(mode)
        added = {
            key_hash for key_hash, name in newest.items() if await self._adds(name, records.get(key_hash))
        }
        still = (await self._listed())[1] if added else newest  # one may have been revoked meanwhile
        while changed := [name for key, name in still.items() if key in added and name != newest.get(key)]:
            for name in changed:  # or rotated: the former record may have come to the catalog last
                await self._adds(name, None)
            newest, still = still, (await self._listed())[1]
        changes = len(added)
        for key_hash in (records.keys() | added) - still.keys():
            changes += await self._catalog.revoke_key(key_hash)
        return changes

    async def _adds(self, name: str, recorded: KeyRecord | None) -> bool:
        """Add the record of this name to the catalog. Return False if it is there, or does not exist."""
        record = await self._read(name)
        if record is None or record == recorded:
            return False
        await self._catalog.add_key(record)
        return True

    async def _add(self, record: KeyRecord) -> None:
        await self._close_until_key()
        name = await self._put(record, [])
        await self._close_until_key()  # a service may just have chosen to need none, and have seen no key
        await self._catalog.add_key(record)
        await self._bring_newest(record.hash, name)

    async def _change(self, record: KeyRecord) -> None:
        earlier = await self._names(record.hash)
        if not earlier:
            await self._catalog.revoke_key(record.hash)
            return
        name = await self._put(record, earlier)
        await self._catalog.add_key(record)
        if await self._names(record.hash) == [name]:  # who changes a key leaves a record, who revokes it none
            await self._revoke(record.hash)
            return
        await self._bring_newest(record.hash, name)
        await self._store.delete(earlier)

    async def _put(self, record: KeyRecord, earlier: Sequence[str]) -> str:
        """Store a record, and return its name."""
        last = int(earlier[-1].rpartition("/")[2]) if earlier else 0
        name = object_keys.key_record(record.hash, self._revision(last))
        await self._store.put(name, [encoding.encode_key(record)])
        return name

    async def _bring_newest(self, key_hash: str, name: str) -> None:
        """Write the newest record of a key to the catalog: others may have changed or revoked the key.

        `name` is that of the record that was added to the catalog.
        """
        while (names := await self._names(key_hash)) and names[-1] != name:
            name = names[-1]
            await self._adds(name, None)
        if not names:
            await self._catalog.revoke_key(key_hash)

    async def _close_until_key(self) -> None:
        if await self.mode() in (None, AccessMode.UNTIL_KEY):
            await self._choose(AccessMode.CLOSED)

    async def _revoke(self, key_hash: str) -> bool:
        was_known, names = False, await self._names(key_hash)
        while True:
            await self._store.delete(names)
            was_known |= await self._catalog.revoke_key(key_hash) or bool(names)
            names = await self._names(key_hash)
            if not names:  # else another process has just changed it
                return was_known

    async def _choose(self, mode: AccessMode) -> None:
        earlier = await self._matches(_CHOICE, object_keys.ACCESS)
        last = int(earlier[-1][1]) if earlier else 0
        await self._store.put(object_keys.access_choice(mode.value, self._revision(last)), [b"access\n"])
        if mode is AccessMode.UNTIL_KEY and (await self._listed())[1]:  # the first one came meanwhile
            await self._choose(AccessMode.CLOSED)
            return
        await self._catalog.set_access_mode(mode)
        await self._store.delete([each[0] for each in earlier])

    def _revision(self, last: int) -> int:
        return max(int(self._clock() * MICROSECONDS), last + 1)

    async def _listed(self) -> tuple[AccessMode | None, dict[str, str]]:
        """Return the last choice, and the name of each key's newest record by the key's hash."""
        names = [stored.key async for stored in self._store.list(object_keys.KEYS)]
        choices, records = _matching(_CHOICE, names), _matching(_RECORD, names)
        mode = AccessMode(choices[-1][2]) if choices else None
        return mode, {each[1]: each[0] for each in records}

    async def _names(self, key_hash: str) -> list[str]:
        """Return the names of a key's records, the oldest first."""
        return [each[0] for each in await self._matches(_RECORD, object_keys.key_prefix(key_hash))]

    async def _matches(self, form: re.Pattern[str], prefix: str) -> list[re.Match[str]]:
        """Return the names under a prefix that have this form, the oldest revision first."""
        return _matching(form, [stored.key async for stored in self._store.list(prefix)])

    async def _read(self, name: str) -> KeyRecord | None:
        """Return the record, None if it was revoked meanwhile, or cannot be decoded."""
        try:
            return encoding.decode_key(await self._store.read(name, -MAX_RECORD, MAX_RECORD))
        except KeyError:
            return None
        except RecordDamaged as error:
            log.warning("a key's record is damaged, and the key unknown: %s", error)
            return None


def _matching(form: re.Pattern[str], names: Iterable[str]) -> list[re.Match[str]]:
    return [found for name in names if (found := form.fullmatch(name))]
