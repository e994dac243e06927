"""Logs failures that an operator must fix: at most once a minute for each cause, with their number."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

from overspill_service.telemetry import logs

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill_service.errors import ServiceError

INTERVAL_SECONDS: Final = 60.0

log = logging.getLogger(__name__)


class _Cause:
    """One cause: the details of its last failure, and the number of failures since its last line."""

    def __init__(self) -> None:
        self.logged_at = float("-inf")
        self.count = 0
        self.detail = ""
        self.fields: dict[str, object] = {}


class FailureLog:
    """Counts failures by cause: a failure of the system, or else the problem's code.

    There are few of both.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` returns seconds that never jump."""
        self._clock = clock
        self._causes: dict[str, _Cause] = {}

    def record(self, error: ServiceError) -> None:
        """Count a failure. Log it unless its cause was logged within the minute."""
        self.record_cause(error.failure_name or error.code, str(error), cause=logs.causes(error))

    def record_cause(self, name: str, detail: str, **fields: object) -> None:
        """Count a failure of the cause `name`, one of a small number of names."""
        cause = self._causes.setdefault(name, _Cause())
        cause.count += 1
        cause.detail, cause.fields = detail, {name: value for name, value in fields.items() if value}
        self._log_if_due(name, cause)

    def flush(self) -> None:
        """Log the failures that have waited for their minute. Call it now and then."""
        for name, cause in self._causes.items():
            if cause.count:
                self._log_if_due(name, cause)

    def _log_if_due(self, name: str, cause: _Cause) -> None:
        now = self._clock()
        if now - cause.logged_at < INTERVAL_SECONDS:
            return
        fields = logs.fields(trouble=name, count=cause.count, **cause.fields)
        log.warning("%s", cause.detail, extra=fields)
        cause.logged_at, cause.count = now, 0
