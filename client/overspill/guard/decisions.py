"""The first decision on each capture. An output that is shown again gets the same notice, byte for byte."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from overspill.execution import forks
from overspill.guard.duplicates import Duplicates
from overspill.reading.latest import Latest
from overspill.wire import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.guard.duplicates import Earlier
    from overspill.previews.notice_facts import StoreResult


class Decision(NamedTuple):
    """What became of a capture, and the earlier one of its session with the same bytes."""

    stored: StoreResult
    earlier: Earlier | None = None


class Decisions:
    """The decisions on the last `most` captures, for any thread. `clock` gives seconds since the epoch."""

    def __init__(self, most: int = 10_000, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._firsts: Latest[str, Decision] = Latest(most)
        self._duplicates = Duplicates(most, clock)
        self.reset_after_fork()
        forks.register(self)

    def reset_after_fork(self) -> None:
        """In a forked child, make a new lock: a thread of the parent may hold the old one."""
        self._lock = threading.RLock()

    def earlier(self, session: str, sha256: bytes, id: str) -> Earlier | None:  # noqa: A002  (the field's own name)
        """Return an earlier capture of the session with the same bytes, or None."""
        return self._duplicates.earlier(session, sha256, id)

    def decided(self, session: str, sha256: bytes, id: str, stored: StoreResult) -> Decision:  # noqa: A002
        """Return the first decision on a capture. `stored` is what became of it now."""
        if stored.outcome is Outcome.TRUNCATED:
            return self.first(id, Decision(stored))
        earlier = self.earlier(session, sha256, id)
        if earlier is None or id not in self._firsts:  # a later one counts once, however often it is shown
            self._duplicates.remember(session, sha256, id, stored.expires)
        return self.first(id, Decision(stored, earlier))

    def first(self, id: str, now: Decision) -> Decision:  # noqa: A002
        """Return the first decision on a capture. If there is none, remember `now` and return it.

        A first decision is replaced if it has expired, or if it stored nothing and `now` did: it would hide a
        capture that can be read. An output without an id is not remembered.
        """
        if not id:
            return now
        with self._lock:
            found = self._firsts.pop(id, now)
            if self._is_replaced(found.stored, now.stored):
                found = now
            self._firsts[id] = found
        return found

    def _is_replaced(self, first: StoreResult, now: StoreResult) -> bool:
        if first.outcome is Outcome.TRUNCATED:
            return now.outcome is not Outcome.TRUNCATED
        return first.expires is not None and first.expires.timestamp() <= self._clock()
