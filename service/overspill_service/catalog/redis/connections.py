"""Three ways to reach Redis: one server, the master that sentinels name, a cluster.

The retries of redis-py are off: `client` retries, with a deadline. Nothing connects before its first use.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from redis.asyncio import Redis, RedisCluster, Sentinel
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import SSLConnection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import MasterNotFoundError
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError

from overspill_service.catalog.redis.links import ANSWER_SECONDS, CONNECT_SECONDS, Links, opened
from overspill_service.catalog.redis.server_settings import parsed_info

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from overspill_service.catalog.redis.client import Connection
    from overspill_service.catalog.redis.link import Link
    from overspill_service.catalog.redis.links import Address, LinkOptions

SCAN_COUNT: Final = 1000
"""Keys that a server reads in one step of a scan."""


def _options(options: LinkOptions, **more: Any) -> dict[str, Any]:
    """Return options for the clients of redis-py."""
    return {
        "protocol": 2,
        "socket_connect_timeout": CONNECT_SECONDS,
        "retry": Retry(NoBackoff(), 0),
        "ssl": options.tls,
        **more,
    }


class _TlsConnection(SSLConnection):
    """Reads the files for TLS each time it connects, because they may have been replaced."""

    def __init__(self, *, link_options: LinkOptions, **options: Any) -> None:
        super().__init__(**options)
        self._link_options = link_options

    async def _connect(self) -> None:
        self.ssl_context.context = await asyncio.to_thread(self._link_options.context)
        await super()._connect()  # type: ignore[no-untyped-call]


def server(address: Address, options: LinkOptions) -> Connection:
    """Return the connection to one server."""

    async def connect() -> Link:
        return await opened(address, options)

    return _Single(connect, options.answer_seconds)


def sentinel(
    addresses: Sequence[Address], service: str, options: LinkOptions, password: str | None = None
) -> Connection:
    """Return the connection to the master that any of the sentinels names, even after a failover.

    `password` is that of the sentinels.
    """
    asking = _options(options, socket_timeout=CONNECT_SECONDS, password=password)
    sentinels = Sentinel(addresses, sentinel_kwargs=asking)  # type: ignore[no-untyped-call]
    if options.tls:
        for pool in (each.connection_pool for each in sentinels.sentinels):
            pool.connection_class = _TlsConnection
            pool.connection_kwargs["link_options"] = options

    async def connect() -> Link:
        with suppress(MasterNotFoundError):
            return await opened(await sentinels.discover_master(service), options)
        if options.tls:  # which may be why: redis-py does not say what each sentinel's error was
            await sentinels.sentinels[0].ping()
        raise MasterNotFoundError(service)

    return _Single(connect, options.answer_seconds, sentinels.sentinels)


def cluster(addresses: Sequence[Address], options: LinkOptions) -> Connection:
    """Return the connection to a cluster that any of the addresses belongs to."""
    nodes = [ClusterNode(host, port) for host, port in addresses]
    # A moved slot is handled alone: a new start (reinitialize_steps) would break commands that are running.
    names = {"username": options.username, "password": options.password}
    settings = _options(options, socket_timeout=ANSWER_SECONDS, reinitialize_steps=0, **names)
    client = RedisCluster(startup_nodes=nodes, **settings)
    if options.tls:
        client.connection_kwargs |= {"connection_class": _TlsConnection, "link_options": options}
        for node in client.nodes_manager.startup_nodes.values():
            node.connection_class = _TlsConnection
            node.connection_kwargs["link_options"] = options
    return _Cluster(client, options)


class _Single:
    def __init__(
        self, connect: Callable[[], Awaitable[Link]], seconds: float, sentinels: Sequence[Redis] = ()
    ) -> None:
        self._connect, self._sentinels = connect, sentinels
        self._links = Links(connect, seconds)
        self.run = self._links.run

    async def info(self, section: str) -> list[dict[str, Any]]:
        return [parsed_info(await self.run("INFO", section))]

    async def scan(self, pattern: str) -> AsyncIterator[bytes]:
        cursor = b"0"
        while True:
            cursor, keys = await self.run("SCAN", cursor, "MATCH", pattern, "COUNT", SCAN_COUNT)
            for key in keys:
                yield key
            if cursor == b"0":
                return

    async def subscriber(self) -> Link:
        return await self._connect()

    async def reconnect(self) -> None:
        self._links.reconnect()

    async def close(self) -> None:
        await self._links.close()
        for client in self._sentinels:
            await client.aclose()


class _Cluster:
    """Without links of its own: redis-py knows which node has a key, and follows moved slots."""

    def __init__(self, client: RedisCluster, options: LinkOptions) -> None:
        self._client, self._options = client, options

    async def run(self, *command: Any, publishes: bool = False, **options: Any) -> Any:  # noqa: ARG002  (the port's)
        async with asyncio.timeout(self._options.answer_seconds):
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

    async def subscriber(self) -> Link:
        """Return a link to any node: each gets what is published at another one."""
        await self._client.initialize()
        node = self._client.get_random_node()
        return await opened((str(node.host), int(node.port)), self._options)

    async def reconnect(self) -> None:
        await self._client.aclose()  # the next command finds the topology again

    async def close(self) -> None:
        await self._client.aclose()
