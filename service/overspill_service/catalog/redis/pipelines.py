"""Send the commands of many tasks over few connections.

Commands that wait while all are busy share a pipeline. Under load a command costs a third that way. No caller
holds a connection, so a cancelled one cannot leave an answer behind for the next. This module knows nothing
of retries, of deadlines, or of what commands mean.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redis.asyncio import Redis

PIPELINES: Final = 4
"""Pipelines at the same time, each on a connection of its own."""
MAX_COMMANDS: Final = 64
"""Commands in one pipeline."""
PIPELINE_TIMEOUT_SECONDS: Final = 2.0
"""Seconds for one pipeline. One timer for all of it costs less than redis-py's timer for each command."""

Command = tuple[Any, ...]


class Pipelines:
    def __init__(self, client: Redis) -> None:
        self._client = client
        self._waiting: deque[tuple[Command, asyncio.Future[Any]]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_starting = False

    async def run(self, *command: Any) -> Any:
        """Return the command's answer. Raises redis-py's errors."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((command, future))
        # One task at a time starts, so that commands of the same loop iteration share its pipeline.
        if not self._is_starting and len(self._tasks) < PIPELINES:
            self._is_starting = True
            task = asyncio.create_task(self._drain())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await future

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        _fail(list(self._waiting), RedisConnectionError("closed"))
        self._waiting.clear()

    async def _drain(self) -> None:
        self._is_starting = False
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(MAX_COMMANDS, len(self._waiting)))]
            # Its caller was cancelled while it waited: do not send the command at all.
            batch = [(command, future) for command, future in batch if not future.done()]
            if not batch:
                continue
            try:
                async with asyncio.timeout(PIPELINE_TIMEOUT_SECONDS):
                    answers = await self._send([command for command, _ in batch])
            except TimeoutError:
                _fail(batch, RedisTimeoutError("no answer"))
            except Exception as error:  # noqa: BLE001  (it goes to the callers)
                _fail(batch, error)
            except BaseException:  # cancelled by `close`: no caller may wait for ever
                _fail(batch, RedisConnectionError("closed"))
                raise
            else:
                _answer(batch, answers)

    async def _send(self, commands: Sequence[Command]) -> Sequence[Any]:
        if len(commands) == 1:
            return [await self._client.execute_command(*commands[0])]  # type: ignore[no-untyped-call]
        async with self._client.pipeline(transaction=False) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)
            # An error of one command belongs to its caller alone.
            answers: list[Any] = await pipeline.execute(raise_on_error=False)
            return answers


def _answer(batch: Sequence[tuple[Command, asyncio.Future[Any]]], answers: Sequence[Any]) -> None:
    for (_, future), answer in zip(batch, answers, strict=True):
        if future.done():
            continue
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)


def _fail(batch: Sequence[tuple[Command, asyncio.Future[Any]]], error: Exception) -> None:
    for _, future in batch:
        if not future.done():
            future.set_exception(error)
