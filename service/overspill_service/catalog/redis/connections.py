"""Three ways to reach Redis: one server, the master that sentinels name, a cluster.

The retries of redis-py are off: `client` retries, with a deadline. Nothing connects before its first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from redis.asyncio import Connection as TcpConnection
from redis.asyncio import ConnectionPool, Redis, RedisCluster, Sentinel, SSLConnection
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError

from overspill_service.catalog.redis.pipelines import PIPELINE_TIMEOUT_SECONDS, PIPELINES, Pipelines

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from redis.asyncio.client import PubSub

    from overspill_service.catalog.redis.client import Connection

    Address = tuple[str, int]

CONNECT_TIMEOUT_SECONDS: Final = 1.0
"""Seconds for one connection to be made."""
SUBSCRIBED: Final = 1
"""The connection that listens for news of live captures."""
SCAN_COUNT: Final = 1000
"""Keys that a server reads in one step of a scan."""


def _options(**more: Any) -> dict[str, Any]:
    return {
        "protocol": 2,
        "socket_connect_timeout": CONNECT_TIMEOUT_SECONDS,
        "retry": Retry(NoBackoff(), 0),
        **more,
    }


def server(address: Address, *, db: int = 0, tls: bool = False, **login: Any) -> Connection:
    """Return the connection to one server. `login`: username, password and redis-py's `ssl_…` options."""
    host, port = address
    kind = SSLConnection if tls else TcpConnection
    options = _options(host=host, port=port, db=db, socket_timeout=None, **login)
    return _Single(Redis.from_pool(ConnectionPool(kind, PIPELINES + SUBSCRIBED, **options)))


def sentinel(
    addresses: Sequence[Address],
    service: str,
    *,
    db: int = 0,
    tls: bool = False,
    sentinel_password: str | None = None,
    **login: Any,
) -> Connection:
    """Return the connection to the master that any of the sentinels names, also after a failover."""
    files = {name: value for name, value in login.items() if name.startswith("ssl_")}
    asking = _options(socket_timeout=CONNECT_TIMEOUT_SECONDS, ssl=tls, password=sentinel_password, **files)
    sentinels = Sentinel(addresses, sentinel_kwargs=asking)  # type: ignore[no-untyped-call]
    options = _options(db=db, socket_timeout=None, max_connections=PIPELINES + SUBSCRIBED, ssl=tls, **login)
    return _Single(sentinels.master_for(service, **options), sentinels.sentinels)


def cluster(addresses: Sequence[Address], *, tls: bool = False, **login: Any) -> Connection:
    """Return the connection to a cluster that any of the addresses belongs to."""
    nodes = [ClusterNode(host, port) for host, port in addresses]
    # A moved slot is handled alone: a new start (reinitialize_steps) would break commands that are running.
    options = _options(socket_timeout=PIPELINE_TIMEOUT_SECONDS, ssl=tls, reinitialize_steps=0, **login)
    return _Cluster(RedisCluster(startup_nodes=nodes, **options))


class _Single:
    def __init__(self, client: Redis, sentinels: Sequence[Redis] = ()) -> None:
        self._client = client
        self._sentinels = sentinels
        self._pipelines = Pipelines(client)
        self.run = self._pipelines.run

    async def info(self, section: str) -> list[dict[str, Any]]:
        return [await self.run("INFO", section)]

    def scan(self, pattern: str) -> AsyncIterator[bytes]:
        return self._client.scan_iter(match=pattern, count=SCAN_COUNT)

    def pubsub(self) -> PubSub:
        return self._client.pubsub()

    async def reconnect(self) -> None:
        await self._client.connection_pool.disconnect(inuse_connections=False)

    async def close(self) -> None:
        await self._pipelines.close()
        await self._client.aclose()
        for client in self._sentinels:
            await client.aclose()


class _Cluster:
    """Without pipelines: redis-py's cluster pipelines do not notice a changed topology."""

    def __init__(self, client: RedisCluster) -> None:
        self._client = client

    async def run(self, *command: Any, **options: Any) -> Any:
        await self._client.initialize()  # before that, commands would go to any node
        try:
            return await self._client.execute_command(*command, **options)
        except AttributeError as error:  # redis-py closes connections that other commands are using
            raise RedisConnectionError("the topology changed") from error

    async def info(self, section: str) -> list[dict[str, Any]]:
        await self._client.initialize()
        return [await self.run("INFO", section, target_nodes=node) for node in self._client.get_primaries()]

    def scan(self, pattern: str) -> AsyncIterator[bytes]:
        return self._client.scan_iter(match=pattern, count=SCAN_COUNT)

    def pubsub(self) -> PubSub:
        return self._client.pubsub()

    async def reconnect(self) -> None:
        await self._client.aclose()  # the next command finds the topology again

    async def close(self) -> None:
        await self._client.aclose()
