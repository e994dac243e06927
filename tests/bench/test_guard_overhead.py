"""What the guard costs a tool whose output stays inline, against a call of the bare tool."""

import timeit

import pytest
from overspill.guard import Guard

KILOBYTE = "x" * 1024
CALLS = 100_000


@pytest.mark.bench
def test_inline_overhead() -> None:
    guard = Guard()

    def tool() -> object:
        return KILOBYTE

    wrapped = guard.wrap(tool)
    calls = (tool, wrapped, lambda: guard.process_sync(KILOBYTE, tool="tool"))
    rounds = [[timeit.timeit(call, number=CALLS) for call in calls] for _ in range(7)]
    bare, through_wrap, through_process = (min(times) / CALLS * 1e9 for times in zip(*rounds, strict=True))
    print(
        f"\nbare {bare:.0f} ns; wrapped +{through_wrap - bare:.0f} ns ({through_wrap / bare:.1f} x); "
        f"process_sync +{through_process - bare:.0f} ns ({through_process / bare:.1f} x)"
    )
