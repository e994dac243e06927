"""A circuit breaker: after repeated failures the service is left alone for a while.

It is a state machine without I/O. Whoever asks the service reports how it went. Only failures of the service
as a whole are reported, not refusals that concern one capture.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from overspill.execution.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST_PAUSE_SECONDS: Final = 5.0
"""Seconds that the service is left alone at first. Each failed try doubles them."""
LONGEST_PAUSE_SECONDS: Final = 60.0
"""The most seconds that it is left alone before another try."""
QUICK_FAILURES: Final = 2
"""How many quick failures in a row open the circuit. A slow one opens it at once."""


class Circuit:
    """Closed while the service works. Open after failures: then it lets one try through after each pause.

    A try that never reports does no harm: the next one goes through after another pause. `clock` gives
    seconds. Safe to use from any thread.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._failures = 0
        self._failed_tries = 0
        """Since it opened."""
        self._paused_at = 0.0
        self._is_trying = False
        self.is_open: bool = False
        """Whether the service has failed and is asked only now and then."""

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

    def failed(self, *, slow: bool) -> None:
        """Note that the service did not answer or could not work. `slow`: it took all the time it had."""
        with self._lock:
            self._failures += 1
            if self.is_open and not self._is_trying:
                return  # it was asked before the circuit opened: many calls may run at once
            if self.is_open:
                self._failed_tries += 1
            self.is_open = self.is_open or slow or self._failures >= QUICK_FAILURES
            self._paused_at, self._is_trying = self._clock(), False
