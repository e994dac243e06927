"""The loop thread's executor: its threads do not keep the process alive, as asyncio's own would.

It looks up names of hosts. A name server that is silent takes half a minute of each look-up.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from overspill.execution.workers import NAMES

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class DaemonExecutor(ThreadPoolExecutor):
    """Asyncio takes no executor of another class. It starts no threads of its own."""

    def submit(self, work: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Let a worker call `work`."""
        future: Future[T] = Future()
        NAMES.submit(partial(_run, future, partial(work, *args, **kwargs)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002
        """Wait for nothing: an event loop calls this as it is closed."""


def _run(future: Future[T], work: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001  (it is raised where the future is awaited)
        future.set_exception(error)
