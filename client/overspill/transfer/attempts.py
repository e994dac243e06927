"""The attempts of one request, and the deadline that they share."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from overspill.errors import OverspillError, ProblemError, Unreachable, verdicts
from overspill.execution.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from overspill.transfer.address import Address
    from overspill.transfer.request import Request


_PRECISION: Final = 0.01
"""A deadline is moved only by more than this part of its seconds: a timer costs as much as a piece."""
_BACKOFF: Final = Backoff(first=0.1, longest=5.0, min_share=0.0)


class Attempts:
    """The attempts of one request, at most `limit`. They end `seconds` from now at the latest.

    Each piece of a body that goes out moves that deadline.
    """

    def __init__(self, limit: int, seconds: float, timeout: asyncio.Timeout) -> None:
        self._limit, self._seconds, self._timeout = limit, seconds, timeout
        self._is_over = False
        self.failed: int = 0
        """How many attempts have failed."""
        self._was_sent = False

    def extend(self) -> None:
        """Move the deadline to the full seconds from now, or a hundredth less, unless it has passed."""
        deadline, extended = self._timeout.when(), asyncio.get_running_loop().time() + self._seconds
        is_late = deadline is None or extended - deadline > _PRECISION * self._seconds
        if is_late and not self._is_over and not self._timeout.expired():
            self._timeout.reschedule(extended)

    def end(self) -> None:
        """Fix the deadline: nothing moves it from now on."""
        self._is_over = True

    async def wait_after(self, error: OverspillError) -> None:
        """Wait until the next attempt. Raises `error` if that ends the request.

        Sets `was_sent` of an `Unreachable`: whether any attempt may have reached the service.
        """
        self.failed += 1
        self._was_sent = self._was_sent or not isinstance(error, Unreachable) or error.was_sent
        if isinstance(error, Unreachable):
            error.was_sent = self._was_sent
        pause = _wait_before(self.failed, error)
        if pause is None or self.failed >= self._limit or not self._leaves(pause):
            raise error
        await asyncio.sleep(pause)

    def _leaves(self, seconds: float) -> bool:
        """Return whether more than `seconds` are left."""
        deadline = self._timeout.when()
        return deadline is not None and asyncio.get_running_loop().time() + seconds < deadline


def _wait_before(attempt: int, error: OverspillError) -> float | None:
    """Return the seconds to wait after failure number `attempt` (from 1), or None if repeating cannot help.

    They are what the service asks for with `Retry-After`, plus a random time from a `Backoff`.
    """
    if not verdicts.may_pass_soon(error):
        return None
    requested = error.retry_after if isinstance(error, ProblemError) else None
    return (requested or 0) + _BACKOFF.pause(attempt - 1)


@asynccontextmanager
async def attempts_of(request: Request, address: Address) -> AsyncIterator[Attempts]:
    """Yield the attempts of a request. Raises `Unreachable` after the client's timeout, or its own."""
    longest = address.timeout if request.silent_seconds is None else request.silent_seconds
    seconds = min(address.timeout, longest) + request.answer_seconds
    timeout = asyncio.timeout(seconds)
    attempts = Attempts(1 + address.retries if request.repeatable else 1, seconds, timeout)
    try:
        async with timeout:
            try:
                yield attempts
            finally:
                attempts.end()
    except TimeoutError as error:
        if not timeout.expired():  # raised by reading the caller's content, not by this deadline
            raise
        call = f"{request.method} {request.path}"
        raise Unreachable(f"{address.url} gave {call} no answer within {seconds:g} s") from error
