"""What the guard costs a tool whose output stays inline, over a call of an empty function."""

from __future__ import annotations

from timeit import timeit
from typing import TYPE_CHECKING, Final

from overspill.guard import Guard

from tests.bench import table
from tests.bench.table import Goal, Row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.scale import Scale
    from tests.bench.servers import Servers

GOAL: Final = Goal(1e-6)
KILOBYTE: Final = "x" * 1024


def empty() -> object:
    return KILOBYTE


def measure(servers: Servers, scale: Scale) -> Iterator[Row]:
    guard = Guard()
    calls = (empty, guard.wrap(empty), lambda: guard.process_sync(KILOBYTE, tool="tool"))
    times = scale.pick(100_000, 1_000)
    rounds = [[timeit(call, number=times) / times for call in calls] for _ in range(scale.rounds)]
    bare, wrapped, processed = (min(seconds) for seconds in zip(*rounds, strict=True))
    for name, seconds in ("wrapped tool", wrapped), ("process_sync", processed):
        what = f"guard, 1 KB inline, {name}: over an empty call"
        detail = f"{seconds / bare:.1f} times {table.microseconds(bare)}"
        yield Row(what, seconds - bare, GOAL, table.microseconds, detail)
