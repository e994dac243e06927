"""Submissions to the loop thread: a coroutine, the context in which it runs, and the reply to its caller.

A coroutine begins at once. A subclass may be held: until it begins it costs only a few objects.
"""

from __future__ import annotations

import asyncio
import logging
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from overspill.errors import ClientClosed
from overspill.execution.waiting import Reply

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task
    from collections.abc import Callable, Coroutine
    from contextvars import Context

T = TypeVar("T")

log: Final = logging.getLogger("overspill")


class NoLoop(RuntimeError):
    """There is no loop thread for this call, or it has ended."""


class LoopEnded(NoLoop, ClientClosed):
    """A submission was ended before it was done, because its client was closed."""

    def __init__(self) -> None:
        super().__init__("the client was closed while this call was running")


class Ongoing:
    """The tasks and held submissions of one user of the loop thread. Only for the loop thread."""

    def __init__(self) -> None:
        self.tasks: set[Task[Any]] = set()
        self.held: set[Submission[Any]] = set()
        self._none_held = asyncio.Event()

    def discard(self, submission: Submission[Any]) -> None:
        """Note that a submission is not held now."""
        self.held.discard(submission)
        if not self.held:
            self._none_held.set()

    def end(self) -> None:
        """Cancel running tasks, and drop held submissions."""
        for task in list(self.tasks):
            task.cancel()
        self.drop_held()

    def drop_held(self) -> None:
        """Drop held submissions."""
        for submission in list(self.held):
            submission.drop()

    async def drained(self) -> None:
        """Wait until no task runs and no submission is held."""
        while self.tasks or self.held:
            if self.tasks:
                await asyncio.wait(self.tasks)
            else:
                self._none_held.clear()
                await self._none_held.wait()


class Submission(Generic[T]):
    """A coroutine to run. Anybody may wait for its `reply`; the methods are for the loop thread."""

    __slots__ = ("_context", "_coroutine", "_held_by", "_loop", "_ongoing", "_task", "reply")

    _loop: AbstractEventLoop
    _ongoing: Ongoing

    def __init__(self, coroutine: Coroutine[Any, Any, T] | None = None) -> None:
        self.reply: Reply[T] = Reply()
        self._context: Context = copy_context()
        self._coroutine = coroutine
        self._task: Task[_Ended] | None = None
        self._held_by: Ongoing | None = None

    def enter(self, loop: AbstractEventLoop, ongoing: Ongoing) -> None:
        """Enter the loop thread, as a part of `ongoing`, and begin."""
        self._loop, self._ongoing = loop, ongoing
        self.reply.canceller = self
        if self.reply.is_cancelled:
            self.drop()
        else:
            self.attempt(self.begin)

    def begin(self) -> None:
        """Run the coroutine. A subclass may get one, and run it, later."""
        assert self._coroutine is not None
        self.run(self._coroutine)

    def ended(self) -> None:
        """Clean up once this has run or was dropped. Must raise nothing."""

    def drop(self) -> None:
        """End a submission that has not begun, whether or not it has entered the loop thread."""
        if not self.reply.done():
            self._clear()
            self.reply.set_exception(LoopEnded())

    def attempt(self, step: Callable[..., object], *args: Any) -> bool:
        """Do a step before the coroutine runs. If the step fails, drop this and return False."""
        try:
            step(*args)
        except Exception:  # the boundary: the loop thread goes on with what else was submitted
            log.exception("what the loop thread was asked to do cannot begin")
            self.drop()
            return False
        return True

    def run(self, coroutine: Coroutine[Any, Any, T]) -> None:
        """Run the coroutine in its submitter's context, and answer with its result."""
        self._coroutine = coroutine
        task = self._task = self._loop.create_task(_contained(coroutine), context=self._context)
        self._ongoing.tasks.add(task)
        self._end_hold()
        task.add_done_callback(self._answer, context=self._context)

    def hold(self) -> None:
        """Wait until somebody calls `run` or `drop`."""
        self._held_by = self._ongoing
        self._held_by.held.add(self)

    def _end_hold(self) -> None:
        if self._held_by is not None:
            self._held_by.discard(self)
            self._held_by = None

    def cancel_soon(self) -> None:
        """Cancel it, from any thread, because nobody waits for it now."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._task is None:
            self.drop()
        else:
            self._task.cancel()

    def _answer(self, task: Task[_Ended]) -> None:
        self._ongoing.tasks.discard(task)
        self._clear()
        if task.cancelled():
            self.reply.set_exception(LoopEnded())
        elif (error := task.exception() or task.result().exit) is not None:
            self.reply.set_exception(error)
        else:
            self.reply.set_result(task.result().returned)

    def _clear(self) -> None:
        """Remove every trace of this from the loop thread."""
        self._end_hold()
        if self._coroutine is not None:
            self._coroutine.close()  # else Python warns of a coroutine that was never awaited
        self.ended()
        self.reply.canceller = None


class _Ended(NamedTuple):
    """The result of a coroutine, or the way in which it asked to end the process."""

    returned: Any = None
    exit: BaseException | None = None


async def _contained(coroutine: Coroutine[Any, Any, Any]) -> _Ended:
    """Keep a coroutine from ending the loop thread, which others use: these two errors end asyncio's loop."""
    try:
        return _Ended(await coroutine)
    except (SystemExit, KeyboardInterrupt) as error:
        return _Ended(exit=error)
