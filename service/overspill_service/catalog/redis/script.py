"""A Lua script for Redis 6.2 and later, or Valkey; and what scripts take and answer.

Each script changes several keys in one atomic step. It may be repeated after a lost answer: it finds its own
work and gives the same answer.
"""

from __future__ import annotations

import hashlib
from typing import Final

UNREGISTERED: Final = 0
"""The totals do not exist, or are of another complete state than the caller's."""

DONE: Final = 1


class Script:
    """A script, and the SHA-1 by which a server knows it (EVALSHA)."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.publishes = "'PUBLISH'" in text
        self.sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def milliseconds(seconds: float) -> int:
    """Return seconds as Redis takes lifetimes: whole milliseconds, at least one."""
    return max(1, round(seconds * 1000))
