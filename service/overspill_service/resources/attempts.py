"""Runs work that is repeated in the background. A failure does not end the job, and is logged once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overspill_service.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from logging import Logger


class Attempts:
    """The attempts of one background job, logged in its name."""

    def __init__(self, log: Logger) -> None:
        self._log = log
        self._failing: dict[str, str] = {}

    async def make(self, what: str, work: Awaitable[None]) -> bool:
        """Do one task, and return whether it succeeded. A failure that repeats is logged once."""
        try:
            await work
        except ServiceError as error:
            if self._failing.get(what) != str(error):
                self._log.warning("%s failed, to be tried again: %s", what, error)
            self._failing[what] = str(error)
        except Exception as error:  # noqa: BLE001  (the boundary of background jobs: none ends with a failure)
            if self._failing.get(what) != repr(error):
                self._log.exception("%s failed unexpectedly, to be tried again", what)
            self._failing[what] = repr(error)
        else:
            if self._failing.pop(what, None):
                self._log.info("%s succeeds again", what)
            return True
        return False
