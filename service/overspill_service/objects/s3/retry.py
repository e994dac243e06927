"""Retries within a deadline, after random pauses, and out of a budget that successes refill.

Full jitter after https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/. The budget keeps
a store that is down from being asked several times for each request.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Final, TypeVar

from overspill_service.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

RETRY_COST: Final = 5.0
SUCCESS_REFUND: Final = 1.0


class TransientFailure(Exception):
    """One attempt failed, and another one may succeed. `str()` says how it failed."""


class Retry:
    def __init__(
        self,
        *,
        deadline: float,
        attempts: int = 6,
        pause: float = 0.1,
        longest_pause: float = 5,
        budget: float = 500,
    ) -> None:
        """All times in seconds. `pause` bounds the first random pause; each later bound is twice as long."""
        self.deadline = deadline
        self._attempts = attempts
        self._pause, self._longest_pause = pause, longest_pause
        self._budget = self._full_budget = budget

    async def run(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Return the result of the first successful attempt.

        Raises `StoreUnavailable` if there is none in time.
        """
        failures: list[TransientFailure] = []
        try:
            async with asyncio.timeout(self.deadline):
                return await self._until_success(attempt, failures)
        except TimeoutError as error:
            last = f" (before: {failures[-1]})" if failures else ""
            raise StoreUnavailable(f"no answer from the object store within {self.deadline:g} s{last}") from (
                failures[-1] if failures else error
            )

    async def _until_success(
        self, attempt: Callable[[], Awaitable[T]], failures: list[TransientFailure]
    ) -> T:
        while True:
            try:
                result = await attempt()
            except TransientFailure as failure:
                failures.append(failure)
                if len(failures) >= self._attempts or not self._take():
                    raise StoreUnavailable(f"{failure} (attempts: {len(failures)})") from failure
            else:
                self._budget = min(self._full_budget, self._budget + SUCCESS_REFUND)
                return result
            longest = min(self._longest_pause, self._pause * 2 ** (len(failures) - 1))
            await asyncio.sleep(random.uniform(0, longest))  # noqa: S311  (no secret)

    def _take(self) -> bool:
        if self._budget < RETRY_COST:
            return False
        self._budget -= RETRY_COST
        return True
