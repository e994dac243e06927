"""The object store port: immutable byte strings under keys.

Keys are `/`-separated ASCII segments of `[A-Za-z0-9._-]`. Each is written once and never overwritten. Every
method raises `StoreUnavailable` if the store does not answer, and `StoreFull` if it has no room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from overspill_service.errors.checks import CheckResult


class StoredObject(Struct, frozen=True):
    """One stored object in a listing. `modified` in seconds since the epoch."""

    key: str
    size: int
    modified: float


class ObjectStore(Protocol):
    async def put(self, key: str, pieces: Sequence[bytes]) -> bool:
        """Store the concatenated pieces under a new key, durably.

        An existing object stays as it is: this attempt was repeated, or others were first. Then return False,
        if the store reports it.
        """

    async def read(self, key: str, start: int, length: int) -> bytes:
        """Return exactly `length` bytes from `start`, with one request.

        `start < 0` reads the last `-start` bytes, or the whole object if it is smaller, and ignores `length`.
        Raises `KeyError` if there is no such object, `CaptureDamaged` if it is shorter.
        """

    async def copy(self, key: str, new_key: str) -> None:
        """Store an object under a new key too, durably. Its bytes do not pass through this process.

        An attempt may be repeated. Raises `KeyError` if there is no object under `key`.
        """

    def list(self, prefix: str) -> AsyncIterator[StoredObject]:
        """Yield every object whose key begins with `prefix`, in the order of the keys."""

    async def delete(self, keys: Iterable[str]) -> None:
        """Delete the objects. Absent keys are not an error."""

    async def make_room(self) -> None:
        """Make room for what a removal has to record, if a disk that the store shares is full."""

    async def sweep_temporary(self, age: float) -> int:
        """Delete the leftovers of puts that were interrupted more than `age` seconds ago.

        Return the bytes that remain.
        """

    async def keeps_versions(self) -> bool | None:
        """Return whether versions of deleted objects stay, None if the store does not say."""

    async def now(self) -> float | None:
        """Return the time by the clock of `StoredObject.modified`, None if that is this machine's."""

    async def ping(self) -> None:
        """Return if the store answers. Cheap enough for a readiness probe."""

    async def close(self) -> None:
        """Release connections and threads."""


@runtime_checkable
class ListsForeignNames(Protocol):
    """A store that may also hold what the service did not put there."""

    def foreign(self) -> AsyncIterator[str]:
        """Yield every name in it that is not a key of the service. Raises `StoreUnavailable`."""


@runtime_checkable
class Checkable(Protocol):
    """A store that can check itself for an operator."""

    async def check(self) -> Sequence[CheckResult]:
        """Check connection, permissions and abilities one by one. Failures are results, not exceptions."""
