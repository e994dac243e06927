"""Pools whose threads all run from the start: a lack of threads shows then, not later."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from overspill_service.errors import OutOfResources

if TYPE_CHECKING:
    from collections.abc import Callable

NICENESS: Final = 5
"""Of threads that give way: a third of the CPU time of another thread that wants the same core."""
COMMON_THREADS: Final = 4
"""Threads for occasional blocking calls: metrics, host names, credentials."""
RESOLVER_THREADS: Final = 4
"""Threads of libuv. It ends the process if it cannot start them."""
OTHER_THREADS: Final = 16
"""Threads of the back ends, and some to spare."""


def started_pool(count: int, name: str, prepare: Callable[[], None] | None = None) -> ThreadPoolExecutor:
    """Return a pool whose threads are running. Each has called `prepare`. Raises `OutOfResources`."""
    pool = ThreadPoolExecutor(count, thread_name_prefix=name, initializer=prepare)
    release = threading.Event()
    try:
        for _ in range(count):
            pool.submit(release.wait)  # a waiting thread is not idle, so the next submit starts another
    except RuntimeError as error:
        pool.shutdown(wait=False, cancel_futures=True)
        raise OutOfResources(
            f"this process needs about {needed_threads()} threads and cannot start that many; raise the "
            "limit on processes and threads (ulimit -u, TasksMax=, a container's pids)"
        ) from error
    finally:
        release.set()
    return pool


def give_way() -> None:
    """Let the process's other threads run first while cores are short. Does nothing beyond Linux."""
    if sys.platform == "linux":  # elsewhere a niceness is a process's
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


def cpu_threads() -> int:
    """Return how many threads keep every core busy."""
    return max(2, os.cpu_count() or 2)


def needed_threads() -> int:
    return 3 * cpu_threads() + 2 + COMMON_THREADS + RESOLVER_THREADS + OTHER_THREADS


async def prepare_threads() -> None:
    """Start the threads that all parts of the process share. Raises `OutOfResources`."""
    started_pool(needed_threads(), "trial").shutdown(wait=True)
    loop = asyncio.get_running_loop()
    loop.set_default_executor(started_pool(COMMON_THREADS, "common"))
    with suppress(OSError):  # the answer does not matter: the call starts the threads of libuv
        await loop.getaddrinfo("localhost", None)
