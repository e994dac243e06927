"""Remembers a guard's decisions on earlier outputs, and which of these outputs had the same bytes.

An output that is shown again gets the same notice, byte for byte.
"""

from __future__ import annotations

import hashlib
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from overspill.execution import forks
from overspill.reading.latest import Latest
from overspill.wire import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from overspill.previews.notice_facts import StoreResult


class Earlier(NamedTuple):
    """The first capture of a content in a session, and how many with the same bytes followed it.

    `expires` is in seconds since the epoch.
    """

    id: str
    repeats: int
    expires: float = float("inf")


class Duplicates:
    """The last `limit` contents, for any thread. Calls without a session count as one session.

    `clock` gives seconds since the epoch.
    """

    def __init__(self, limit: int = 10_000, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._firsts: Latest[bytes, Earlier] = Latest(limit)
        forks.register(self)

    def reset_after_fork(self) -> None:
        """Make a new lock in a forked child: a thread of the parent may hold the old one."""
        self._lock = threading.RLock()

    def earlier(self, session: str, sha256: bytes, own_id: str) -> Earlier | None:
        """Return the first capture of this content in the session, until it expires.

        None for that capture itself: the same call again gets the same notice.
        """
        key = _key(session, sha256)
        with self._lock:
            first = self._look_up(key)
        return None if first is None or first.id == own_id else first

    def remember(self, session: str, sha256: bytes, own_id: str, expires: datetime | None) -> None:
        """Remember that the content is stored as `own_id` until `expires`; None is forever."""
        key = _key(session, sha256)
        until = float("inf") if expires is None else expires.timestamp()
        with self._lock:
            first = self._look_up(key)
            if first is None or first.id == own_id:
                self._firsts[key] = Earlier(own_id, 0 if first is None else first.repeats, until)
            else:
                self._firsts[key] = first._replace(repeats=first.repeats + 1)

    def _look_up(self, key: bytes) -> Earlier | None:
        """Return what is remembered, and make it the most recent. Forget it if it has expired."""
        first = self._firsts.pop(key, None)
        if first is None or first.expires <= self._clock():
            return None
        self._firsts[key] = first
        return first


class Decision(NamedTuple):
    """The fate of a capture, and the earlier capture of its session with the same bytes."""

    stored: StoreResult
    earlier: Earlier | None = None


class Decisions:
    """The decisions on the last `limit` captures, for any thread. `clock` gives seconds since the epoch."""

    def __init__(self, limit: int = 10_000, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._firsts: Latest[str, Decision] = Latest(limit)
        self._duplicates = Duplicates(limit, clock)
        self.reset_after_fork()
        forks.register(self)

    def reset_after_fork(self) -> None:
        """Make a new lock in a forked child: a thread of the parent may hold the old one."""
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


def _key(session: str, sha256: bytes) -> bytes:
    """Return a key of fixed length, however long the session's name is."""
    return hashlib.sha256(sha256 + session.encode("utf-8", "surrogatepass")).digest()
