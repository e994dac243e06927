"""Trying again: how often, how long, and when not at all."""

from __future__ import annotations

import asyncio

import pytest
from overspill_service.errors import StoreUnavailable
from overspill_service.objects.s3.retry import Retry, TransientFailure


class Attempts:
    """An operation that fails a number of times first."""

    def __init__(self, failures: int) -> None:
        self.failures, self.made = failures, 0

    async def __call__(self) -> str:
        self.made += 1
        if self.made <= self.failures:
            raise TransientFailure(f"failure {self.made}")
        return "done"


async def test_the_first_success_is_returned() -> None:
    attempts = Attempts(failures=3)

    assert await Retry(deadline=10, pause=0).run(attempts) == "done"
    assert attempts.made == 4


async def test_the_last_failure_is_told_when_attempts_run_out() -> None:
    with pytest.raises(StoreUnavailable, match=r"failure 5 \(attempts: 5\)"):
        await Retry(deadline=10, attempts=5, pause=0).run(Attempts(failures=99))


async def test_a_deadline_ends_an_attempt_that_hangs() -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    with pytest.raises(StoreUnavailable, match=r"within 0\.01 s"):
        await Retry(deadline=0.01).run(hang)


async def test_a_deadline_ends_a_pause_and_tells_the_last_failure() -> None:
    with pytest.raises(StoreUnavailable, match=r"within 0\.05 s \(before: failure"):
        await Retry(deadline=0.05, attempts=1000, pause=0.001, longest_pause=60).run(Attempts(failures=9999))


async def test_an_empty_budget_allows_no_second_attempt_until_successes_refill_it() -> None:
    retry = Retry(deadline=10, pause=0, budget=10)
    for failures in (1, 1):
        await retry.run(Attempts(failures))
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="attempts: 1"):
            await retry.run(Attempts(failures=1))

    for _ in range(5):
        await retry.run(Attempts(failures=0))
    assert await retry.run(Attempts(failures=1)) == "done"


async def test_other_errors_are_not_retried() -> None:
    async def broken() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await Retry(deadline=10).run(broken)
