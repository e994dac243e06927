"""Settings of Redis that put entries at risk: some make it unusable, some deserve a warning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from overspill_service.errors import CatalogUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overspill_service.catalog.redis.client import RedisClient

_EMPTIED: Final = (
    "a restart empties the catalog; entries and keys are rebuilt from the object store, but statistics, and "
    "what live captures have only accepted, are lost"
)
_NOT_PERSISTED: Final = (
    f'Redis writes nothing to its disk (appendonly no, save ""): {_EMPTIED}; set appendonly yes'
)
_MAYBE_NOT_PERSISTED: Final = (
    "appendonly is off, and CONFIG GET save is not permitted: make sure that Redis writes to its disk, else "
    f"{_EMPTIED}"
)
_SPLIT: Final = (
    "Redis has replicas and min-replicas-to-write is 0: a master that was cut off goes on taking writes that "
    "are lost when it is replaced; set min-replicas-to-write 1 and min-replicas-max-lag 10"
)


def parsed_info(text: bytes) -> dict[str, Any]:
    """Return what an answer to INFO says. Whole numbers are numbers, all else is text."""
    lines = (line.partition(":") for line in text.decode(errors="replace").splitlines() if line[:1] != "#")
    return {
        name: int(value) if value.isascii() and value.isdecimal() else value
        for name, colon, value in lines
        if colon
    }


def eviction(memory: Sequence[dict[str, Any]]) -> str:
    """Return why entries may be evicted, by INFO memory of every server. Empty if none may.

    The `volatile-` policies evict only keys that expire, and entries do not.
    """
    for facts in memory:
        policy = str(facts.get("maxmemory_policy", ""))
        if facts.get("maxmemory") and policy.startswith("allkeys"):
            return f"Redis may evict entries (maxmemory-policy {policy}); set it to noeviction"
    return ""


def has_evicted(stats: Sequence[dict[str, Any]]) -> bool:
    """Return whether a server has evicted a key since it started, by INFO stats of every server."""
    return any(facts.get("evicted_keys") for facts in stats)


async def warnings(client: RedisClient) -> list[str]:
    """Return a sentence for each setting that should change. Raises `CatalogUnavailable`."""
    found = [await _persistence(client), await _split(client), _tombstones(await client.info("memory"))]
    return [each for each in found if each]


async def _persistence(client: RedisClient) -> str:
    if all(facts.get("aof_enabled") for facts in await client.info("persistence")):
        return ""
    try:
        answer = await client.call("CONFIG", "GET", "save")
    except CatalogUnavailable:  # a hosted Redis, or a user who may not run CONFIG
        return _MAYBE_NOT_PERSISTED
    return "" if answer and answer[-1] else _NOT_PERSISTED


async def _split(client: RedisClient) -> str:
    """Return a warning if a master may go on alone.

    INFO counts the good replicas only if some are required.
    """
    for facts in await client.info("replication"):
        if facts.get("connected_slaves") and "min_slaves_good_slaves" not in facts:
            return _SPLIT
    return ""


def _tombstones(memory: Sequence[dict[str, Any]]) -> str:
    for facts in memory:
        policy = str(facts.get("maxmemory_policy", ""))
        if facts.get("maxmemory") and policy.startswith("volatile"):
            return (
                f"Redis may evict what expires (maxmemory-policy {policy}): captures that were removed may "
                "then answer 404 instead of 410; set it to noeviction"
            )
    return ""
