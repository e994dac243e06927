"""Remembers outputs by their digest, to name the earlier capture of the same bytes in a session."""

from __future__ import annotations

import hashlib
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from overspill.execution import forks
from overspill.reading.latest import Latest

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime


class Earlier(NamedTuple):
    """The first capture of a content in a session, and how many with the same bytes followed it.

    `expires` is in seconds since the epoch.
    """

    id: str
    repeats: int
    expires: float = float("inf")


class Duplicates:
    """The last `most` contents, for any thread. Calls without a session count as one session.

    `clock` gives seconds since the epoch.
    """

    def __init__(self, most: int = 10_000, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._firsts: Latest[bytes, Earlier] = Latest(most)
        forks.register(self)

    def reset_after_fork(self) -> None:
        """In a forked child, make a new lock: a thread of the parent may hold the old one."""
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


def _key(session: str, sha256: bytes) -> bytes:
    """Return a key of fixed length, however long the session's name is."""
    return hashlib.sha256(sha256 + session.encode("utf-8", "surrogatepass")).digest()
