"""Threads that do what is handed to them: a bounded number, shared by all of this process.

They start as work comes, end when there has been none for some time, and never keep the interpreter alive.
Nothing here holds a lock that a signal handler, which may run at any moment, could wait for.
"""

from __future__ import annotations

import logging
import threading
from _thread import start_new_thread  # `Thread.start` waits, for what an interrupted thread may hold
from collections import deque
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.execution import forks
from overspill.execution.fair_queue import FairQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

IDLE_SECONDS: Final = 1.0
"""Seconds without work after which a thread ends."""

log = logging.getLogger("overspill")


class _Work(NamedTuple):
    do: Callable[[], object]
    flow: Hashable
    size: int


class Workers:
    """At most `most` threads, safe to use from any thread. A forked child starts its own.

    Work is done in the order of a `FairQueue`.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.reset_after_fork()
        forks.register(self)

    def reset_after_fork(self) -> None:
        """In a forked child, begin without threads and without work."""
        self._inbox: SimpleQueue[_Work] = SimpleQueue()
        self._queue: FairQueue[_Work] = FairQueue()
        self._queue_lock = threading.Lock()  # for the workers alone: whoever submits never waits for it
        self._free: deque[None] = deque([None] * self._most)
        """One for each thread that may still be started."""
        self._idle: deque[None] = deque()
        """One for each thread that waits, and that nobody who brings work counts on yet."""

    @property
    def running(self) -> int:
        """How many threads there are."""
        return self._most - len(self._free)

    def submit(self, do: Callable[[], object], flow: Hashable = None, size: int = 0) -> None:
        """Let a worker call `do`. Where the process has threads enough and no worker, do it here and now."""
        self._inbox.put(_Work(do, flow, size))
        if _took_one(self._idle) or not _took_one(self._free):
            return
        try:
            start_new_thread(self._serve, ())
        except RuntimeError:  # the process has threads enough, or is ending
            self._free.append(None)
            if not self.running:
                self._serve_here()

    def _serve(self) -> None:
        while True:
            work = self._next()
            if work is not None:
                _do(work)
            elif self._has_ended():
                return

    def _next(self) -> _Work | None:
        """Return what is to be done next; None if nothing came for some time."""
        with self._queue_lock:
            if (work := self._taken()) is not None:
                return work
        self._idle.append(None)
        try:
            first = self._inbox.get(timeout=IDLE_SECONDS)
        except Empty:
            return None
        with self._queue_lock:
            self._queue.push(first, first.flow, first.size)
            return self._taken()

    def _taken(self) -> _Work | None:
        with suppress(Empty):
            while True:
                work = self._inbox.get_nowait()
                self._queue.push(work, work.flow, work.size)
        return self._queue.pop() if self._queue else None

    def _has_ended(self) -> bool:
        """Give up the thread's seat, unless somebody counts on a thread that is idle."""
        if not _took_one(self._idle):
            return False
        self._free.append(None)
        return True

    def _serve_here(self) -> None:
        while True:
            with self._queue_lock:
                work = self._taken()
            if work is None:
                return
            _do(work)


def _took_one(tokens: deque[None]) -> bool:
    try:
        tokens.pop()
    except IndexError:
        return False
    return True


def _do(work: _Work) -> None:
    try:
        work.do()
    except BaseException:  # the boundary: no work ends the thread of all others
        log.exception("what a thread was asked to do failed")


def _most_for_work() -> int:
    """More than a few only take the interpreter's lock from each other, and from the agent's own threads."""
    return 2


WORK: Final = Workers(_most_for_work())
"""For pure work: measuring, hashing, compressing, previews."""
BLOCKING: Final = Workers(8)
"""For what waits for a disk or a service: files, spools, what is sent in the background."""
