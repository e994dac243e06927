"""The catalog on Redis: shared by all replicas, fast, and not trusted to keep anything.

It needs Redis 6.2 or Valkey, no modules, and a `maxmemory-policy` that does not evict; `ping` checks that.
"""

from __future__ import annotations

from overspill_service.catalog.redis.backlogs import RedisBacklogs
from overspill_service.catalog.redis.coordination import RedisCoordination
from overspill_service.catalog.redis.entries import RedisEntries
from overspill_service.catalog.redis.key_store import RedisKeyStore
from overspill_service.catalog.redis.ledger import RedisLedger
from overspill_service.catalog.redis.live import RedisLive
from overspill_service.catalog.redis.news import RedisNews
from overspill_service.catalog.redis.readers import RedisReaders
from overspill_service.catalog.redis.statistics import RedisStatistics


class RedisCatalog(
    RedisEntries,
    RedisReaders,
    RedisLedger,
    RedisCoordination,
    RedisKeyStore,
    RedisStatistics,
    RedisBacklogs,
    RedisLive,
    RedisNews,
):
    """The whole port. Each part of it is a class of its own, over one link."""
