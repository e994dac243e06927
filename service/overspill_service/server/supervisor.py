"""Several serving processes on one socket: start them, replace one that dies, stop them together."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from overspill_service.errors.system import resource_failure
from overspill_service.server.process import url_of
from overspill_service.telemetry.logs import fields
from overspill_service.telemetry.multiprocess import VARIABLE, SharedMemories, new_memory

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    from overspill_service.settings.settings import Settings

MIN_LIFE_SECONDS: Final = 5.0
"""Seconds. A worker that dies sooner after its start is replaced only after a pause of this length."""

log = logging.getLogger(__name__)


class Supervisor:
    """Owns the worker processes. Each inherits the listening socket, and ends when this process does."""

    def __init__(self, settings: Settings, listener: socket.socket, arguments: Sequence[str]) -> None:
        self._settings, self._listener, self._arguments = settings, listener, arguments
        self._stop = asyncio.Event()
        self._exit_code = 0
        self._workers: set[asyncio.subprocess.Process] = set()

    async def run(self) -> int:
        """Run until SIGTERM or SIGINT, or until a worker cannot start. Return the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        loop.add_signal_handler(signal.SIGHUP, self._forward_reload)
        url = url_of(self._listener, self._settings)
        descriptors = [new_memory() for _ in range(self._settings.workers)]
        started = [loop.create_future() for _ in descriptors]
        async with asyncio.TaskGroup() as group:
            group.create_task(self._close_listener())
            for own, future in enumerate(started):
                group.create_task(self._keep_alive(SharedMemories(own, descriptors), future))
            if all(await asyncio.gather(*started)):
                print(f"overspill-service listens on {url}", flush=True)
        return self._exit_code

    def _forward_reload(self) -> None:
        """Have every worker read its settings again."""
        for worker in self._workers:
            with suppress(ProcessLookupError):  # it has just ended
                worker.send_signal(signal.SIGHUP)

    async def _close_listener(self) -> None:
        """Close the socket at a stop: then no client waits for an answer that no worker will give."""
        await self._stop.wait()
        self._listener.close()

    async def _keep_alive(self, memories: SharedMemories, started: asyncio.Future[bool]) -> None:
        """Keep one worker alive until the stop."""
        while not self._stop.is_set():
            born = time.monotonic()
            worker = await self._try_spawn(memories, is_first=not started.done())
            if worker is None:
                continue
            self._workers.add(worker)
            if not started.done():
                started.set_result(await self._has_started(worker))
            code = await self._wait(worker)
            self._workers.discard(worker)
            if not started.result() and not self._stop.is_set():
                self._exit_code = code or 1
                self._stop.set()
            if not self._stop.is_set():
                log.error("a worker ended and is replaced", extra=fields(worker=worker.pid, exit_code=code))
                await self._pause(MIN_LIFE_SECONDS if time.monotonic() - born < MIN_LIFE_SECONDS else 0)
        if not started.done():
            started.set_result(False)

    async def _try_spawn(
        self, memories: SharedMemories, *, is_first: bool
    ) -> asyncio.subprocess.Process | None:
        """Start a worker. Return None, after a pause, if the system refuses to replace one."""
        try:
            return await self._spawn(memories)
        except (OSError, RuntimeError, MemoryError) as error:
            if is_first:
                raise
            log.error("a worker cannot be started, to be tried again: %s", resource_failure(error) or error)  # noqa: TRY400  (a line says what to do)
            await self._pause(MIN_LIFE_SECONDS)
            return None

    async def _spawn(self, memories: SharedMemories) -> asyncio.subprocess.Process:
        descriptor = self._listener.fileno()
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "overspill_service",
            "work",
            str(descriptor),
            *self._arguments,
            stdin=asyncio.subprocess.PIPE,  # its end tells the worker that this process is gone
            stdout=asyncio.subprocess.PIPE,
            pass_fds=[descriptor, *memories.descriptors],  # all of them: any worker may add the values up
            env=os.environ | {VARIABLE: str(memories)},
        )

    async def _has_started(self, worker: asyncio.subprocess.Process) -> bool:
        """Return whether the worker reported that it listens. False if it ended, or a stop came first."""
        assert worker.stdout is not None
        line = asyncio.create_task(worker.stdout.readline())
        stop = asyncio.create_task(self._stop.wait())
        await asyncio.wait([line, stop], return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not line.done():
            line.cancel()
            return False
        return bool(line.result())

    async def _wait(self, worker: asyncio.subprocess.Process) -> int:
        """Wait for the worker, and return its exit code.

        Pass a stop on, and kill a worker that does not end.
        """
        ended = asyncio.create_task(worker.wait())
        stop = asyncio.create_task(self._stop.wait())
        await asyncio.wait([ended, stop], return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not ended.done():
            worker.send_signal(signal.SIGTERM)
            await asyncio.wait(
                [ended], timeout=self._settings.drain_delay + self._settings.grace + MIN_LIFE_SECONDS
            )
        if not ended.done():
            worker.kill()
        return await ended

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._stop.wait(), seconds)
        except TimeoutError:
            return
