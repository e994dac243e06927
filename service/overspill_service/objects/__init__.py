"""The object store port: immutable byte strings under keys.

Keys are `/`-separated ASCII segments of `[A-Za-z0-9._-]`, written once and never overwritten. Every
method raises `StoreUnavailable` when the store does not answer, and `StoreFull` when it has no room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from overspill_service.errors.checks import CheckResult


class Stored(Struct, frozen=True):
    """One stored object as a listing shows it; `modified` in seconds since the epoch."""

    key: str
    size: int
    modified: float


class ObjectStore(Protocol):
    async def put(self, key: str, pieces: Sequence[bytes]) -> None:
        """Store the concatenated pieces under a new key, durably, before returning.

        A key that exists is left as it is (keys are unique by construction: it is our own retry).
        """

    async def read(self, key: str, start: int, length: int) -> bytes:
        """Exactly `length` bytes from `start`, in one request.

        `start < 0` reads the last `-start` bytes (fewer where the object is smaller) and ignores `length`.
        Raises `KeyError` where there is no such object, `CaptureDamaged` where it is shorter.
        """

    def list(self, prefix: str) -> AsyncIterator[Stored]:
        """Every object whose key begins with `prefix`, in the order of the keys."""

    async def delete(self, keys: Iterable[str]) -> None:
        """Delete the objects; absent keys are no error."""

    async def sweep_temporary(self, age: float) -> int:
        """Remove what cut-short puts left more than `age` seconds ago; return the bytes of what remains."""

    async def now(self) -> float | None:
        """The time by the clock of `Stored.modified`, in seconds since the epoch; None for this machine's."""

    async def ping(self) -> None:
        """Return when the store answers; cheap enough for a readiness probe."""

    async def close(self) -> None:
        """Release connections and threads."""


@runtime_checkable
class ListsForeignNames(Protocol):
    """A store whose place may also hold what the service did not put there."""

    def foreign(self) -> AsyncIterator[str]:
        """Every name in its place that is no key of the service. Raises `StoreUnavailable`."""


@runtime_checkable
class Checkable(Protocol):
    """A store that can examine itself, for an operator who sets it up."""

    async def check(self) -> Sequence[CheckResult]:
        """Try connection, permissions and abilities one by one; failures are results, not exceptions."""
