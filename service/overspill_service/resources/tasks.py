"""Tasks that have an owner: work on many items, during a block, and beyond the end of a cancelled caller."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterable,
        AsyncIterator,
        Awaitable,
        Callable,
        Coroutine,
        Iterable,
        Sequence,
    )

T = TypeVar("T")
R = TypeVar("R")

BATCH: Final = 100
"""Items that are worked on at once in batches."""


async def fan_out(
    work: Callable[[T], Coroutine[Any, Any, R]], items: Iterable[T] | AsyncIterable[T], *, concurrency: int
) -> list[R]:
    """Run `work` on every item, at most `concurrency` at once. Return the results in order.

    The first failure is raised after the other running work was cancelled and has ended.
    """
    tasks: list[asyncio.Task[R]] = []
    running: set[asyncio.Task[R]] = set()
    try:
        async for item in _each(items):
            if len(running) == concurrency:
                running = await _wait_for_one(running)
            task = asyncio.create_task(work(item))
            tasks.append(task)
            running.add(task)
        return await asyncio.gather(*tasks)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def in_batches(work: Callable[[T], Awaitable[R]], items: Sequence[T]) -> list[R]:
    """Run short work on every item, `BATCH` at once. Return the results in order.

    `fan_out` takes more time of its own. All at once would hold up everything else.
    """
    found: list[R] = []
    for start in range(0, len(items), BATCH):
        found += await asyncio.gather(*map(work, items[start : start + BATCH]))
    return found


async def _wait_for_one(running: set[asyncio.Task[R]]) -> set[asyncio.Task[R]]:
    """Wait until at least one task has ended, and return the others. Raises the failure of an ended task."""
    done, rest = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
    return rest


async def _each(items: Iterable[T] | AsyncIterable[T]) -> AsyncIterator[T]:
    if hasattr(items, "__aiter__"):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


@asynccontextmanager
async def running(work: Coroutine[Any, Any, None], name: str) -> AsyncIterator[None]:
    """Run the work in a task during the block. At its end, cancel the task and wait until it has ended."""
    task = asyncio.create_task(work, name=name)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def run_to_completion(work: Coroutine[Any, Any, R]) -> R:
    """Run the work to its end even if the caller is cancelled: the caller then waits for the end."""
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        try:
            await asyncio.wait([task])
        finally:
            task.cancel()  # a second cancellation, when the process ends, cancels the work
        if not task.cancelled():
            task.exception()  # read its failure, or asyncio reports it as never retrieved
        raise
