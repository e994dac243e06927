"""Repeats a live capture's requests while they may succeed. Notes whether the service knows the capture."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from overspill.errors import OverspillError, Unreachable
from overspill.errors.verdicts import may_pass
from overspill.execution.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from overspill.live.ports import LiveService

T = TypeVar("T")

_ANSWER_SECONDS: Final = 5.0
"""The least time that the service has to answer the request that begins the capture."""
_BACKOFF: Final = Backoff(first=0.2, longest=5.0)


class Patience:
    """Repeats each failed request for up to `seconds`. `ending` is set once the stream has ended.

    Its methods raise the `OverspillError` of a request that is refused for good, or of the last attempt.
    """

    def __init__(self, service: LiveService, ending: asyncio.Event, seconds: float) -> None:
        self.is_begun: bool = False
        """Whether the service knows the capture."""
        self.may_be_known: bool = False
        """Whether the service may know the capture, although no answer said so."""
        self._service, self._ending, self._seconds = service, ending, seconds
        self._until: float | None = None
        self._limit: asyncio.Timeout | None = None

    @property
    def is_ending(self) -> bool:
        """Whether all that is still to be written exists already."""
        return self._ending.is_set()

    def hurry(self, seconds: float) -> None:
        """Give the service no more than `seconds` from now, whatever it is asked until then."""
        self._until = asyncio.get_running_loop().time() + seconds
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(self._until)

    async def begin(self) -> None:
        """Make the capture, in one request. Give up a service that accepts the request and never answers."""
        try:
            await self._answered(max(self._seconds, _ANSWER_SECONDS))
        except OverspillError as error:
            self.may_be_known |= error.was_sent if isinstance(error, Unreachable) else may_pass(error)
            raise
        except asyncio.CancelledError:
            self.may_be_known = True
            raise
        self.is_begun = self.may_be_known = True

    async def _answered(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._service.begin()
        except TimeoutError as error:
            raise Unreachable(f"the service did not answer within {seconds:g} s") from error

    async def until_done(
        self, request: Callable[[], Awaitable[T]], on_failure: Callable[[], Awaitable[None]] | None = None
    ) -> T:
        """Return the answer of a request. Repeat the request while it may succeed.

        If the stream has ended and the service does not know the capture yet, give up at once. Nothing is
        lost: whoever has the whole stores it in another way.
        """
        try:
            async with asyncio.timeout_at(self._until) as self._limit:
                return await self._repeated(request, on_failure)
        except TimeoutError:
            raise Unreachable("the service did not take the rest in time") from None
        finally:
            self._limit = None

    async def _repeated(
        self, request: Callable[[], Awaitable[T]], on_failure: Callable[[], Awaitable[None]] | None
    ) -> T:
        loop = asyncio.get_running_loop()
        failures, since = 0, loop.time()
        while True:
            try:
                return await request()
            except OverspillError as error:
                if on_failure is not None:
                    await on_failure()
                left = since + self._seconds - loop.time()
                if left <= 0 or self._is_unknown_to_the_end or not may_pass(error):
                    raise
                await self._pause(min(left, _BACKOFF.pause(failures)))
                failures += 1

    @property
    def _is_unknown_to_the_end(self) -> bool:
        """Whether the stream has ended, and the service has never heard of it."""
        return self.is_ending and not self.is_begun

    async def _pause(self, seconds: float) -> None:
        """Wait. If the service does not know the capture yet, wait no longer than until the stream's end."""
        if self.is_begun:
            await asyncio.sleep(seconds)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ending.wait()
