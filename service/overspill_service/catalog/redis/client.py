"""One way to use any Redis, with a deadline, retries and clear errors.

Every command sent here may be repeated. The scripts recognise their own earlier work; the other commands are
reads or simple writes.
"""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING, Any, Final, Protocol

from redis import exceptions as redis_errors

from overspill_service.catalog.redis import failures
from overspill_service.errors import CatalogRefuses, CatalogSilent, CatalogUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from overspill_service.catalog.redis.link import Link
    from overspill_service.catalog.redis.script import Script

DEADLINE_SECONDS: Final = 3.0
"""Seconds for one operation with all its retries, a failover included."""
FIRST_PAUSE_SECONDS: Final = 0.01
MAX_PAUSE_SECONDS: Final = 0.25
DELETE_BATCH: Final = 256
"""Keys that are deleted together."""
_FAILURES: Final = redis_errors.RedisError, redis_errors.RedisClusterException, OSError


class Connection(Protocol):
    """The interface of the three ways to reach Redis."""

    async def run(self, *command: Any, publishes: bool = False) -> Any:
        """Try a command once, and return its answer, within a time of its own. Raises redis-py's errors.

        `publishes`: the command tells subscribers something. They should not have to wait for its answer.
        """

    async def info(self, section: str) -> list[dict[str, Any]]:
        """Return INFO of every server that holds data, in any order."""

    def scan(self, pattern: str) -> AsyncIterator[bytes]:
        """Yield every matching key of all servers. Raises redis-py's errors."""

    async def subscriber(self) -> Link:
        """Return a connection of its own for subscriptions. Raises redis-py's errors."""

    async def reconnect(self) -> None:
        """Drop idle connections: the server behind them has changed its role."""

    async def close(self) -> None: ...


class RedisClient:
    def __init__(self, connection: Connection, deadline: float = DEADLINE_SECONDS) -> None:
        self._connection = connection
        self._deadline = deadline

    async def call(self, *command: Any) -> Any:
        """Return a command's answer. Raises `CatalogUnavailable`: `CatalogRefuses` if nothing was done."""
        return await self._retry(self._connection.run, *command)

    async def step(self, script: Script, keys: list[str], *arguments: Any) -> Any:
        """Return the answer of a script. Raises what `call` raises."""
        return await self._retry(self._step, script, len(keys), *keys, *arguments)

    async def hash(self, key: str) -> dict[bytes, bytes]:
        """Return all fields of a hash. Raises `CatalogUnavailable`."""
        answer = await self.call("HGETALL", key)
        return answer if isinstance(answer, dict) else dict(zip(answer[::2], answer[1::2], strict=True))

    async def info(self, section: str) -> list[dict[str, Any]]:
        answer: list[dict[str, Any]] = await self._retry(self._connection.info, section)
        return answer

    async def subscriber(self) -> Link:
        """Return a connection for subscriptions. Its owner handles its failures: redis-py's errors."""
        return await self._connection.subscriber()

    async def delete_matching(self, pattern: str) -> None:
        """Delete every matching key, with a deadline for each batch. Raises `CatalogUnavailable`."""
        keys = self._connection.scan(pattern)
        while batch := await self._within_deadline(_batch, keys):
            await asyncio.gather(*(self.call("UNLINK", key) for key in batch))

    async def close(self) -> None:
        await self._connection.close()

    async def _step(self, script: Script, *rest: Any) -> Any:
        try:
            return await self._connection.run("EVALSHA", script.sha, *rest, publishes=script.publishes)
        except redis_errors.NoScriptError:  # a new or restarted server; EVAL makes it remember the script
            return await self._connection.run("EVAL", script.text, *rest)

    async def _within_deadline(self, attempt: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
        """Return what one attempt does. Raises `CatalogUnavailable`."""
        try:
            async with asyncio.timeout(self._deadline):
                return await attempt(*arguments)
        except TimeoutError as error:
            raise CatalogUnavailable(f"Redis did not answer within {self._deadline:g} s") from error
        except _FAILURES as error:
            raise CatalogUnavailable(failures.reason(error)) from error

    async def _retry(self, attempt: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
        """Return what an attempt does. The first one needs no timer: a connection has its own."""
        since = time.monotonic()
        try:
            return await attempt(*arguments)
        except _FAILURES as error:
            if failures.is_refusal(error):  # never after a failed attempt, which may have done it all
                raise CatalogRefuses(failures.reason(error)) from error
            await self._require_temporary(error)
            return await self._again(error, since, attempt, *arguments)

    async def _again(
        self, failure: Exception, since: float, attempt: Callable[..., Awaitable[Any]], *arguments: Any
    ) -> Any:
        """Repeat an attempt that has failed until the deadline."""
        try:
            async with asyncio.timeout(self._deadline - (time.monotonic() - since)):
                for pause in _pauses():
                    await asyncio.sleep(pause)
                    try:
                        return await attempt(*arguments)
                    except _FAILURES as error:
                        failure = error
                        await self._require_temporary(error)
        except TimeoutError:
            raise CatalogSilent(failures.reason(failure)) from failure

    async def _require_temporary(self, error: Exception) -> None:
        """Raise `CatalogUnavailable`, unless the same command may succeed in a moment."""
        reason = failures.reason(error)
        if not failures.is_temporary(error):
            raise CatalogUnavailable(reason) from error
        if reason == failures.READ_ONLY:  # a demoted master: connect to the new one
            await self._connection.reconnect()


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
