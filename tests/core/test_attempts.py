"""Background work that fails again and again says so once."""

from __future__ import annotations

import logging

import pytest
from overspill_service.errors import StoreUnavailable
from overspill_service.resources.attempts import Attempts


async def fail(error: Exception | None) -> None:
    if error is not None:
        raise error


@pytest.mark.parametrize("error", [StoreUnavailable("down"), ValueError("unexpected")])
async def test_a_failure_is_logged_when_it_begins_changes_and_ends(
    caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    attempts = Attempts(logging.getLogger("overspill_service"))
    with caplog.at_level(logging.INFO):
        for each in (error, error, KeyError("another"), error, KeyError("another"), None, None):
            await attempts.make("work", fail(each))

    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 3
    assert lines[-1] == "work succeeds again"
