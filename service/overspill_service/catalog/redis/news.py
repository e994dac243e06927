"""News of live captures in Redis: one subscribed connection for each process, made at the first watch."""

from __future__ import annotations

import asyncio
import logging
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from redis import exceptions as redis_errors

from overspill_service.catalog.live import LOOK_AGAIN
from overspill_service.catalog.redis import failures, key_names
from overspill_service.catalog.redis.access import RedisAccess

if TYPE_CHECKING:
    from collections.abc import Callable

    from redis.asyncio.client import PubSub

    from overspill_service.catalog.redis.client import RedisClient

PAUSE_SECONDS: Final = 0.5
"""How long to wait before a broken connection is made again."""
SUBSCRIBE_SECONDS: Final = 3.0
_OFFSET: Final = struct.Struct(">Q")

log = logging.getLogger(__name__)


class RedisNews(RedisAccess):
    def __init__(self, client: RedisClient) -> None:
        super().__init__(client)
        self._watched: dict[str, Callable[[int, bytes], None]] = {}
        self._pubsub: PubSub | None = None
        self._reading: asyncio.Task[None] | None = None

    async def watch(self, tenant: str, capture: str, on_news: Callable[[int, bytes], None]) -> None:
        channel = key_names.news(tenant, capture)
        self._watched[channel] = on_news
        if self._reading is None:
            self._reading = asyncio.create_task(self._read(), name="news of live captures")
        elif self._pubsub is not None:
            await self._tell(self._pubsub.subscribe, channel)

    async def unwatch(self, tenant: str, capture: str) -> None:
        channel = key_names.news(tenant, capture)
        self._watched.pop(channel, None)
        if self._pubsub is not None:
            await self._tell(self._pubsub.unsubscribe, channel)

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
            self._reading = None
        await super().close()

    async def _tell(self, command: Callable[[str], object], channel: str) -> None:
        """Subscribe or unsubscribe. If that fails, the reading task connects again, and tells them all."""
        with suppress(redis_errors.RedisError, OSError, TimeoutError):
            async with asyncio.timeout(SUBSCRIBE_SECONDS):
                await command(channel)  # type: ignore[misc]  # redis-py types it for both kinds of client

    async def _read(self) -> None:
        """Read news for ever. After a broken connection everybody who watches looks again."""
        while True:
            try:
                await self._read_connection()
            except (redis_errors.RedisError, OSError) as error:
                log.info("news of live captures are interrupted: %s", failures.reason(error))
            await asyncio.sleep(PAUSE_SECONDS)

    async def _read_connection(self) -> None:
        pubsub = self._pubsub = self._client.pubsub()
        try:
            await pubsub.subscribe(key_names.PING, *self._watched)
            for on_news in list(self._watched.values()):
                on_news(LOOK_AGAIN, b"")
            async for message in pubsub.listen():
                if message["type"] == "message":
                    self._pass_on(message["channel"].decode(), message["data"])
                elif message["type"] == "subscribe":  # what came before is unknown
                    self._pass_on(message["channel"].decode(), b"s")
        finally:
            self._pubsub = None
            with suppress(redis_errors.RedisError, OSError):
                await pubsub.aclose()  # type: ignore[no-untyped-call]

    def _pass_on(self, channel: str, data: bytes) -> None:
        on_news = self._watched.get(channel)
        if on_news is None:
            return
        if data[:1] == b"a":
            (offset,) = _OFFSET.unpack_from(data, 1)
            on_news(offset, data[1 + _OFFSET.size :])
        else:
            on_news(LOOK_AGAIN, b"")
