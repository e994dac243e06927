"""Limits the bytes of answers that clients have not taken, in one process and for one tenant.

They wait in the buffers of transports. Of one tenant's connections with too many, the one that has waited for
longest without taking any is cut off.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FRACTION: Final = 4
"""They take a quarter of what the memory budget has, besides it, and those of one tenant half of that."""


class Connection(Protocol):
    def get_write_buffer_size(self) -> int: ...

    def abort(self) -> None: ...


class UnsentAnswers:
    """The connections whose clients are behind. Belongs to one event loop."""

    def __init__(self, memory: int, cut_off: Callable[[str], None] = lambda _: None) -> None:
        """`memory`: bytes of the process's budget.

        `cut_off` gets the tenant of each connection that is cut off.
        """
        self.limit = memory // FRACTION
        self.share = self.limit // 2
        self._cut_off = cut_off
        self._held: dict[str, dict[Connection, int]] = {}
        """By tenant, the one that was noted first comes first."""
        self._sizes: Counter[str] = Counter()
        self.total = 0

    @contextmanager
    def held(self, tenant: str, connection: Connection, size: int) -> Iterator[None]:
        """Count what a connection holds, and `size` bytes more that are written within the block."""
        self.note(tenant, connection, size)
        try:
            yield
        finally:
            self.forget(tenant, connection)

    def note(self, tenant: str, connection: Connection, more: int = 0) -> None:
        """Count what a connection holds now, and `more` bytes that are about to be written to it."""
        self.forget(tenant, connection)
        self._count(tenant, connection, connection.get_write_buffer_size() + more)
        while (greedy := self._greedy(tenant)) is not None:
            if not self._take_back(greedy, connection):
                return

    def forget(self, tenant: str, connection: Connection) -> None:
        held = self._held.get(tenant)
        if held is None or connection not in held:
            return
        size = held.pop(connection)
        self._sizes[tenant] -= size
        self.total -= size
        if not held:
            del self._held[tenant], self._sizes[tenant]

    def _count(self, tenant: str, connection: Connection, size: int) -> None:
        if size:
            self._held.setdefault(tenant, {})[connection] = size
            self._sizes[tenant] += size
            self.total += size

    def _greedy(self, tenant: str) -> str | None:
        """Return the tenant that has to give something back, if any has."""
        if self._sizes[tenant] > self.share:
            return tenant
        return max(self._sizes, key=self._sizes.__getitem__) if self.total > self.limit else None

    def _take_back(self, tenant: str, latest: Connection) -> bool:
        """Look at a tenant's oldest connection, and cut it off if its client has taken nothing since.

        Return False if there is none but `latest`.
        """
        oldest = next((each for each in self._held.get(tenant, ()) if each is not latest), None)
        if oldest is None:
            return False
        before, now = self._held[tenant][oldest], oldest.get_write_buffer_size()
        self.forget(tenant, oldest)
        if now < before:
            self._count(tenant, oldest, now)
        else:
            oldest.abort()
            self._cut_off(tenant)
        return True
