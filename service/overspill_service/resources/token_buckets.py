"""Token buckets: how many requests of one kind come in at once, and in the long run."""

from __future__ import annotations

import math
from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class TokenBucket:
    """A bucket with `burst` tokens, refilled by `rate` tokens a second. `clock` gives seconds."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float]) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._tokens, self._at = float(burst), clock()

    def wait(self) -> int:
        """Return in how many whole seconds there is a token, 0 if there is one now."""
        now = self._clock()
        self._tokens, self._at = min(self._burst, self._tokens + self._rate * (now - self._at)), now
        return 0 if self._tokens >= 1 else math.ceil((1 - self._tokens) / self._rate)

    def take(self) -> int:
        """Take a token if there is one. Return what `wait` does: 0 if a token was taken."""
        seconds = self.wait()
        if not seconds:
            self._tokens -= 1
        return seconds

    def put_back(self) -> None:
        self._tokens += 1


class TokenBuckets:
    """A bucket for each name. At most `most` are kept: the longest unused one goes, as if it were full."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float], *, most: int) -> None:
        self._new: Callable[[], TokenBucket] = partial(TokenBucket, rate, burst, clock)
        self._most = most
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def of(self, name: str) -> TokenBucket:
        bucket = self._buckets.get(name)
        if bucket is None:
            if len(self._buckets) >= self._most:
                self._buckets.popitem(last=False)
            bucket = self._buckets[name] = self._new()
        self._buckets.move_to_end(name)
        return bucket
