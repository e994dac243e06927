"""A circuit breaker: after repeated failures, nothing is sent to a service for a while.

It is what this process knows of the service, from all guards and keys: a state machine without I/O. Whoever
asks the service reports how it went. Only failures of the service as a whole are reported, not refusals that
concern one capture.
"""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from overspill.execution import forks
from overspill.execution.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.spools.absence import Absence

FIRST_PAUSE_SECONDS: Final = 5.0
"""Seconds of the first pause. Each failed try doubles them."""
LONGEST_PAUSE_SECONDS: Final = 60.0
"""The most seconds of a pause."""
QUICK_FAILURES: Final = 2
"""How many quick failures in a row open the circuit. A slow one opens it at once."""


class Circuit:
    """Closed while the service works. Open after failures: then it lets one try through after each pause.

    A try that never reports does no harm: the next one goes through after another pause. `clock` gives
    seconds. Safe to use from any thread.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.reset_after_fork()
        forks.register(self)

    def reset_after_fork(self) -> None:
        """Forget everything in a forked child, and use a new lock: a parent's thread may hold the old one."""
        self._lock = threading.RLock()
        self._failures = 0
        self._failed_tries = 0
        """Failed tries since the circuit opened."""
        self._paused_at = 0.0
        self._is_trying = False
        self.is_open: bool = False
        """Whether the service has failed and is asked only now and then."""
        self.failing_since: datetime | None = None
        self.last_failure: str = ""
        self.moved_at: float = float("-inf")
        """When the service took bytes of any upload, on the monotonic clock."""
        self.absences: set[Absence] = set()
        """The absences that have noted the failure."""

    def allows(self, *, first: float = FIRST_PAUSE_SECONDS, longest: float = LONGEST_PAUSE_SECONDS) -> bool:
        """Return whether to ask the service now. If the circuit is open, only one caller gets True.

        The first pause has `first` seconds; each failed try doubles them, to `longest` at most.
        """
        with self._lock:
            if not self.is_open:
                return True
            now = self._clock()
            if now < self._paused_at + Backoff(first, longest).bound(self._failed_tries):
                return False
            self._paused_at, self._is_trying = now, True
            return True

    def succeeded(self) -> None:
        """Note that the service answered: close the circuit."""
        with self._lock:
            self._failures = self._failed_tries = 0
            self.is_open = self._is_trying = False
            self.failing_since = None

    def failed(self, reason: str = "", *, slow: bool) -> datetime:
        """Note that the service did not answer or could not work. `slow`: it took all the time it had.

        Return since when it fails.
        """
        with self._lock:
            since = self.failing_since = self.failing_since or datetime.now(UTC)
            self.last_failure = reason
            self._failures += 1
            if self.is_open and not self._is_trying:
                return since  # it was asked before the circuit opened: many calls may run at once
            if self.is_open:
                self._failed_tries += 1
            self.is_open = self.is_open or slow or self._failures >= QUICK_FAILURES
            self._paused_at, self._is_trying = self._clock(), False
            return since
