"""Gives random bytes for names. They are taken from the system many at a time.

Each call to the system lets another thread of the process go first, which may take half a millisecond.
"""

from __future__ import annotations

import os
import threading
from typing import Final

POOL_BYTES: Final = 4096


class RandomBytes:
    """A pool of random bytes. A forked process begins with an empty one."""

    def __init__(self) -> None:
        self._lock, self._pool = threading.Lock(), b""
        os.register_at_fork(after_in_child=self._forget)

    def take(self, count: int) -> bytes:
        """Return bytes that were never returned before."""
        with self._lock:
            if len(self._pool) < count:
                self._pool = os.urandom(max(POOL_BYTES, count))
            taken, self._pool = self._pool[:count], self._pool[count:]
            return taken

    def _forget(self) -> None:
        self._lock, self._pool = threading.Lock(), b""


_BYTES: Final = RandomBytes()


def random_bytes(count: int) -> bytes:
    """Return random bytes for a name. Secrets such as keys come from `secrets`."""
    return _BYTES.take(count)
