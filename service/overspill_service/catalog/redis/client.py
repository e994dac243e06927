"""One way to use any Redis, with a deadline, retries and clear errors.

Every command sent here may be repeated. The scripts recognise their own earlier work; the other commands are
reads or simple writes.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any, Final, Protocol

from redis import exceptions as redis_errors

from overspill_service.catalog.redis import failures
from overspill_service.errors import CatalogUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from redis.asyncio.client import PubSub

    from overspill_service.catalog.redis.scripts import Script

DEADLINE_SECONDS: Final = 3.0
"""Seconds for one operation with all its retries, a failover included."""
FIRST_PAUSE_SECONDS: Final = 0.01
MAX_PAUSE_SECONDS: Final = 0.25
DELETE_BATCH: Final = 256
"""Keys that are deleted together."""


class Connection(Protocol):
    """What the three ways to reach Redis have in common."""

    async def run(self, *command: Any) -> Any:
        """Try a command once, and return its answer. Raises redis-py's errors."""

    async def info(self, section: str) -> list[dict[str, Any]]:
        """Return INFO of every server that holds data, in any order."""

    def scan(self, pattern: str) -> AsyncIterator[bytes]:
        """Yield every matching key of all servers. Raises redis-py's errors."""

    def pubsub(self) -> PubSub:
        """Return a connection of its own for subscriptions. It connects at its first use."""

    async def reconnect(self) -> None:
        """Drop idle connections: the server behind them has changed its role."""

    async def close(self) -> None: ...


class RedisClient:
    def __init__(self, connection: Connection, deadline: float = DEADLINE_SECONDS) -> None:
        self._connection = connection
        self._deadline = deadline

    async def call(self, *command: Any) -> Any:
        """Return the answer to a command. Raises `CatalogUnavailable`."""
        return await self._retry(lambda: self._connection.run(*command))

    async def step(self, script: Script, keys: list[str], *arguments: Any) -> Any:
        """Return the answer of a script. Raises `CatalogUnavailable`."""
        rest = (len(keys), *keys, *arguments)
        return await self._retry(lambda: self._step(script, rest))

    async def info(self, section: str) -> list[dict[str, Any]]:
        answer: list[dict[str, Any]] = await self._retry(lambda: self._connection.info(section))
        return answer

    def pubsub(self) -> PubSub:
        """Return a connection for subscriptions, whose owner handles its failures."""
        return self._connection.pubsub()

    async def delete_matching(self, pattern: str) -> None:
        """Delete every matching key, with a deadline for each batch. Raises `CatalogUnavailable`."""
        keys = self._connection.scan(pattern)
        while batch := await self._retry(lambda: _batch(keys), is_repeatable=False):
            await asyncio.gather(*(self.call("UNLINK", key) for key in batch))

    async def close(self) -> None:
        await self._connection.close()

    async def _step(self, script: Script, rest: tuple[Any, ...]) -> Any:
        try:
            return await self._connection.run("EVALSHA", script.sha, *rest)
        except redis_errors.NoScriptError:  # a new or restarted server; EVAL makes it remember the script
            return await self._connection.run("EVAL", script.text, *rest)

    async def _retry(self, attempt: Callable[[], Awaitable[Any]], *, is_repeatable: bool = True) -> Any:
        reason, failure = f"Redis did not answer within {self._deadline:g} s", None
        try:
            async with asyncio.timeout(self._deadline):
                for pause in _pauses():
                    try:
                        return await attempt()
                    except (redis_errors.RedisError, redis_errors.RedisClusterException, OSError) as error:
                        reason, failure = failures.reason(error), error
                        if not (is_repeatable and failures.is_temporary(error)):
                            raise CatalogUnavailable(reason) from error
                    if reason == failures.READ_ONLY:  # a demoted master: connect to the new one
                        await self._connection.reconnect()
                    await asyncio.sleep(pause)
        except TimeoutError as error:
            raise CatalogUnavailable(reason) from failure or error


async def _batch(keys: AsyncIterator[bytes]) -> list[bytes]:
    """Return the next keys, an empty list at the end."""
    batch: list[bytes] = []
    async for key in keys:
        batch.append(key)
        if len(batch) == DELETE_BATCH:
            break
    return batch


def _pauses() -> Iterator[float]:
    pause = FIRST_PAUSE_SECONDS
    while True:
        yield pause * random.uniform(0.5, 1)  # noqa: S311  (jitter)
        pause = min(pause * 2, MAX_PAUSE_SECONDS)
