"""Waiting for a future of any thread: on an event loop, and in the caller's own thread."""

from __future__ import annotations

import asyncio
from concurrent import futures
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from concurrent.futures import Future

R = TypeVar("R")


class Wait(Protocol):
    async def __call__(self, future: Future[Any], seconds: float) -> bool:
        """Wait for `future` for so long at most; return whether it is done."""


async def wait_on_loop(future: Future[Any], seconds: float) -> bool:
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


async def wait_blocking(future: Future[Any], seconds: float) -> bool:
    """As `Wait`, without an event loop: blocks the thread, and never suspends."""
    futures.wait([future], timeout=seconds)
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
