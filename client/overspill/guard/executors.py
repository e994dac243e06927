"""The two ways of waiting: on an event loop, and in the caller's own thread.

The guard is written once for both: its coroutines wait through a `Way` alone. With `Blocking` they never
suspend, and `finished` runs them without an event loop.
"""

from __future__ import annotations

from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from overspill.execution.threads import Threads
from overspill.execution.trio_threads import in_trio, run_in_trio_thread
from overspill.execution.waiting import finished
from overspill.shapes.content import is_quick

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.delivery.storage import Storage
    from overspill.guard.turn import PendingResult, RunningCall
    from overspill.previews.notice import Kept
    from overspill.shapes.content import Shape
    from overspill.text.limits import Limits
    from overspill.transfer.store_request import StoreRequest

__all__ = ["Blocking", "Looping", "Way", "finished"]

R = TypeVar("R")


class Way(Protocol):
    async def run(self, work: Callable[..., R], *args: Any) -> R:
        """`work(*args)`, which may take milliseconds, or block."""

    async def is_too_long(self, content: Shape, limits: Limits) -> bool:
        """Whether `content` exceeds `limits`, and no notice stands in it already."""

    async def decide(self, call: RunningCall, offer: PendingResult) -> int | None:
        """As `RunningCall.decide`."""

    async def put(self, storage: Storage, request: StoreRequest) -> Kept: ...


class Looping:
    """For code on an event loop, of asyncio or of trio: what takes long is done in threads."""

    def __init__(self) -> None:
        self._threads = Threads()

    def close(self) -> None:
        self._threads.close()

    async def run(self, work: Callable[..., R], *args: Any) -> R:
        return await self._threads.run(work, *args)

    async def is_too_long(self, content: Shape, limits: Limits) -> bool:
        counts_tokens = limits.max_tokens is not None and limits.counter is not None
        if is_quick(content, limits) and not counts_tokens:
            return _is_too_long(content, limits)
        return await self.run(_is_too_long, content, limits)

    async def run_alone(self, work: Callable[[], R]) -> R:
        """As `run`, for what may wait for a tool; in this context."""
        return await self._threads.run_alone(copy_context().run, work)

    async def decide(self, call: RunningCall, offer: PendingResult) -> int | None:
        if in_trio():
            return await run_in_trio_thread(call.decide_sync, offer)
        return await call.decide(offer)

    async def put(self, storage: Storage, request: StoreRequest) -> Kept:
        if in_trio():
            return await run_in_trio_thread(storage.put_sync, request)
        return await storage.put(request)


class Blocking:
    """For code without an event loop."""

    async def run(self, work: Callable[..., R], *args: Any) -> R:
        return work(*args)

    async def is_too_long(self, content: Shape, limits: Limits) -> bool:
        return _is_too_long(content, limits)

    async def decide(self, call: RunningCall, offer: PendingResult) -> int | None:
        return call.decide_sync(offer)

    async def put(self, storage: Storage, request: StoreRequest) -> Kept:
        return storage.put_sync(request)


def _is_too_long(content: Shape, limits: Limits) -> bool:
    return content.exceeds(limits) and not content.is_guarded()
