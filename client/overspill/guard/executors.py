"""The two ways of waiting: on an event loop, and in the caller's own thread.

The guard is written once for both: its coroutines wait through an `Executor` alone. With a `SyncExecutor`
they never suspend, and `run_sync` runs them without an event loop. Either way, what is stored is stored by
the loop thread of this process, which answers with a `Reply`.
"""

from __future__ import annotations

from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from overspill.execution import threads, waiting
from overspill.execution.waiting import run_sync
from overspill.shapes.content import is_quick

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from overspill.execution.waiting import Reply
    from overspill.guard.turn import PendingResult, RunningCall
    from overspill.shapes.content import Shape
    from overspill.text.limits import Limits

__all__ = ["AsyncExecutor", "Executor", "SyncExecutor", "run_sync"]

R = TypeVar("R")


class Executor(Protocol):
    async def run(self, flow: Hashable, work: Callable[..., R], *args: Any) -> R:
        """`work(*args)`, which may take milliseconds; `flow` says whose turn it uses."""

    async def is_too_long(self, flow: Hashable, content: Shape, limits: Limits) -> bool:
        """Whether `content` exceeds `limits`, and no notice stands in it already."""

    async def decide(self, call: RunningCall, offer: PendingResult) -> int | None:
        """As `RunningCall.decide`."""

    async def result(self, reply: Reply[R]) -> R:
        """Wait for what another thread does, and return or raise its answer."""


class AsyncExecutor:
    """For code on an event loop, of asyncio or of trio: what takes long is done in threads."""

    async def run(self, flow: Hashable, work: Callable[..., R], *args: Any) -> R:
        return await threads.run_fairly(flow, 0, work, *args)

    async def is_too_long(self, flow: Hashable, content: Shape, limits: Limits) -> bool:
        counts_tokens = limits.max_tokens is not None and limits.counter is not None
        if is_quick(content, limits) and not counts_tokens:
            return _is_too_long(content, limits)
        return await self.run(flow, _is_too_long, content, limits)

    async def run_alone(self, work: Callable[[], R]) -> R:
        """As `run`, for what may wait for a tool; in this context."""
        return await threads.run_alone(copy_context().run, work)

    async def decide(self, call: RunningCall, offer: PendingResult) -> int | None:
        return await call.decide(offer)

    async def result(self, reply: Reply[R]) -> R:
        return await waiting.result(reply)


class SyncExecutor:
    """For code without an event loop: pure work is done in the caller's thread."""

    async def run(self, flow: Hashable, work: Callable[..., R], *args: Any) -> R:  # noqa: ARG002
        return work(*args)

    async def is_too_long(self, flow: Hashable, content: Shape, limits: Limits) -> bool:  # noqa: ARG002
        return _is_too_long(content, limits)

    async def decide(self, call: RunningCall, offer: PendingResult) -> int | None:
        return call.decide_sync(offer)

    async def result(self, reply: Reply[R]) -> R:
        waiting.wait_blocking(reply)
        return reply.result()


def _is_too_long(content: Shape, limits: Limits) -> bool:
    return content.exceeds(limits) and not content.is_guarded()
