"""One guard's way into the loop thread of the process.

`Calls` belong to one loop thread, and end with it. Here a thread is joined when it is first needed, and
another one after a fork or the end of the first. Any thread may begin a coroutine here. Only the loop thread
itself may not: it would wait for its own answer.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any, TypeVar

from overspill.delivery.reasons import reason
from overspill.execution import forks
from overspill.execution.calls import Calls
from overspill.execution.submissions import NoLoop, Submission

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from overspill.execution.waiting import Reply

T = TypeVar("T")


class LoopAccess:
    """Begins the coroutines of one guard, for any thread."""

    def __init__(self) -> None:
        self.reset_after_fork()
        forks.register(self)

    def reset_after_fork(self) -> None:
        """Use a new lock and loop thread in a forked child."""
        self._lock = threading.RLock()
        self.calls: Calls | None = None
        self._finalizer: weakref.finalize[..., LoopAccess] | None = None

    def begin(self, coroutine: Coroutine[Any, Any, T]) -> Reply[T]:
        """Begin a coroutine in the loop thread, and return a reply with its result. Raises as `enter`."""
        return self.enter(Submission(coroutine))

    def enter(self, submission: Submission[T]) -> Reply[T]:
        """Begin a submission in the loop thread, and return a reply with its result.

        Raises `NoLoop` if no thread or event loop can be started, if this guard is being closed, and in the
        loop thread itself, which must not wait for its own answer.
        """
        try:
            calls = self._open_calls()
        except BaseException:
            submission.drop()
            raise
        try:
            return calls.enter(submission)
        except RuntimeError as error:  # it was closed just now
            raise NoLoop(reason(error)) from error

    def _open_calls(self) -> Calls:
        calls = self.calls
        if calls is None or not calls.is_alive:  # else no lock is taken, which an interrupted thread may hold
            try:
                calls = self.join()
            except (RuntimeError, OSError) as error:  # OSError: it has as many files open as it may
                raise NoLoop(reason(error)) from error
        if calls.thread.is_here:
            raise NoLoop("an output of the loop thread itself")
        return calls

    def join(self) -> Calls:
        """Return the calls in a loop thread that lives. Raises `RuntimeError` if none can be started."""
        with self._lock:
            if self.calls is None or not self.calls.is_alive:
                self.calls = Calls()
                self._finalizer = weakref.finalize(self, self.calls.leave)
                self._finalizer.atexit = False
            return self.calls

    def leave(self) -> None:
        """Leave the loop thread once everything that was begun has ended."""
        with self._lock:
            calls, self.calls = self.calls, None
            finalizer, self._finalizer = self._finalizer, None
        if finalizer is not None:
            finalizer.detach()
        if calls is not None:
            calls.leave()
