"""Pools whose threads all run from the start: a lack of threads shows then, not later."""

from __future__ import annotations

import _thread
import asyncio
import os
import queue
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill_service.errors import OutOfResources

if TYPE_CHECKING:
    from collections.abc import Callable

NICENESS: Final = 5
"""The niceness of threads that give way: they get a third of the CPU time of another thread on the core."""
COMMON_THREADS: Final = 4
"""Threads for occasional blocking calls: metrics, host names, credentials."""
RESOLVER_THREADS: Final = 4
"""Threads of libuv. It ends the process if it cannot start them."""
OTHER_THREADS: Final = 20
"""Threads of the back ends, and some to spare."""


def started_executor(count: int, name: str) -> ThreadPoolExecutor:
    """Return asyncio's kind of pool, with all its threads running. Raises `OutOfResources`."""
    pool = ThreadPoolExecutor(count, thread_name_prefix=name)
    release = threading.Event()
    try:
        for _ in range(count):
            pool.submit(release.wait)  # a waiting thread is not idle, so the next submit starts another
    except RuntimeError as error:
        pool.shutdown(wait=False, cancel_futures=True)
        raise _too_few_threads() from error
    finally:
        release.set()
    return pool


def _too_few_threads() -> OutOfResources:
    return OutOfResources(
        f"this process needs about {needed_threads()} threads and cannot start that many; raise the limit on "
        "processes and threads (ulimit -u, TasksMax=, a container's pids) or on address space (ulimit -v)"
    )


class Pool:
    """Threads for blocking work, which run from the start. The caller decides the order of the work.

    A piece of work costs a fraction of what it costs in asyncio's own executors: no future, and no lock.
    """

    def __init__(self, count: int, name: str, prepare: Callable[[], None] = lambda: None) -> None:
        """Each thread calls `prepare` first. Raises `OutOfResources`."""
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._prepare = prepare
        self._threads = [
            threading.Thread(target=self._serve, name=f"{name}_{number}", daemon=True)
            for number in range(count)
        ]
        try:
            for each in self._threads:
                each.start()
        except RuntimeError as error:
            self.close()
            raise _too_few_threads() from error

    def start(self, work: Callable[[], None], then: Callable[[], None]) -> None:
        """Call `work` in the next free thread, and then `then` on the event loop. `work` raises nothing."""
        self._queue.put(_Job(work, then, asyncio.get_running_loop()))

    def close(self, *, waits: bool = False) -> None:
        """Let the threads end after what was started. With `waits`, return once they have."""
        for _ in self._threads:
            self._queue.put(None)
        if waits:
            for each in self._threads:
                each.join()

    def _serve(self) -> None:
        self._prepare()
        while (job := self._queue.get()) is not None:
            job.work()
            with suppress(RuntimeError):  # the loop has ended, so nobody waits
                job.loop.call_soon_threadsafe(job.then)
            del job  # a thread that waits holds no result


class _Job(NamedTuple):
    work: Callable[[], None]
    then: Callable[[], None]
    loop: asyncio.AbstractEventLoop


def give_way() -> None:
    """Let the process's other threads run first while cores are short. Does nothing beyond Linux."""
    if sys.platform == "linux":  # elsewhere a niceness is a process's
        thread = threading.get_native_id()
        niceness = max(NICENESS, os.getpriority(os.PRIO_PROCESS, thread))  # the process's own may be higher
        os.setpriority(os.PRIO_PROCESS, thread, niceness)


def cpu_threads() -> int:
    """Return how many threads keep every core busy."""
    return max(2, os.cpu_count() or 2)


def needed_threads() -> int:
    return 3 * (cpu_threads() + 1) + COMMON_THREADS + RESOLVER_THREADS + OTHER_THREADS


def try_threads(count: int) -> None:
    """Start `count` threads at once, and end them. Raises `OutOfResources` if that is not possible."""
    release = threading.Event()
    try:
        for _ in range(count):
            _thread.start_new_thread(release.wait, ())  # takes a quarter of the time of a `Thread`
    except RuntimeError as error:
        raise _too_few_threads() from error
    finally:
        release.set()


async def prepare_threads() -> None:
    """Start the threads that all parts of the process share. Raises `OutOfResources`."""
    try_threads(needed_threads())
    loop = asyncio.get_running_loop()
    loop.set_default_executor(started_executor(COMMON_THREADS, "common"))
    with suppress(OSError):  # the answer does not matter: the call starts the threads of libuv
        await loop.getaddrinfo("localhost", None)
