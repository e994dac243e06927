"""Waits for another thread's answer: on an event loop, or in the caller's own thread.

A signal handler can run in the main thread at any moment, even while that thread waits here. It may wait for
the same threads itself. So nothing here holds a lock that those threads need.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import sys
from collections import deque
from contextlib import contextmanager, suppress
from queue import Empty
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

R = TypeVar("R")

log: Final = logging.getLogger("overspill")


class Canceller(Protocol):
    """A call that ends work whose answer nobody waits for."""

    def cancel_soon(self) -> None:
        """Cancel the work, from any thread."""


class Reply(Generic[R]):
    """The answer that another thread will give, once. It takes no lock.

    `is_cancelled`: nobody waits for the answer any more.
    """

    __slots__ = ("__weakref__", "_answer", "_callbacks", "canceller", "is_cancelled")

    def __init__(self) -> None:
        self.is_cancelled: bool = False
        self.canceller: Canceller | None = None
        """Called when nobody waits for the answer now."""
        self._answer: tuple[R] | BaseException | None = None
        self._callbacks: deque[Callable[[Reply[R]], object]] = deque()

    def done(self) -> bool:
        """Return whether there is a result or an exception."""
        return self._answer is not None

    def cancel(self) -> bool:
        """Note that nobody waits now. Return whether there was no answer yet."""
        if self.done():
            return False
        self.is_cancelled = True
        if (canceller := self.canceller) is not None:  # its own thread may remove it meanwhile
            canceller.cancel_soon()
        return True

    def answer_with(self, work: Callable[..., R], *args: Any) -> None:
        """Answer with what `work(*args)` returns or raises. Do nothing if nobody waits."""
        if self.is_cancelled:
            return
        try:
            self.set_result(work(*args))
        except BaseException as error:  # noqa: BLE001  (it is raised where the answer is awaited)
            self.set_exception(error)

    def set_result(self, result: R) -> None:
        """Answer with a result, and call the callbacks."""
        self._answer = (result,)
        self._call_back()

    def set_exception(self, error: BaseException) -> None:
        """Answer with an exception, which `result` raises, and call the callbacks."""
        self._answer = error
        self._call_back()

    def result(self) -> R:
        """Return or raise the answer. Call it only when `done` is true."""
        if isinstance(self._answer, BaseException):
            raise self._answer
        assert self._answer is not None
        return self._answer[0]

    def add_done_callback(self, callback: Callable[[Reply[R]], object], /) -> None:
        """Call `callback` once there is an answer, in the thread that gives it, or at once."""
        self._callbacks.append(callback)
        if self.done():
            self._call_back()

    def _call_back(self) -> None:
        while True:
            try:
                callback = self._callbacks.popleft()
            except IndexError:
                return
            try:
                callback(self)
            except Exception:
                log.exception("what follows an answer failed")


def in_trio() -> bool:
    """Return whether the caller runs under trio, which is never imported here."""
    trio: Any = sys.modules.get("trio")
    return trio is not None and bool(trio.lowlevel.in_trio_task())


async def wait(reply: Reply[Any], seconds: float | None = None) -> bool:
    """Wait for `reply`, for `seconds` at most. Return whether it is done.

    Works on asyncio and on trio, also as a back end of anyio. A cancelled caller cancels the reply.
    """
    if reply.done():
        return True
    try:
        await (_wait_in_trio(reply, seconds) if in_trio() else _future_of(reply, seconds))
    except BaseException:
        reply.cancel()
        raise
    return reply.done()


async def result(reply: Reply[R]) -> R:
    """Wait for `reply`, and return or raise the answer. It does what `wait` does, with one coroutine less."""
    if not reply.done():
        try:
            await (_wait_in_trio(reply, None) if in_trio() else _future_of(reply, None))
        except BaseException:
            reply.cancel()
            raise
    return reply.result()


async def pause() -> None:
    """Let other tasks of the event loop go on first."""
    if in_trio():
        await sys.modules["trio"].lowlevel.checkpoint()
    else:
        await asyncio.sleep(0)


def _future_of(reply: Reply[Any], seconds: float | None) -> asyncio.Future[None]:
    """Return a future that is done once there is an answer, or after `seconds`."""
    waker = _Waker(loop=asyncio.get_running_loop())
    reply.add_done_callback(waker)
    if seconds is not None:
        timer = waker.get_loop().call_later(seconds, _settle, waker)
        waker.add_done_callback(lambda _: timer.cancel())
    return waker


class _Waker(asyncio.Future[None]):
    """A future of this event loop, which any thread settles by a call."""

    __slots__ = ()

    def __call__(self, _: object) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self.get_loop().call_soon_threadsafe(_settle, self)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def _wait_in_trio(reply: Reply[Any], seconds: float | None) -> None:
    trio: Any = sys.modules["trio"]
    done, token = trio.Event(), trio.lowlevel.current_trio_token()

    def wake(_: object) -> None:
        with suppress(trio.RunFinishedError):
            token.run_sync_soon(done.set)

    reply.add_done_callback(wake)
    with trio.move_on_after(float("inf") if seconds is None else seconds):
        await done.wait()


@contextmanager
def signalled(reply: Reply[Any]) -> Iterator[queue.SimpleQueue[None]]:
    """Give a queue that gets an item once there is an answer, for a thread that waits in the block.

    If the block fails, as by an interrupt, the reply is cancelled.
    """
    done: queue.SimpleQueue[None] = queue.SimpleQueue()
    reply.add_done_callback(lambda _: done.put(None))
    try:
        yield done
    except BaseException:
        reply.cancel()
        raise


def wait_blocking(reply: Reply[Any], seconds: float | None = None) -> bool:
    """Do the same as `wait`, without an event loop: it blocks the thread."""
    with signalled(reply) as done, suppress(Empty):
        done.get(timeout=seconds)
    return reply.done()


def run_sync(coroutine: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine that never suspends; return or raise what it does.

    Raises `RuntimeError` if it suspends.
    """
    try:
        coroutine.send(None)
    except StopIteration as ended:
        returned: R = ended.value
        return returned
    coroutine.close()
    raise RuntimeError("a coroutine suspended where nothing could resume it")
