"""The coroutines that one user runs in the loop thread, from any thread."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from overspill.errors import ClientClosed
from overspill.execution.loop_thread import CLOSE_SECONDS, LoopThread, shared
from overspill.execution.submissions import Ongoing, Submission
from overspill.execution.waiting import Reply, result, wait_blocking
from overspill.execution.workers import CLOSING

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")

OWN_LOOP: Final = "a SyncClient cannot be used inside its own event loop; use Client there"
_CLOSED: Final = (
    "its client was closed: what that client began has ended, and nothing more can be done with it"
)
FORKED: Final = "this was begun before the process forked: only the parent can go on with it, not its child"


class Calls:
    """The coroutines of one user, a client or a guard, in one loop thread. It can be used in any thread.

    Raises `RuntimeError` if no thread can be started.
    """

    def __init__(self) -> None:
        self.ongoing: Ongoing = Ongoing()
        self.thread: LoopThread = shared.join(self.ongoing)
        self._is_closed = False

    @property
    def is_alive(self) -> bool:
        """Whether it can run coroutines in this process."""
        return self.thread.is_alive and not self._is_closed

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine; return or raise what it does. An interrupt of the caller's thread cancels it.

        Raises `ClientClosed` after `close`, and `RuntimeError` inside the loop thread and in a forked child.
        """
        if self.thread.is_here:
            coroutine.close()
            raise RuntimeError(OWN_LOOP)
        reply = self.submit(coroutine)
        wait_blocking(reply)
        return reply.result()

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Reply[T]:
        """Begin the coroutine; return the reply that gets its result. Cancelling it cancels the coroutine.

        Raises `ClientClosed` after `close`, and `RuntimeError` in a forked child.
        """
        return self.enter(Submission(coroutine))

    def enter(self, submission: Submission[T]) -> Reply[T]:
        """Do the same as `submit`, for any submission."""
        if self._is_closed:
            submission.drop()
            raise ClientClosed(_CLOSED)
        if self.thread.is_inherited:
            submission.drop()
            raise RuntimeError(FORKED)
        return self.thread.submit(submission, self.ongoing)

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> bool:
        """Begin the coroutine, without an answer. Return False after `close`."""
        try:
            self.submit(coroutine)
        except RuntimeError:
            return False
        return True

    def task(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begin the coroutine, for code on an event loop. Return its task, which `close` cancels."""
        if not self.thread.is_here:
            coroutine = result(self.submit(coroutine))
        task = asyncio.get_running_loop().create_task(coroutine)
        self.ongoing.tasks.add(task)
        task.add_done_callback(self.ongoing.tasks.discard)
        return task

    def close(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Cancel what still runs, run `last`, and leave the thread, which ends with its last user."""
        if not self._begins_to_end():
            return
        try:
            ended = self.thread.submit(Submission(self._end(last)), Ongoing())
        except RuntimeError:  # the thread has ended already
            ended = None
        if ended is not None and not self.thread.is_here:
            wait_blocking(ended, CLOSE_SECONDS)
        shared.leave(self.thread, self.ongoing)

    def leave(self) -> None:
        """Begin nothing more, and leave the thread once everything that was begun has ended."""
        if not self._begins_to_end():
            return
        try:
            drained = self.thread.submit(Submission(self.ongoing.drained()), Ongoing())
        except RuntimeError:  # the thread has ended already
            self._detach(None)
        else:
            drained.add_done_callback(self._detach)

    def _begins_to_end(self) -> bool:
        """Refuse new calls.

        Return False if they were already refused, or if only the parent process may end this.
        """
        was_closed, self._is_closed = self._is_closed, True
        return not (was_closed or self.thread.is_inherited)

    async def _end(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.ongoing.end()
        async with asyncio.timeout(CLOSE_SECONDS):
            await last()

    def _detach(self, _: object) -> None:
        CLOSING.submit(partial(shared.leave, self.thread, self.ongoing))
