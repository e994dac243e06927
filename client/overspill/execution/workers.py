"""Bounded pools of threads, which everything in this process shares.

Threads start as work comes, end after a second without work, and never keep the interpreter alive. A signal
handler may run at any moment, so nothing here holds a lock that it could wait for.

gevent and eventlet replace threads, queues and locks by their own, perhaps after this package was imported. A
queue of one kind blocks the only thread of the other. So each is looked up in its module when it is made.
"""

from __future__ import annotations

import _thread  # `Thread.start` waits for a lock that an interrupted thread may hold
import atexit
import logging
import queue
import threading
import time
from collections import deque
from contextlib import suppress
from queue import Empty
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.execution import forks
from overspill.execution.fair_queue import FairQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

IDLE_SECONDS: Final = 1.0
"""Seconds without work after which a thread ends."""
_FINISH_SECONDS: Final = 2.0
_TICK_SECONDS: Final = 0.001
"""How long the end of the process waits for work that has begun, and how often it looks."""

log: Final = logging.getLogger("overspill")


class _Work(NamedTuple):
    do: Callable[[], object]
    flow: Hashable
    size: int


class Workers:
    """At most `limit` threads, safe to use from any thread. A forked child starts its own.

    Work is done in the order of a `FairQueue`.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.reset_after_fork()
        forks.register(self)

    def reset_after_fork(self) -> None:
        """Start a forked child without threads and without work."""
        self._starter = _thread.start_new_thread
        self._inbox: deque[_Work] = deque()
        self._queue: FairQueue[_Work] = FairQueue()
        self._queue_lock = threading.Lock()  # for the workers alone: whoever submits never waits for it
        self._tickets: queue.SimpleQueue[None] = queue.SimpleQueue()
        """One for each piece of work that waits. Whoever takes one does one piece, so none is slept over."""
        self._free: deque[None] = deque([None] * self._limit)
        """One for each thread that may still be started."""
        self._idle: deque[None] = deque()
        """One for each thread that waits for a ticket. Only that thread adds and removes it."""

    @property
    def running(self) -> int:
        """The number of threads."""
        return self._limit - len(self._free)

    def submit(self, do: Callable[[], object], flow: Hashable = None, size: int = 0) -> None:
        """Let a worker call `do`. Where the process has threads enough and no worker, do it here and now."""
        if self._starter is not _thread.start_new_thread:  # gevent or eventlet has replaced threads since
            self.reset_after_fork()
        self._inbox.append(_Work(do, flow, size))
        self._tickets.put(None)
        self._start_if_short()

    def finish(self) -> None:
        """At the end of the process, drop what waits, and let what has begun come to its end.

        RE2 searches without the interpreter's lock. A thread that wants the lock back while the interpreter
        ends aborts the process.
        """
        until = time.monotonic() + _FINISH_SECONDS
        with suppress(Empty):
            while True:
                self._tickets.get_nowait()
        while self.running and time.monotonic() < until:
            time.sleep(_TICK_SECONDS)  # first, so that a thread that has just taken a ticket is not idle
            if self.running <= len(self._idle):
                return

    def _start_if_short(self) -> None:
        if not self._takes_seat():
            return
        try:
            _thread.start_new_thread(self._serve, ())
        except (RuntimeError, MemoryError):  # the process has threads enough, or is ending
            self._free.append(None)
            if not self.running:
                self._serve_here()

    def _takes_seat(self) -> bool:
        """Take a seat if more waits than idle threads come for, and one is free."""
        return self._tickets.qsize() > len(self._idle) and _took_one(self._free)

    def _serve(self) -> None:
        while self._has_ticket():
            self._start_if_short()  # whoever brought the next piece may have counted on this thread
            self._do_next()

    def _has_ticket(self) -> bool:
        """Wait for a ticket; False if none came for some time, and the thread has given up its seat."""
        self._idle.append(None)
        try:
            self._tickets.get(timeout=IDLE_SECONDS)
        except Empty:
            is_left_over = bool(
                self._inbox or self._queue
            )  # by a thread that was interrupted before it gave the ticket
        else:
            return True
        finally:
            self._idle.pop()
        if is_left_over:
            return True
        self._free.append(None)
        return self._takes_seat() and self._has_ticket()

    def _do_next(self) -> None:
        with self._queue_lock:
            with suppress(IndexError):
                while True:
                    work = self._inbox.popleft()
                    self._queue.push(work, work.flow, work.size)
            first = self._queue.pop() if self._queue else None
        if first is not None:
            _do(first)

    def _serve_here(self) -> None:
        with suppress(Empty):
            while True:
                self._tickets.get_nowait()
                self._do_next()


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


WORK: Final = Workers(2)
"""For pure work: measuring, hashing, compressing, decoding.

More threads would only take the interpreter's lock from the agent's own.
"""
SMALL: Final = Workers(1)
"""For pure work on little data, such as previews. Nearly all of it holds the interpreter's lock.

With a second thread it takes longer, and the loop of an agent waits longer for the lock.
"""
BLOCKING: Final = Workers(8)
"""For what waits for a disk or a service: files, spools, what is sent in the background."""
NAMES: Final = Workers(4)
"""For names of hosts, which may take half a minute. No disk waits for them."""
CLOSING: Final = Workers(8)
"""For what waits for the loop thread, which may itself wait for the other workers."""

atexit.register(WORK.finish)
atexit.register(SMALL.finish)
