"""One thread that sends to a service what can wait: spooled captures, counts of outputs.

Jobs say when they want to run again; one that fails is tried again later and later. The thread starts when
there is something to do, ends when no job has anything left, and never keeps the interpreter alive.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Final, TypeAlias

from overspill import forks
from overspill.errors import OverspillError
from overspill.sync import SyncClient

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.transfer.address import Address

    Job: TypeAlias = Callable[[SyncClient], float | None]
    """Does what is due; seconds until there is more, None where nothing is left. Raises `OverspillError`."""

FIRST: Final = 2.0
"""Seconds until a failed job is tried again; twice as many after each further failure."""
LONGEST: Final = 60.0


class Courier:
    """Safe to use from any thread. A forked child has its own thread once it has something to send."""

    def __init__(self, address: Address, *, first: float = FIRST, longest: float = LONGEST) -> None:
        self.address, self._first, self._longest = address, first, longest
        self._jobs: dict[str, Job] = {}
        self.start_afresh()
        forks.renew_in_child(self)

    def start_afresh(self) -> None:
        self._lock = threading.Lock()
        self._call = threading.Event()
        self._thread: threading.Thread | None = None
        self._client: SyncClient | None = None
        self._due: dict[str, float] = {}
        self._failures: dict[str, int] = {}
        self._is_closed = False

    @property
    def is_running(self) -> bool:
        thread = self._thread
        return thread is not None and thread.is_alive()

    def register(self, name: str, job: Job) -> None:
        """Take on a job; another of the same name goes."""
        with self._lock:
            self._jobs[name] = job

    def unregister(self, name: str) -> None:
        """Let go of a job, which may be running still."""
        with self._lock:
            self._jobs.pop(name, None)
            self._due.pop(name, None)
        self._call.set()

    def wake(self, name: str, *, after: float = 0.0) -> None:
        """Let a job run within `after` seconds, whenever it was to run."""
        due = time.monotonic() + after
        with self._lock:
            self._is_closed = False
            self._due[name] = min(due, self._due.get(name, due))
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="overspill-courier", daemon=True)
                try:
                    self._thread.start()
                except RuntimeError:  # the interpreter is ending, or has threads enough
                    self._thread = None
        self._call.set()

    def close(self) -> None:
        """Stop, at once: what has not been sent stays where it waits. `wake` starts again."""
        with self._lock:
            self._is_closed = True
            self._due.clear()
            self._failures.clear()
            client = self._client
        self._call.set()
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
                if pause > 0:
                    self._call.wait(pause)
                    self._call.clear()
                for name in self._now_due():
                    self._run(name, client)
        finally:
            if self._client is client:
                self._client = None
            client.close()

    def _pause(self) -> float | None:
        """Seconds until a job is due; None, and the thread is no longer the courier's, where none is."""
        with self._lock:
            if self._due:
                return max(0.0, min(self._due.values()) - time.monotonic())
            self._thread = None
            return None

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
            self._failures[name] = 0
        except (OverspillError, OSError, RuntimeError):  # RuntimeError: it was closed meanwhile
            pause = self._backoff(name)
        if pause is not None:
            self._again(name, pause)

    def _backoff(self, name: str) -> float:
        failures = self._failures.get(name, 0)
        self._failures[name] = failures + 1
        longest = min(self._longest, self._first * (1 << min(failures, 16)))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311  (no secret)

    def _again(self, name: str, pause: float) -> None:
        due = time.monotonic() + pause
        with self._lock:
            if name in self._jobs and not self._is_closed:
                self._due[name] = min(due, self._due.get(name, due))


class _Couriers:
    """Those of this process, and how many need each."""

    def __init__(self) -> None:
        self._couriers: dict[Address, Courier] = {}
        self._users: Counter[Address] = Counter()
        self.start_afresh()
        forks.renew_in_child(self)

    def start_afresh(self) -> None:
        self._lock = threading.Lock()

    def take(self, address: Address) -> Courier:
        with self._lock:
            if address not in self._couriers:
                self._couriers[address] = Courier(address)
            self._users[address] += 1
            return self._couriers[address]

    def let_go(self, courier: Courier) -> None:
        with self._lock:
            self._users[courier.address] -= 1
            is_needed = self._users[courier.address] > 0
            if not is_needed:
                self._couriers.pop(courier.address, None)
        if not is_needed:
            courier.close()


_of_this_process: Final = _Couriers()


def courier_to(address: Address) -> Courier:
    """The courier of this process to a service, with a key; `let_go` of it afterwards."""
    return _of_this_process.take(address)


def let_go(courier: Courier) -> None:
    """Close the courier once nobody needs it."""
    _of_this_process.let_go(courier)
