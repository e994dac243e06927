"""Runs work that is repeated in the background. A failure does not end the job, and is logged once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from overspill_service.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from logging import Logger

MAX_REASONS: Final = 8
"""The most reasons that are logged for one task until it succeeds.

A back end that is away has several in turn.
"""


class Attempts:
    """The attempts of one background job, logged in its name."""

    def __init__(self, log: Logger) -> None:
        self._log = log
        self._failing: dict[str, set[str]] = {}
        """The reasons that were logged of each task since it last succeeded."""

    async def make(self, task: str, work: Awaitable[None]) -> bool:
        """Do one task, and return whether it succeeded. A failure that repeats is logged once.

        If the job is cancelled meanwhile it ends, also if the work then fails while it cleans up.
        """
        cancellations, failure = _cancellations(), None
        try:
            await work
        except Exception as error:  # noqa: BLE001  (the boundary of background jobs: none ends with a failure)
            failure = error
        if _cancellations() > cancellations:  # a failed clean-up has taken the place of the cancellation
            raise asyncio.CancelledError from failure
        if failure is not None:
            self._report(task, failure)
        elif self._failing.pop(task, None):
            self._log.info("%s succeeds again", task)
        return failure is None

    def _report(self, task: str, error: Exception) -> None:
        is_expected = isinstance(error, ServiceError)
        if not self._is_new(task, str(error) if is_expected else repr(error)):
            return
        if is_expected:
            self._log.warning("%s failed, to be tried again: %s", task, error)
        else:
            self._log.error("%s failed unexpectedly, to be tried again", task, exc_info=error)

    def _is_new(self, task: str, reason: str) -> bool:
        """Return whether a task has not failed for this reason since it last succeeded, and remember it."""
        reasons = self._failing.setdefault(task, set())
        is_new = reason not in reasons and len(reasons) < MAX_REASONS
        if is_new:
            reasons.add(reason)
        return is_new


def _cancellations() -> int:
    """Return how often the task that runs now was asked to end."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()
