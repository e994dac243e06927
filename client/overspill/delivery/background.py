"""Sends spooled captures and counts of outputs to services, in the background.

    Background      the jobs for one service and key
    JobThread       the thread that does the jobs of all keys of one service, one after another

Each job says when it wants to run again. A job that fails is tried again later and later. A thread starts
when there is something to do, ends when no job has anything left, and never keeps the interpreter alive.
"""

from __future__ import annotations

import logging
import math
import queue
import threading
import time
from collections import deque
from contextlib import suppress
from queue import Empty
from typing import TYPE_CHECKING, Final, TypeAlias

from overspill.errors import OverspillError
from overspill.execution import forks
from overspill.execution.backoff import Backoff
from overspill.transfer.sync import background_client

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.transfer.address import Address
    from overspill.transfer.sync import SyncClient

    Job: TypeAlias = Callable[[SyncClient], float | None]
    """Do what is due. Return the seconds until the next run; None if nothing is left. May raise anything."""

FIRST_RETRY_SECONDS: Final = 2.0
"""Seconds until a failed job is tried again; twice as many after each further failure."""
LONGEST_RETRY_SECONDS: Final = 60.0

log: Final = logging.getLogger("overspill")


class JobThread:
    """The thread for one service. Safe to use from any thread; a forked child starts its own."""

    def __init__(self) -> None:
        self.reset_after_fork()
        forks.register(self)

    def reset_after_fork(self) -> None:
        """Start a forked child without jobs and without a thread."""
        self._lock = threading.RLock()
        self._calls: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._members: dict[Background, None] = {}

    def is_going_to(self, member: Background) -> bool:
        """Return whether the thread runs and will do the jobs of a member."""
        thread = self._thread
        return member in self._members and thread is not None and thread.is_alive()

    def call(self, member: Background) -> None:
        """Tell the thread that the due jobs of a member have changed. Start the thread if it does not run."""
        with self._lock:
            self._members[member] = None
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._serve, name="overspill-background", daemon=True)
                try:
                    self._thread.start()
                except RuntimeError:  # the interpreter is ending, or has threads enough
                    self._thread = None
        self._calls.put(None)

    def join(self, seconds: float) -> None:
        """Wait for the end of the thread, for `seconds` at most."""
        with self._lock:  # a thread that is just being started cannot be joined
            thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def _serve(self) -> None:
        while (pause := self._pause()) is not None:
            self._wait(pause)
            for member in list(self._members):
                member.run_due()

    def _pause(self) -> float | None:
        """Return the seconds until a job is due; if there is none, None, and the thread ends."""
        with self._lock:
            pauses = {member: member.pause() for member in list(self._members)}
            idle = [member for member, pause in pauses.items() if pause is None]
            for member in idle:
                del self._members[member]
            if not self._members:
                self._thread = None
        for member in idle:
            member.rest()
        return min((pause for pause in pauses.values() if pause is not None), default=None)

    def _wait(self, pause: float) -> None:
        """Wait for `pause` seconds, or until `call`."""
        with suppress(Empty):
            if pause > 0:
                self._calls.get(timeout=pause)
            while True:
                self._calls.get_nowait()


class Background:
    """The jobs for one service and key. Safe to use from any thread, and from signal handlers.

    `first` and `longest` are the seconds until a failed job is tried again. `failures` counts unexpected
    exceptions of jobs: they are logged, and the jobs are tried again.
    """

    def __init__(
        self,
        address: Address,
        job_thread: JobThread | None = None,
        *,
        first: float = FIRST_RETRY_SECONDS,
        longest: float = LONGEST_RETRY_SECONDS,
    ) -> None:
        self.address = address
        self.job_thread: JobThread = JobThread() if job_thread is None else job_thread
        self._backoff = Backoff(first, longest)
        self._jobs: dict[str, Job] = {}
        self._forgotten: deque[str] = deque()
        self.failures: int = 0
        self.reset_after_fork()
        forks.register(self)

    def reset_after_fork(self) -> None:
        """Make a new client for a forked child."""
        self._lock = threading.RLock()
        self._client: SyncClient | None = None
        self._due: dict[str, float] = {}
        self._in_a_row: dict[str, int] = {}
        self._is_closed = False

    @property
    def is_running(self) -> bool:
        """Whether there is something to do, and a thread that does it."""
        return self.job_thread.is_going_to(self)

    def register(self, name: str, job: Job) -> None:
        """Add a job. It replaces another of the same name, and runs once it is scheduled."""
        with self._lock:
            self._drop_forgotten()
            self._jobs[name] = job

    def unregister(self, name: str) -> None:
        """Remove a job. It may still be running."""
        with self._lock:
            self._jobs.pop(name, None)
            self._due.pop(name, None)
            self._in_a_row.pop(name, None)
        if self.is_running:
            self.job_thread.call(self)

    def forget(self, name: str) -> None:
        """Remove a job soon, without taking a lock: the garbage collector may call this at any moment."""
        self._forgotten.append(name)

    def schedule(self, name: str, *, after: float = 0.0) -> None:
        """Let a job run in `after` seconds, or earlier if it was due earlier."""
        due = time.monotonic() + after
        if self.is_running and self._due.get(name, math.inf) <= due:
            return
        with self._lock:
            self._is_closed = False
            self._due[name] = min(due, self._due.get(name, due))
        self.job_thread.call(self)

    def close(self) -> None:
        """Stop at once. Unsent captures and counts stay where they are. `schedule` starts again."""
        with self._lock:
            self._is_closed = True
            self._due.clear()
            self._in_a_row.clear()
            client = self._client
        if self.is_running:
            self.job_thread.call(self)
        if client is not None:
            client.close()

    def pause(self) -> float | None:
        """Return the seconds until a job is due; None if there is none."""
        with self._lock:
            self._drop_forgotten()
            return max(0.0, min(self._due.values()) - time.monotonic()) if self._due else None

    def run_due(self) -> None:
        """Do the jobs that are due, one after another."""
        for name in self._now_due():
            self._run(name)

    def rest(self) -> None:
        """Close the connections: there is nothing to do for now."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _drop_forgotten(self) -> None:
        """Remove the forgotten jobs. Call it with the lock held."""
        while self._forgotten:
            name = self._forgotten.popleft()
            for register in (self._jobs, self._due, self._in_a_row):
                register.pop(name, None)

    def _now_due(self) -> list[str]:
        now = time.monotonic()
        with self._lock:
            names = [name for name, due in self._due.items() if due <= now]
            for name in names:
                del self._due[name]
        return names

    def _run(self, name: str) -> None:
        job = self._jobs.get(name)
        try:
            pause = None if job is None else job(self._open_client())
            self._in_a_row[name] = 0
        except (OverspillError, OSError, RuntimeError):  # RuntimeError: it was closed meanwhile
            pause = self._pause_after_failure(name)
        except BaseException:  # the boundary: no job ends the thread of all others
            self.failures += 1
            log.exception("a background job failed and is tried again: %s", name)
            pause = self._pause_after_failure(name)
        if pause is not None:
            self._again(name, pause)

    def _pause_after_failure(self, name: str) -> float:
        failures = self._in_a_row.get(name, 0)
        self._in_a_row[name] = failures + 1
        return self._backoff.pause(failures)

    def _open_client(self) -> SyncClient:
        with self._lock:
            if self._client is None:
                self._client = background_client(self.address)
            return self._client

    def _again(self, name: str, pause: float) -> None:
        due = time.monotonic() + pause
        with self._lock:
            if name in self._jobs and not self._is_closed:
                self._due[name] = min(due, self._due.get(name, due))
