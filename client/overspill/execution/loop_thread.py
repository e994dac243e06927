"""Runs the event loop that does all network I/O of this process. All guards and clients share its thread.

    SyncClient ───────────▶ Calls ─┐
    Guard ──▶ LoopAccess ─▶ Calls ─┴▶ LoopThread ──▶ coroutines, one task each

The thread starts with its first user and ends with its last.
"""

from __future__ import annotations

import _thread
import asyncio
import logging
import os
import threading
from typing import TYPE_CHECKING, Any, Final, TypeVar

from overspill.execution import forks
from overspill.execution.daemon_executor import DaemonExecutor

if TYPE_CHECKING:
    from overspill.execution.submissions import Ongoing, Submission
    from overspill.execution.waiting import Reply

T = TypeVar("T")

log: Final = logging.getLogger("overspill")

CLOSE_SECONDS: Final = 5.0
"""Seconds that closing waits for the thread. It is a daemon, so the process can end before it does."""


# asyncio asks its logger whenever a loop is made. Only the first answer takes a lock of `logging`, so it is
# taken here. Otherwise a signal's handler might interrupt that moment, and wait for another thread that needs
# the same lock, because it imports a module that makes a logger: a deadlock.
logging.getLogger("asyncio").isEnabledFor(logging.DEBUG)

_here: Final = threading.local()


class _Wake:
    """One call of the loop, which begins all that has been submitted until it comes."""

    __slots__ = ("has_come",)

    def __init__(self) -> None:
        self.has_come = False


class LoopThread:
    """An event loop in a thread of its own. Raises `RuntimeError` if no thread can be started."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner(loop_factory=_new_loop)
        self.loop: asyncio.AbstractEventLoop = self._runner.get_loop()
        self._stop = asyncio.Event()
        self._is_over = False
        """Whether new work is refused: running work is being cancelled, and new work would be missed."""
        self._process = os.getpid()
        self._submitted: dict[Submission[Any], Ongoing] = {}
        """Submissions that are not in the thread yet."""
        self._wake: _Wake | None = None
        """The last call that the loop was asked for."""
        self.users: set[Ongoing] = set()
        self._thread = threading.Thread(target=self._serve, name="overspill-loop", daemon=True)
        try:
            self._thread.start()
        except BaseException:  # the process has threads enough, or an interrupt came
            self._give_up()
            raise

    @property
    def is_alive(self) -> bool:
        """Whether the thread and its loop run in this process."""
        is_running = self._thread.is_alive() and not self._is_over and not self.loop.is_closed()
        return is_running and not self.is_inherited

    @property
    def is_inherited(self) -> bool:
        """Whether the thread belongs to a parent process. A forked child must not touch its loop."""
        return self._process != os.getpid()

    @property
    def is_here(self) -> bool:
        """Whether the caller runs in this thread."""
        return threading.current_thread() is self._thread

    def submit(self, submission: Submission[T], ongoing: Ongoing) -> Reply[T]:
        """Let a submission begin, as one of `ongoing`. Return the reply for its result.

        Cancelling the reply cancels it. Raises `RuntimeError` if the loop is closed.
        """
        self._submitted[submission] = ongoing
        try:
            self._ask_to_begin()
        except RuntimeError:  # the loop is closed
            self._drop(submission)
            raise
        if self.loop.is_closed():  # it has ended meanwhile, and nobody would start or close this one
            self._drop(submission)
        return submission.reply

    def end(self) -> None:
        """End the thread. Coroutines that still run are cancelled."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._stop.set)
        if not self.is_here:
            self._thread.join(CLOSE_SECONDS)

    def _give_up(self) -> None:
        """Clean up. If only the wait for the thread's start was interrupted, the thread runs."""
        if self._thread.ident is None:
            self.loop.close()  # not the runner: it would run the loop, perhaps inside of the caller's own
        else:
            self.end()

    def _serve(self) -> None:
        try:
            if self.loop.is_closed():  # an interrupt of its start has given it up before it came to run
                return
            if is_in_event_loop():
                log.warning("a thread runs inside another event loop, as under gevent: use Client there")
                self.loop.close()
            else:
                _here.thread = self
                with self._runner:
                    self._runner.run(self._until_stopped())
        finally:
            _here.thread = None
            for submission in list(self._submitted):  # submitted too late to be started
                self._drop(submission)

    async def _until_stopped(self) -> None:
        try:
            await self._stop.wait()
        finally:
            self._is_over = True
            for user in list(self.users):  # else held submissions would begin as others end
                user.drop_held()

    def _ask_to_begin(self) -> None:
        """Let the loop begin what has been submitted. Raises `RuntimeError` if it is closed.

        A call to the loop writes to a socket. That gives away the interpreter's lock, and a busy thread may
        keep the lock for long. So one call serves all that is submitted before it comes. A call is remembered
        only once it was made: a signal handler that runs before that makes one of its own.
        """
        if self._wake is None or self._wake.has_come or self.loop.is_closed():
            wake = _Wake()
            self.loop.call_soon_threadsafe(self._begin_all, wake)
            self._wake = wake

    def _begin_all(self, wake: _Wake) -> None:
        wake.has_come = True
        for submission in list(self._submitted):
            ongoing = self._submitted.pop(submission)
            if self._is_over:
                submission.drop()
            else:
                submission.enter(self.loop, ongoing)

    def _drop(self, submission: Submission[Any]) -> None:
        if self._submitted.pop(submission, None) is not None:
            submission.drop()


class _Shared:
    """The loop thread of this process. It runs while it has users."""

    def __init__(self) -> None:
        self._abandoned: list[LoopThread] = []
        """Loop threads that a forked child inherited and must not close: that would disturb the parent's."""
        self._thread: LoopThread | None = None
        self.reset_after_fork()
        forks.register(self)

    def reset_after_fork(self) -> None:
        """Start a forked child without a loop thread: the parent's does not exist there."""
        self._starter = _thread.start_new_thread
        self._lock = threading.RLock()
        if self._thread is not None:
            self._abandoned.append(self._thread)
        self._thread = None

    def join(self, user: Ongoing) -> LoopThread:
        """Add a user, and return the loop thread. In a loop thread, return that one without taking the lock.

        Two threads may exist: a signal handler that interrupts the start of one may start another.
        """
        here: LoopThread | None = getattr(_here, "thread", None)
        if here is not None:
            here.users.add(user)
            return here
        if self._starter is not _thread.start_new_thread:  # gevent or eventlet has replaced threads since
            self.reset_after_fork()
        with self._lock:
            if self._thread is None or not self._thread.is_alive:
                self._thread = LoopThread()
            self._thread.users.add(user)
            return self._thread

    def leave(self, thread: LoopThread, user: Ongoing) -> None:
        """Remove a user. The last one ends the thread."""
        with self._lock:
            thread.users.discard(user)
            if thread.users:
                return
            if self._thread is thread:
                self._thread = None
        thread.end()


shared: Final = _Shared()


class _Loop(asyncio.SelectorEventLoop):
    """Asyncio's own loop, but closing it starts no thread: some Pythons start none once a process ends."""

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 (asyncio's)
        """Do nothing: asyncio starts a thread here, to wait for an executor that waits for nothing."""


def _new_loop() -> asyncio.AbstractEventLoop:
    loop = _Loop()  # `new_event_loop` takes a lock, which an interrupted thread may hold
    loop.set_default_executor(DaemonExecutor())
    return loop


def is_in_event_loop() -> bool:
    """Return whether the caller runs in an event loop of asyncio."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
