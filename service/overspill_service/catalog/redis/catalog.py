"""The catalog on Redis: shared by every replica of the service, fast, and never trusted to last.

Needs Redis 6.2 or Valkey, no modules, and a `maxmemory-policy` that does not evict (`ping` says so).
"""

from __future__ import annotations

from overspill_service.catalog.redis.coordination import RedisCoordination
from overspill_service.catalog.redis.entries import RedisEntries
from overspill_service.catalog.redis.key_store import RedisKeyStore
from overspill_service.catalog.redis.ledger import RedisLedger


class RedisCatalog(RedisEntries, RedisLedger, RedisCoordination, RedisKeyStore):
    """The whole port: each part of it is a class of its own, over one link."""
