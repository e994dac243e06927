"""A circuit breaker: after repeated failures the service is left alone for a while.

It is a state machine without I/O. Whoever asks the service reports how it went. Only failures of the service
as a whole are reported, not refusals that concern one capture.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST: Final = 5.0
"""Seconds that the service is left alone at first. Each failed try doubles them."""
LONGEST: Final = 60.0
"""The most seconds that it is left alone before another try."""
QUICK_FAILURES: Final = 2
"""How many quick failures in a row open the circuit. A slow one opens it at once."""


class Circuit:
    """Closed while the service works. Open after failures: then it lets one try through after each pause.

    A try that never reports does no harm: the next one goes through after another pause. `first` and
    `longest` are pauses in seconds; `clock` gives seconds. Safe to use from any thread.
    """

    def __init__(
        self, *, first: float = FIRST, longest: float = LONGEST, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._first, self._longest, self._clock = first, longest, clock
        self._lock = threading.RLock()
        self._failures = 0
        self._pause = 0.0
        self._next_try = 0.0
        self._is_trying = False

    @property
    def is_open(self) -> bool:
        """Return whether the service has failed and is asked only now and then."""
        return self._pause > 0

    def allows(self) -> bool:
        """Return whether to ask the service now. If the circuit is open, only one caller gets True."""
        with self._lock:
            if not self.is_open:
                return True
            now = self._clock()
            if now < self._next_try:
                return False
            self._next_try, self._is_trying = now + self._pause, True
            return True

    def succeeded(self) -> None:
        """Note that the service answered: close the circuit."""
        with self._lock:
            self._failures, self._pause, self._is_trying = 0, 0.0, False

    def failed(self, *, slow: bool) -> None:
        """Note that the service did not answer or could not work. `slow`: it took all the time it had."""
        with self._lock:
            self._failures += 1
            if self.is_open and not self._is_trying:
                return  # it was asked before the circuit opened: many calls may run at once
            now = self._clock()
            if self.is_open:
                self._pause = min(2 * self._pause, self._longest)
            elif slow or self._failures >= QUICK_FAILURES:
                self._pause = min(self._first, self._longest)
            self._next_try, self._is_trying = now + self._pause, False
