"""How long a service is waited for that was there, and is away for a moment: it is restarted, perhaps."""

from __future__ import annotations

import asyncio
from typing import Final

from overspill.errors import OverspillError, TooManyRequests
from overspill.errors.verdicts import may_pass_soon
from overspill.execution.backoff import Backoff

_BACKOFF: Final = Backoff(first=0.2, longest=5.0)
PATIENCE_SECONDS: Final = 60.0
"""How long a service may be away: as long as the producer of a live capture waits for it."""
_LONG_SECONDS: Final = 2.0
"""A request that failed after so long was being answered: what is not there says so earlier."""


class Outage:
    """What has failed of one wait. It is not begun again after `until`, in the event loop's time."""

    def __init__(self, until: float) -> None:
        self._until = until
        self._begun = asyncio.get_running_loop().time()
        self._failed = 0

    async def pause_after(self, error: OverspillError, answered: float | None) -> None:
        """Wait before the next attempt. Raises the error if that cannot help, or has not for too long.

        `answered` is when the service has answered something last, if it has. If it was not there to begin
        with, it is not waited for.
        """
        now = asyncio.get_running_loop().time()
        if not self._failed:
            self._until = min(self._until, now + PATIENCE_SECONDS)
            if not self._was_there(now, answered):
                raise error
        if not may_pass_soon(error) or isinstance(error, TooManyRequests) or now >= self._until:
            raise error
        self._failed += 1
        await asyncio.sleep(_BACKOFF.pause(self._failed - 1))

    def _was_there(self, now: float, answered: float | None) -> bool:
        is_known = answered is not None and now - answered < PATIENCE_SECONDS
        return is_known or now - self._begun > _LONG_SECONDS
