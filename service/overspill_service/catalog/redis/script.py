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
WHOLE: Final = """
-- Raises an error if the totals are damaged, so nothing changes until they are counted again.
local function require_whole(totals)
    local held = redis.call('HMGET', totals, 'captures', 'size', 'stored', 'metadata')
    for i = 1, 4 do
        local total = held[i] or '0'
        -- As HINCRBY takes and writes it, and so small that nothing overflows.
        local is_integer = total == '0' or (string.match(total, '^-?[1-9]%d*$') and #total <= 16)
        if not is_integer then error('a total is not an integer') end
    end
end
"""
"""The beginning of scripts that change a tenant's totals."""


class Script:
    """A script, and the SHA-1 by which a server knows it (EVALSHA)."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.publishes = "'PUBLISH'" in text
        self.sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def milliseconds(seconds: float) -> int:
    """Return seconds as Redis takes lifetimes: whole milliseconds, at least one."""
    return max(1, round(seconds * 1000))
