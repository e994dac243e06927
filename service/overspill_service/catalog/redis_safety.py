"""Settings of Redis that put entries at risk: what makes it unfit as a catalog, what is worth a warning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


def eviction(memory: Sequence[dict[str, Any]]) -> str:
    """Why entries may be evicted, by INFO memory of every server; empty where none may.

    Under the `volatile-` policies Redis evicts only keys that expire, and entries do not.
    """
    for facts in memory:
        policy = str(facts.get("maxmemory_policy", ""))
        if facts.get("maxmemory") and policy.startswith("allkeys"):
            return f"Redis may evict entries (maxmemory-policy {policy}); set it to noeviction"
    return ""
