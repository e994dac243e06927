"""Background work that fails again and again says so once."""

from __future__ import annotations

import asyncio
import contextlib
import logging

import pytest
from overspill_service.errors import StoreUnavailable
from overspill_service.resources.attempts import MAX_REASONS, Attempts


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


async def test_of_reasons_that_are_always_new_only_the_first_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    attempts = Attempts(logging.getLogger("overspill_service"))
    for number in range(MAX_REASONS + 5):
        await attempts.make("work", fail(StoreUnavailable(f"down {number}")))

    assert len(caplog.records) == MAX_REASONS


@pytest.mark.parametrize("error", [StoreUnavailable("down"), ValueError("unexpected")])
async def test_a_cancelled_job_ends_also_if_its_work_fails_while_it_cleans_up(error: Exception) -> None:
    attempts, has_begun = Attempts(logging.getLogger("overspill_service")), asyncio.Event()

    async def work() -> None:
        try:
            has_begun.set()
            await asyncio.Event().wait()
        finally:
            await fail(error)

    job = asyncio.create_task(attempts.make("work", work()))
    await has_begun.wait()
    job.cancel()
    await asyncio.wait([job])

    assert job.cancelled()


async def test_a_cancelled_job_ends_also_if_its_work_handles_the_failure_of_a_clean_up() -> None:
    attempts, has_begun = Attempts(logging.getLogger("overspill_service")), asyncio.Event()

    async def work() -> None:
        with contextlib.suppress(StoreUnavailable):
            try:
                has_begun.set()
                await asyncio.Event().wait()
            finally:
                await fail(StoreUnavailable("down"))

    job = asyncio.create_task(attempts.make("work", work()))
    await has_begun.wait()
    job.cancel()
    await asyncio.wait([job])

    assert job.cancelled()
