"""Whether the service is worth asking: after repeated failures it is left alone for a while.

A state machine without I/O; whoever asks the service reports how it went. Only failures of the service as
a whole belong here, not refusals that concern one capture.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST: Final = 5.0
"""Seconds that the service is left alone at first; each failed try doubles them."""
LONGEST: Final = 60.0
QUICK_FAILURES: Final = 2
"""How many quick failures in a row open the circuit. A slow one opens it at once."""


class Circuit:
    """Closed while all goes well, else open with one try let through after each pause.

    A try that never reports does no harm: the next one goes through after another pause. `clock` gives
    seconds. Safe to use from any thread.
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
        """Whether the service may be asked now. Where it is open, True is for the caller alone."""
        with self._lock:
            if not self.is_open:
                return True
            now = self._clock()
            if now < self._next_try:
                return False
            self._next_try, self._is_trying = now + self._pause, True
            return True

    def succeeded(self) -> None:
        """The service answered."""
        with self._lock:
            self._failures, self._pause, self._is_trying = 0, 0.0, False

    def failed(self, *, slow: bool) -> None:
        """The service did not answer, or could not work; `slow`: and it took all the time that there was."""
        with self._lock:
            self._failures += 1
            if self.is_open and not self._is_trying:
                return  # asked before it opened, as many calls at once may be
            now = self._clock()
            if self.is_open:
                self._pause = min(2 * self._pause, self._longest)
            elif slow or self._failures >= QUICK_FAILURES:
                self._pause = min(self._first, self._longest)
            self._next_try, self._is_trying = now + self._pause, False
