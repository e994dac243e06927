"""Token buckets: they limit how many requests of one kind come in at once, and in the long run."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from overspill.reading.latest import Latest

if TYPE_CHECKING:
    from collections.abc import Callable


class TokenBucket:
    """A bucket with `burst` tokens, refilled by `rate` tokens a second. `clock` gives seconds.

    `kind` says in the fields of answers what they are for.
    """

    def __init__(self, kind: str, rate: float, burst: float, clock: Callable[[], float]) -> None:
        self._kind, self.rate, self._burst, self._clock = kind, rate, burst, clock
        self._tokens, self._at = float(burst), clock()
        self.share = 1.0
        """The part of rate and burst that may be used here."""
        self.policy = f'"{kind}";q={int(burst)};w={math.ceil(burst / rate)}'
        """The tokens (`q`) that it grants within seconds (`w`), as a `RateLimit-Policy` field."""
        self.requested = 0
        """How often a token was asked for."""

    @property
    def state(self) -> str:
        """The tokens that are left (`r`) and the seconds until all are back (`t`), as a `RateLimit` field."""
        missing = max(0.0, self._capacity - self._tokens)
        return f'"{self._kind}";r={int(self._tokens)};t={math.ceil(missing / (self.rate * self.share))}'

    @property
    def left(self) -> float:
        """The tokens that were left when it was asked last."""
        return self._tokens

    @property
    def _capacity(self) -> float:
        return self._burst if self.share == 1 else max(1.0, self._burst * self.share)

    def wait(self) -> int:
        """Return the whole seconds until there is a token, 0 if there is one now."""
        now, rate = self._clock(), self.rate * self.share
        self._tokens, self._at = min(self._capacity, self._tokens + rate * (now - self._at)), now
        return 0 if self._tokens >= 1 else math.ceil((1 - self._tokens) / rate)

    def take(self) -> int:
        """Take a token if there is one. Return what `wait` does: 0 if a token was taken."""
        self.requested += 1
        seconds = self.wait()
        if not seconds:
            self._tokens -= 1
        return seconds

    def put_back(self) -> None:
        self._tokens += 1

    def set_share(self, share: float) -> None:
        """Grant only this share of rate and burst from now on: more than 0, and at most 1."""
        self.wait()
        self.share = share


class TokenBuckets:
    """A bucket for each name. At most `max_keys` are kept. The longest unused one goes, as if full."""

    def __init__(
        self, kind: str, rate: float, burst: float, clock: Callable[[], float], *, max_keys: int
    ) -> None:
        self._new: Callable[[], TokenBucket] = partial(TokenBucket, kind, rate, burst, clock)
        self._buckets: Latest[str, TokenBucket] = Latest(max_keys)

    def of(self, name: str) -> TokenBucket:
        self._buckets[name] = bucket = self._buckets.get(name) or self._new()
        return bucket
