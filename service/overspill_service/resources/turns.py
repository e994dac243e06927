"""Turns for requests without a tenant: if they come faster than a rate, each waits for the one before it.

A refusal takes about as long as a short answer. So a client that is too fast is delayed, not refused: it
sends its next request only when it has the answer to this one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from overspill.reading.latest import Latest

if TYPE_CHECKING:
    from collections.abc import Callable


class Turns:
    """`rate` turns a second for each name, `burst` of them at once. Belongs to one event loop."""

    def __init__(
        self, rate: float, burst: float, longest: float, clock: Callable[[], float], *, max_keys: int
    ) -> None:
        """`longest`: seconds that a turn is waited for. `max_keys`: names that are known at once."""
        self._step, self._ahead, self._longest = 1 / rate, burst / rate, longest
        self._clock = clock
        self._last: Latest[str, float] = Latest(max_keys)
        """When the last turn of each name comes."""

    def take(self, name: str) -> float | None:
        """Take the next turn. Return the seconds until it comes; None, without one, if that is too long."""
        now = self._clock()
        at = max(self._last.get(name, -math.inf), now - self._ahead) + self._step
        if at - now > self._longest:
            return None
        self._last[name] = at
        return max(0.0, at - now)
