"""Waits for a service that answered before and is away for a moment, for example because it is restarted."""

from __future__ import annotations

import asyncio
from typing import Final

from overspill.errors import OverspillError, TooManyRequests
from overspill.errors.verdicts import may_pass_soon
from overspill.execution.backoff import Backoff

_BACKOFF: Final = Backoff(first=0.2, longest=5.0)
PATIENCE_SECONDS: Final = 60.0
"""The longest absence of a service: the producer of a live capture waits as long."""
_LONG_SECONDS: Final = 2.0
"""A request that fails only after this time had reached the service: one that is away fails earlier."""


class Outage:
    """The failed attempts of one wait. No attempt begins after `until`, in the event loop's time."""

    def __init__(self, until: float) -> None:
        self._until = until
        self._started_at = asyncio.get_running_loop().time()
        self._failed = 0

    async def pause_after(self, error: OverspillError, answered: float | None) -> None:
        """Wait before the next attempt. Raises the error if that cannot help, or has not helped for too long.

        `answered` is the time of the service's last answer, if there was one. If the service was not there in
        the beginning, this does not wait for it.
        """
        now = asyncio.get_running_loop().time()
        if not self._failed:
            self._until = min(self._until, now + PATIENCE_SECONDS)
            if not self._was_up(now, answered):
                raise error
        if not may_pass_soon(error) or isinstance(error, TooManyRequests) or now >= self._until:
            raise error
        self._failed += 1
        await asyncio.sleep(_BACKOFF.pause(self._failed - 1))

    def _was_up(self, now: float, answered: float | None) -> bool:
        is_known = answered is not None and now - answered < PATIENCE_SECONDS
        return is_known or now - self._started_at > _LONG_SECONDS
