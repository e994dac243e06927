"""One thread that sends to a service what can wait: spooled captures, counts of outputs.

Jobs say when they want to run again; one that fails is tried again later and later. The thread starts when
there is something to do, ends when no job has anything left, and never keeps the interpreter alive.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import Counter, deque
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, TypeAlias

from overspill.errors import OverspillError
from overspill.execution import forks
from overspill.transfer.sync import SyncClient

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.transfer.address import Address

    Job: TypeAlias = Callable[[SyncClient], float | None]
    """Do what is due; return the seconds until there is more, None if nothing is left. May raise anything."""

FIRST: Final = 2.0
"""Seconds until a failed job is tried again; twice as many after each further failure."""
LONGEST: Final = 60.0

log: Final = logging.getLogger("overspill")


class Sender:
    """Safe to use from any thread, and from signal handlers.

    A forked child has its own thread once it has something to send. `failures` counts the jobs that raised
    what nobody expects; they are logged and tried again.
    """

    def __init__(self, address: Address, *, first: float = FIRST, longest: float = LONGEST) -> None:
        self.address = address
        self._first, self._longest = first, longest
        self._jobs: dict[str, Job] = {}
        self._forgotten: deque[str] = deque()
        self.failures: int = 0
        self.reset_after_fork()
        forks.register(self)

    def reset_after_fork(self) -> None:
        """In a forked child, begin without jobs and without a thread."""
        self._lock = threading.RLock()
        self._calls: SimpleQueue[None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._client: SyncClient | None = None
        self._due: dict[str, float] = {}
        self._in_a_row: dict[str, int] = {}
        self._is_closed = False

    @property
    def is_running(self) -> bool:
        """Return whether the thread runs."""
        thread = self._thread
        return thread is not None and thread.is_alive()

    def register(self, name: str, job: Job) -> None:
        """Take on a job; another of the same name goes."""
        with self._lock:
            self._drop_forgotten()
            self._jobs[name] = job

    def unregister(self, name: str) -> None:
        """Let go of a job, which may be running still."""
        with self._lock:
            self._jobs.pop(name, None)
            self._due.pop(name, None)
            self._in_a_row.pop(name, None)
        self._calls.put(None)

    def forget(self, name: str) -> None:
        """Let go of a job soon, without any lock: the garbage collector may call this at any moment."""
        self._forgotten.append(name)

    def wake(self, name: str, *, after: float = 0.0) -> None:
        """Let a job run within `after` seconds, whenever it was to run."""
        due = time.monotonic() + after
        with self._lock:
            self._is_closed = False
            self._due[name] = min(due, self._due.get(name, due))
            if not self.is_running:
                self._thread = threading.Thread(target=self._serve, name="overspill-sender", daemon=True)
                try:
                    self._thread.start()
                except RuntimeError:  # the interpreter is ending, or has threads enough
                    self._thread = None
        self._calls.put(None)

    def close(self) -> None:
        """Stop, at once: what has not been sent stays where it waits. `wake` starts again."""
        with self._lock:
            self._is_closed = True
            self._due.clear()
            self._in_a_row.clear()
            client = self._client
        self._calls.put(None)
        if client is not None:
            client.close()

    def _serve(self) -> None:
        client = SyncClient(
            self.address.url,
            self.address.key,
            session="",
            timeout=self.address.timeout,
            connect_timeout=self.address.connect_timeout,
            retries=0,
        )
        self._client = client
        try:
            while (pause := self._pause()) is not None:
                self._wait(pause)
                for name in self._now_due():
                    self._run(name, client)
        finally:
            if self._client is client:
                self._client = None
            client.close()

    def _wait(self, pause: float) -> None:
        """Wait so many seconds, or until somebody calls."""
        with suppress(Empty):
            if pause > 0:
                self._calls.get(timeout=pause)
            while True:
                self._calls.get_nowait()

    def _pause(self) -> float | None:
        """Return the seconds until a job is due; if there is none, None, and the thread ends."""
        with self._lock:
            self._drop_forgotten()
            if self._due:
                return max(0.0, min(self._due.values()) - time.monotonic())
            self._thread = None
            return None

    def _drop_forgotten(self) -> None:
        """For whoever holds the lock."""
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

    def _run(self, name: str, client: SyncClient) -> None:
        job = self._jobs.get(name)
        try:
            pause = None if job is None else job(client)
            self._in_a_row[name] = 0
        except (OverspillError, OSError, RuntimeError):  # RuntimeError: it was closed meanwhile
            pause = self._backoff(name)
        except BaseException:  # the boundary: no job ends the thread of all others
            self.failures += 1
            log.exception("a background job failed and is tried again: %s", name)
            pause = self._backoff(name)
        if pause is not None:
            self._again(name, pause)

    def _backoff(self, name: str) -> float:
        failures = self._in_a_row.get(name, 0)
        self._in_a_row[name] = failures + 1
        longest = min(self._longest, self._first * (1 << min(failures, 16)))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311  (no secret)

    def _again(self, name: str, pause: float) -> None:
        due = time.monotonic() + pause
        with self._lock:
            if name in self._jobs and not self._is_closed:
                self._due[name] = min(due, self._due.get(name, due))


class _Senders:
    """Those of this process, and how many need each."""

    def __init__(self) -> None:
        self._senders: dict[Address, Sender] = {}
        self._users: Counter[Address] = Counter()
        self._abandoned: deque[Sender] = deque()
        self.reset_after_fork()
        forks.register(self)

    def reset_after_fork(self) -> None:
        self._lock = threading.RLock()

    def acquire(self, address: Address) -> Sender:
        with self._lock:
            if address not in self._senders:
                self._senders[address] = Sender(address)
            self._users[address] += 1
            sender = self._senders[address]
        self._release_abandoned()
        return sender

    def release(self, sender: Sender) -> bool:
        with self._lock:
            self._users[sender.address] -= 1
            is_needed = self._users[sender.address] > 0
            if not is_needed:
                self._senders.pop(sender.address, None)
                del self._users[sender.address]
        if not is_needed:
            sender.close()
        return not is_needed

    def abandon(self, sender: Sender) -> None:
        self._abandoned.append(sender)

    def _release_abandoned(self) -> None:
        with suppress(IndexError):
            while True:
                self.release(self._abandoned.popleft())


_of_this_process: Final = _Senders()


def sender_to(address: Address) -> Sender:
    """The sender of this process to a service, with a key; `release` of it afterwards."""
    return _of_this_process.acquire(address)


def release(sender: Sender) -> bool:
    """Close the sender once nobody needs it; return whether nobody does."""
    return _of_this_process.release(sender)


def abandon(sender: Sender) -> None:
    """As `release`, soon and without any lock: the garbage collector may call this at any moment."""
    _of_this_process.abandon(sender)
