"""Waiting for what another thread does: on an event loop, and in the caller's own thread.

A signal handler can run in the main thread at any moment, also while that thread waits here, and may wait
for the same threads itself. So nothing here holds a lock that such a thread needs.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

R = TypeVar("R")

log: Final = logging.getLogger("overspill")


class Pending(Protocol):
    """A `Reply`, or a `concurrent.futures.Future`."""

    def done(self) -> bool:
        """Return whether there is a result, an exception, or a cancellation."""

    def cancel(self) -> bool:
        """Ask that it ends without a result; return whether it may still do so."""

    def add_done_callback(self, callback: Callable[[Any], object], /) -> None:
        """Call `callback` with this once it is done, at once if it is done already. The thread may be any."""


class Reply(Generic[R]):
    """What a thread will answer, once, without any lock. `is_cancelled`: nobody waits for it any more."""

    def __init__(self) -> None:
        self.is_cancelled: bool = False
        self._answer: tuple[R] | BaseException | None = None
        self._callbacks: deque[Callable[[Reply[R]], object]] = deque()

    def done(self) -> bool:
        """Return whether there is a result or an exception."""
        return self._answer is not None

    def cancel(self) -> bool:
        """Note that nobody waits any more; return whether it was not done yet."""
        self.is_cancelled = True
        return not self.done()

    def set_result(self, result: R) -> None:
        """Take the result, and tell who waits."""
        self._answer = (result,)
        self._call_back()

    def set_exception(self, error: BaseException) -> None:
        """Take the exception that `result` raises, and tell who waits."""
        self._answer = error
        self._call_back()

    def result(self) -> R:
        """Return the answer, or raise it; there must be one."""
        if isinstance(self._answer, BaseException):
            raise self._answer
        assert self._answer is not None
        return self._answer[0]

    def add_done_callback(self, callback: Callable[[Reply[R]], object], /) -> None:
        """Call `callback` once there is an answer, in the thread that gives it, or at once."""
        self._callbacks.append(callback)
        if self.done():
            self._call_back()

    def _call_back(self) -> None:
        while True:
            try:
                callback = self._callbacks.popleft()
            except IndexError:
                return
            try:
                callback(self)
            except Exception:
                log.exception("what follows an answer failed")


class Wait(Protocol):
    """How a caller waits: by blocking its thread, or by awaiting on its event loop."""

    async def __call__(self, future: Pending, seconds: float) -> bool:
        """Wait for `future` for so long at most; return whether it is done."""


async def wait_on_loop(future: Pending, seconds: float) -> bool:
    """As `Wait`, on an asyncio event loop. A cancelled caller cancels the future."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def tell(_: object) -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(done.set)

    future.add_done_callback(tell)
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await done.wait()
    except asyncio.CancelledError:
        future.cancel()
        raise
    return future.done()


async def wait_blocking(future: Pending, seconds: float) -> bool:
    """As `Wait`, without an event loop: blocks the thread, and never suspends."""
    done: SimpleQueue[None] = SimpleQueue()
    future.add_done_callback(lambda _: done.put(None))
    with suppress(Empty):
        done.get(timeout=seconds)
    return future.done()


def finished(coroutine: Coroutine[Any, Any, R]) -> R:
    """Return what a coroutine that never suspends returns, or raise what it raises."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        result: R = ended.value
        return result
    coroutine.close()
    raise RuntimeError("a coroutine suspended where nothing could resume it")
