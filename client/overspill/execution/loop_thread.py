"""An event loop in a thread of its own, which synchronous code hands coroutines to."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Future

T = TypeVar("T")

log: Final = logging.getLogger("overspill")

_PATIENCE: Final = 5.0
"""Seconds that closing waits for the thread; it is a daemon, so the process can end without it."""


class Portal:
    """Raises `RuntimeError` where no thread can be started."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = self._runner.get_loop()
        self._stop = asyncio.Event()
        self._submitted: dict[Future[Any], Coroutine[Any, Any, Any]] = {}
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._serve, name="overspill-loop", daemon=True)
        try:
            self._thread.start()
        except BaseException:  # the process has threads enough, or is ending
            self._runner.close()
            raise

    @property
    def is_alive(self) -> bool:
        """Whether its thread and loop live, in this very process."""
        return self._process == os.getpid() and self._thread.is_alive() and not self._loop.is_closed()

    def _serve(self) -> None:
        try:
            if _is_in_loop():
                log.warning("a thread runs inside another event loop, as under gevent: use Client there")
                self._loop.close()
            else:
                with self._runner:
                    self._runner.run(self._stop.wait())
        finally:
            for future, coroutine in list(self._submitted.items()):  # submitted too late to be started
                coroutine.close()
                future.cancel()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """What the coroutine returns or raises. An interrupt in the caller's thread cancels it.

        Raises `RuntimeError` where the portal is closed, or is asked from inside its own loop.
        """
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError("a SyncClient cannot be used inside its own event loop; use Client there")
        future = self._submit(coroutine)
        try:
            return future.result()
        except CancelledError:
            raise RuntimeError("the client was closed while this call was running") from None
        finally:
            future.cancel()

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin the coroutine; return what becomes its result. Cancelling that cancels the coroutine.

        Raises `RuntimeError` where the portal is closed.
        """
        return self._submit(coroutine)

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> bool:
        """Let the coroutine run without waiting for it, from any thread; False where the portal is closed."""
        try:
            self._submit(coroutine)
        except RuntimeError:
            return False
        return True

    def close(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run `last`, cancel what is still running, and end the thread."""
        if self.spawn(self._end(last)) and threading.current_thread() is not self._thread:
            self._thread.join(_PATIENCE)

    async def _end(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                await last()
        finally:
            self._stop.set()

    def _submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError:  # the loop is closed
            coroutine.close()
            raise
        self._submitted[future] = coroutine
        future.add_done_callback(lambda done: self._submitted.pop(done, None))
        if self._loop.is_closed():  # it has ended meanwhile, and nobody would start or close this one
            coroutine.close()
            future.cancel()
        return future


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
