"""Objects in this process's memory, for tests and for a first try. They are lost with the process."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from overspill_service.errors import CaptureDamaged
from overspill_service.objects import StoredObject
from overspill_service.objects.keys import check_key, check_prefix

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence


class MemoryStore:
    def __init__(self) -> None:
        self._objects: dict[str, tuple[bytes, float]] = {}

    async def put(self, key: str, pieces: Sequence[bytes]) -> bool:
        check_key(key)
        stored = b"".join(pieces), time.time()
        return self._objects.setdefault(key, stored) is stored

    async def read(self, key: str, start: int, length: int) -> bytes:
        check_key(key)
        data, _ = self._objects[key]
        if start < 0:
            return data[start:]
        found = data[start : start + length]
        if len(found) < length:
            raise CaptureDamaged(f"a stored object ends at byte {len(data)}, before byte {start + length}")
        return found

    async def copy(self, key: str, new_key: str) -> None:
        check_key(key)
        check_key(new_key)
        self._objects.setdefault(new_key, self._objects[key])

    async def list(self, prefix: str) -> AsyncIterator[StoredObject]:
        check_prefix(prefix)
        for key in sorted(key for key in self._objects if key.startswith(prefix)):
            if found := self._objects.get(key):
                data, modified = found
                yield StoredObject(key, len(data), modified)

    async def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            check_key(key)
            self._objects.pop(key, None)

    async def make_room(self) -> None:
        """Do nothing: the store shares no disk with a catalog."""

    async def sweep_temporary(self, age: float) -> int:  # noqa: ARG002  (a put is one step)
        return 0

    async def keeps_versions(self) -> bool:
        """Return False: deleted objects are gone."""
        return False

    async def now(self) -> None:
        """Return None: the clock is this machine's."""

    async def ping(self) -> None:
        pass

    async def close(self) -> None:
        self._objects.clear()
