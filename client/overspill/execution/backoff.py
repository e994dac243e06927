"""Waiting times between attempts: each is twice as long as the one before, up to a bound.

The actual wait is a random time below that (Brooker, "Exponential Backoff and Jitter", 2015). So callers that
failed together do not all try again together.
"""

from __future__ import annotations

import random
from typing import NamedTuple

_MAX_DOUBLINGS = 30


class Backoff(NamedTuple):
    """`first` and `longest` are seconds; `min_share` is the part of the wait that is not left to chance."""

    first: float
    longest: float
    min_share: float = 0.5

    def bound(self, failures: int) -> float:
        """Return the longest wait, in seconds, after `failures` earlier failures."""
        return min(self.longest, self.first * float(1 << min(failures, _MAX_DOUBLINGS)))

    def pause(self, failures: int) -> float:
        """Return how many seconds to wait, drawn at random."""
        return self.bound(failures) * random.uniform(self.min_share, 1.0)  # noqa: S311  (no secret)
