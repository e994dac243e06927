"""Failures in the log: the first at once, the others counted, a line a minute for each cause."""

from __future__ import annotations

from typing import Any

import pytest
from overspill_service.errors import StoreFull, StoreUnavailable
from overspill_service.telemetry.failure_log import Troubles


class Seconds:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, Any]]:
    """Messages and counts of the lines since this was last asked."""
    found = [(record.getMessage(), record.__dict__["facts"]["count"]) for record in caplog.records]
    caplog.clear()
    return found


def test_a_cause_has_a_line_a_minute_with_how_often_it_happened(caplog: pytest.LogCaptureFixture) -> None:
    seconds = Seconds()
    troubles = Troubles(seconds)
    for _ in range(100):
        troubles.tell(StoreUnavailable("down"))
    troubles.tell(StoreFull("full"))
    assert told(caplog) == [("down", 1), ("full", 1)]

    seconds.now = 59.9
    troubles.tell_rest()
    assert told(caplog) == []

    seconds.now = 60.0
    troubles.tell_rest()
    assert told(caplog) == [("down", 99)]

    seconds.now = 200.0
    troubles.tell_rest()
    assert told(caplog) == []
    troubles.tell(StoreUnavailable("down"))
    assert told(caplog) == [("down", 1)]
