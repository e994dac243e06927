"""An event loop in a thread of its own, which synchronous code hands coroutines to."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Future

T = TypeVar("T")

_PATIENCE: Final = 5.0
"""Seconds that closing waits for the thread; it is a daemon, so the process can end without it."""


class Portal:
    def __init__(self) -> None:
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = self._runner.get_loop()
        self._stop = asyncio.Event()
        self._submitted: dict[Future[Any], Coroutine[Any, Any, Any]] = {}
        self._thread = threading.Thread(target=self._serve, name="overspill-loop", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with self._runner:
            self._runner.run(self._stop.wait())
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
        return future
