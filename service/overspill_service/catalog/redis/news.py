"""News of live captures in Redis: one subscribed connection for each process, made at the first watch."""

from __future__ import annotations

import asyncio
import logging
import struct
from typing import TYPE_CHECKING, Any, Final

from redis import exceptions as redis_errors

from overspill_service.catalog.live import LOOK_AGAIN
from overspill_service.catalog.redis import failures, key_names
from overspill_service.catalog.redis.access import RedisAccess

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill_service.catalog.redis.client import RedisClient
    from overspill_service.catalog.redis.link import Link

PAUSE_SECONDS: Final = 0.5
"""How long to wait before a broken connection is made again."""
_OFFSET: Final = struct.Struct(">Q")

log = logging.getLogger(__name__)


class RedisNews(RedisAccess):
    def __init__(self, client: RedisClient) -> None:
        super().__init__(client)
        self._watched: dict[bytes, Callable[[int, bytes], None]] = {}
        """By channel."""
        self._link: Link | None = None
        self._reading: asyncio.Task[None] | None = None
        self._failure = ""
        """Why there is no news, as it was logged. Empty while there is."""

    async def watch(self, tenant: str, capture: str, on_news: Callable[[int, bytes], None]) -> None:
        channel = key_names.news(tenant, capture).encode()
        self._watched[channel] = on_news
        if self._reading is None:
            self._reading = asyncio.create_task(self._read(), name="news of live captures")
        elif self._link is not None:
            self._link.send(("SUBSCRIBE", channel))

    async def unwatch(self, tenant: str, capture: str) -> None:
        channel = key_names.news(tenant, capture).encode()
        self._watched.pop(channel, None)
        if self._link is not None:
            self._link.send(("UNSUBSCRIBE", channel))

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
            self._reading = None
        await super().close()

    async def _read(self) -> None:
        """Read news until cancelled. After a broken connection, everyone who watches looks again."""
        while True:
            try:
                await self._read_connection()
            except (redis_errors.RedisError, redis_errors.RedisClusterException, OSError) as error:
                previous, self._failure = self._failure, failures.reason(error)
                if self._failure != previous:
                    log.info("news of live captures are interrupted: %s", self._failure)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _read_connection(self) -> None:
        """Subscribe, and let what comes be passed on until the connection is gone."""
        link = await self._client.subscriber()
        try:
            link.listen(self._pass_on)
            self._link = link
            link.send(("SUBSCRIBE", key_names.PING, *self._watched))
            raise await link.closed or redis_errors.ConnectionError("the connection was lost")
        finally:
            self._link = None
            link.close()

    def _pass_on(self, message: Any) -> None:
        """Tell who watches. What came before a subscription is unknown."""
        if isinstance(message, Exception):  # a missing permission
            assert self._link is not None
            self._link.close(message)
            return
        self._failure = ""
        kind, channel, data = message
        on_news = self._watched.get(channel)
        if on_news is None:
            return
        if kind == b"message" and data[:1] == b"a":
            (offset,) = _OFFSET.unpack_from(data, 1)
            on_news(offset, data[1 + _OFFSET.size :])
        elif kind in (b"message", b"subscribe"):
            on_news(LOOK_AGAIN, b"")
