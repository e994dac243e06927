"""A few threads for CPU and file work.

They are apart from the event loop's own executor: an agent's blocking tools may fill that one, and an
output must not wait for the next tool to end before it can be stored.
"""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from overspill.execution.trio_threads import in_trio, run_in_trio_thread

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
WORKERS = 4


def is_lack_of_threads(error: RuntimeError) -> bool:
    """Return whether the system refused a thread: Python has no class for that."""
    return str(error).startswith("can't start new thread")


class Threads:
    """A pool of threads for blocking work, made on first use; a forked child makes its own."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._pid = 0

    async def run(self, work: Callable[..., T], *args: object) -> T:
        """`work(*args)` in a thread. A cancelled caller leaves at once; the work itself runs to its end."""
        if in_trio():
            return await run_in_trio_thread(work, *args)
        return await asyncio.get_running_loop().run_in_executor(self._executor(), work, *args)

    async def run_alone(self, work: Callable[..., T], *args: object) -> T:
        """As `run`, in a thread of its own, for work that may wait for long: on a pipe, on a tool.

        The process can end without it.
        """
        if in_trio():
            return await run_in_trio_thread(work, *args)
        result: Future[T] = Future()

        def run() -> None:
            try:
                result.set_result(work(*args))
            except BaseException as error:  # noqa: BLE001  (it is raised where the result is awaited)
                result.set_exception(error)

        result.set_running_or_notify_cancel()
        threading.Thread(target=run, name="overspill-reader", daemon=True).start()
        return await asyncio.wrap_future(result)

    def close(self) -> None:
        """Let the threads end; what they are at is not waited for."""
        if self._pool is not None and self._pid == os.getpid():
            self._pool.shutdown(wait=False)
        self._pool = None

    def _executor(self) -> ThreadPoolExecutor:
        if self._pool is None or self._pid != os.getpid():  # a forked child has none of its parent's threads
            self._pool, self._pid = ThreadPoolExecutor(WORKERS, "overspill"), os.getpid()
        return self._pool
