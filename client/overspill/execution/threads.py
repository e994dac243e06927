"""Runs work in threads for coroutines, on asyncio and on trio: pure work, disk work, and long waits.

These are not the threads of the event loop's own executor. An agent's blocking tools may fill that one, and
an output must not wait for a tool to end.
"""

from __future__ import annotations

import threading
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from overspill.execution.waiting import Reply, result
from overspill.execution.workers import BLOCKING, CLOSING, SMALL, WORK

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

T = TypeVar("T")

_LARGE_BYTES: Final = 1024 * 1024
"""Work on at least this much data leaves the interpreter's lock to others most of the time."""


def is_lack_of_threads(error: RuntimeError) -> bool:
    """Return whether the system refused a thread. Python has no exception class for that."""
    return str(error).startswith("can't start new thread")


async def run(work: Callable[..., T], *args: object) -> T:
    """Do pure work in a thread: `work(*args)`. A cancelled caller leaves at once; the work runs on."""
    return await run_fairly(None, 0, work, *args)


async def run_fairly(flow: Hashable, size: int, work: Callable[..., T], *args: object) -> T:
    """Do the same as `run`. `flow` and `size`, in bytes, decide its place in the queue: see `FairQueue`.

    A `size` of 0 means that it is not known.
    """
    reply: Reply[T] = Reply()
    workers = SMALL if 0 < size < _LARGE_BYTES else WORK
    workers.submit(partial(reply.answer_with, work, *args), flow, size)
    return await result(reply)


async def run_blocking(work: Callable[..., T], *args: object) -> T:
    """Do the same as `run`, for work that waits for a disk or a service."""
    return await result(begin_blocking(work, *args))


async def run_closing(work: Callable[..., T], *args: object) -> T:
    """Do the same as `run`, for work that waits for the loop thread of this process."""
    reply: Reply[T] = Reply()
    CLOSING.submit(partial(reply.answer_with, work, *args))
    return await result(reply)


def begin_blocking(work: Callable[..., T], *args: object) -> Reply[T]:
    """Begin work that waits for a disk or a service, and return the reply that gets its result."""
    reply: Reply[T] = Reply()
    BLOCKING.submit(partial(reply.answer_with, work, *args))
    return reply


async def run_alone(work: Callable[..., T], *args: object) -> T:
    """Do the same as `run`, in a thread of its own and in this context. For work that may wait for a tool.

    The process can end while it waits. Raises `RuntimeError` if no thread can be started.
    """
    reply: Reply[T] = Reply()
    do = partial(copy_context().run, reply.answer_with, work, *args)
    threading.Thread(target=do, name="overspill-reader", daemon=True).start()
    return await result(reply)
