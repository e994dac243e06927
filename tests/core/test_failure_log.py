"""Failures in the log: the first at once, the others counted, a line a minute for each cause."""

from __future__ import annotations

from typing import Any

import pytest
from overspill_service.errors import StoreFull, StoreUnavailable
from overspill_service.telemetry.failure_log import FailureLog

from tests.clock import Clock


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, Any]]:
    """Messages and counts of the lines since this was last asked."""
    found = [(record.getMessage(), record.__dict__["fields"]["count"]) for record in caplog.records]
    caplog.clear()
    return found


def test_a_cause_has_a_line_a_minute_with_how_often_it_happened(caplog: pytest.LogCaptureFixture) -> None:
    seconds = Clock(0.0)
    failure_log = FailureLog(seconds)
    for _ in range(100):
        failure_log.record(StoreUnavailable("down"))
    failure_log.record(StoreFull("full"))
    assert told(caplog) == [("down", 1), ("full", 1)]

    seconds.now = 59.9
    failure_log.flush()
    assert told(caplog) == []

    seconds.now = 60.0
    failure_log.flush()
    assert told(caplog) == [("down", 99)]

    seconds.now = 200.0
    failure_log.flush()
    assert told(caplog) == []
    failure_log.record(StoreUnavailable("down"))
    assert told(caplog) == [("down", 1)]
