"""The two ways of waiting: on an event loop, and in the caller's own thread.

The guard is written once for both: its coroutines wait through an `Executor` alone. With a `SyncExecutor`
they never suspend, and `waiting.run_sync` runs them without an event loop. Either way, what is stored is
stored by the loop thread of this process, which answers with a `Reply`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from overspill.execution import threads, waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable

    from overspill.execution.waiting import Reply
    from overspill.guard.turn import PendingResult, RunningCall

R = TypeVar("R")


class Executor(Protocol):
    """The ways in which the guard's coroutines wait."""

    async def run(self, flow: Hashable, work: Callable[..., R], *args: Any) -> R:
        """Do `work(*args)`, which may take milliseconds. `flow` says whose place in the queue it takes."""

    async def decide(self, call: RunningCall, pending: PendingResult) -> int | None:
        """Return the bytes that a notice may take, or None if the result stays: see `RunningCall.decide`."""

    async def result(self, reply: Reply[R]) -> R:
        """Wait for another thread, and return or raise its answer."""


class AsyncExecutor:
    """Waits on an event loop of asyncio or trio. Work that takes long is done in threads."""

    def run(self, flow: Hashable, work: Callable[..., R], *args: Any) -> Coroutine[Any, Any, R]:
        """Do `work(*args)`."""
        return threads.run_fairly(flow, 0, work, *args)

    def decide(self, call: RunningCall, pending: PendingResult) -> Coroutine[Any, Any, int | None]:
        """Return the bytes that a notice may take, or None if the result stays."""
        return call.decide(pending)

    def result(self, reply: Reply[R]) -> Coroutine[Any, Any, R]:
        """Return or raise the answer of another thread."""
        return waiting.result(reply)


class SyncExecutor:
    """Waits in the caller's thread, without an event loop. Pure work is done in that thread."""

    async def run(self, flow: Hashable, work: Callable[..., R], *args: Any) -> R:  # noqa: ARG002
        """Do `work(*args)`."""
        return work(*args)

    async def decide(self, call: RunningCall, pending: PendingResult) -> int | None:
        """Return the bytes that a notice may take, or None if the result stays."""
        return call.decide_sync(pending)

    async def result(self, reply: Reply[R]) -> R:
        """Return or raise the answer of another thread."""
        with waiting.signalled(reply) as done:
            done.get()
        return reply.result()


ASYNC: Final = AsyncExecutor()
SYNC: Final = SyncExecutor()
