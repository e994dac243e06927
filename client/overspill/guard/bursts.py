"""Finds bursts of calls: a model that runs a tool again and again soon after a notice, instead of reading."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from overspill.execution import forks
from overspill.reading.latest import Latest

if TYPE_CHECKING:
    from collections.abc import Callable

WINDOW_SECONDS: Final = 120.0
"""How long after a notice the tool's further outputs are counted."""
MIN_CALLS: Final = 3
"""Outputs in that time that make a burst."""
_MAX_FOLLOWED: Final = 10_000
"""Notices that are remembered at once, the latest ones."""


class _Follow:
    """A notice after which the tool's outputs are counted: its time, and the outputs since."""

    __slots__ = ("calls", "since")

    def __init__(self, since: float) -> None:
        self.since = since
        self.calls = 0


class Bursts:
    """Counts the outputs of a tool that follow a notice in the same session, for any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        forks.register(self)
        self.reset_after_fork()

    def reset_after_fork(self) -> None:
        """Start a forked child without notices: the parent follows its own."""
        self._lock = threading.RLock()  # a signal handler may guard an output while this thread holds it
        self._following: Latest[tuple[str, str], _Follow] = Latest(_MAX_FOLLOWED)

    def add_output(self, session: str, tool: str) -> bool:
        """Count one output. Return True if it is the one that completes a burst."""
        key = session, tool
        if key not in self._following:
            return False
        with self._lock:
            follow = self._following.get(key)
            if follow is None:
                return False
            follow.calls += 1
            is_late = self._clock() - follow.since > WINDOW_SECONDS
            if is_late or follow.calls >= MIN_CALLS:
                del self._following[key]
            return not is_late and follow.calls >= MIN_CALLS

    def add_notice(self, session: str, tool: str) -> None:
        """Follow the tool from now on, unless it is being followed: one burst counts once."""
        with self._lock:
            self._following.setdefault((session, tool), _Follow(self._clock()))
