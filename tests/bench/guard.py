"""What the guard costs: outputs that stay inline, over a call of an empty function; a long one, over measuring it."""

from __future__ import annotations

from statistics import median
from timeit import timeit
from typing import TYPE_CHECKING, Final

from overspill.guard import Guard
from tests.bench import measuring, table
from tests.bench.table import Goal, Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.bench.scale import Scale
    from tests.bench.servers import Servers

INLINE: Final = {"1 KB": (1_024, Goal(1e-6)), "40 KB": (40_960, Goal(5e-6))}
LINE: Final = "2026-11-22 02:11:07 INFO worker-7 request 81723 served in 12 ms\n"
LONG_GOAL: Final = Goal(1.2)


def measure(servers: Servers, scale: Scale) -> Iterator[Row]:  # noqa: ARG001
    for name, (size, goal) in INLINE.items():
        yield from _inline(name, (LINE * (size // len(LINE) + 1))[:size], goal, scale)
    yield _long(scale)


def _inline(name: str, text: str, goal: Goal, scale: Scale) -> Iterator[Row]:
    def empty() -> object:
        return text

    guard = Guard()
    calls: tuple[Callable[[], object], ...] = (
        empty,
        guard.wrap(empty),
        lambda: guard.process_sync(text, tool="tool"),
    )
    times = scale.pick(100_000, 1_000)
    rounds = [[timeit(call, number=times) / times for call in calls] for _ in range(scale.rounds)]
    bare, wrapped, processed = (min(seconds) for seconds in zip(*rounds, strict=True))
    for way, seconds in ("wrapped tool", wrapped), ("process_sync", processed):
        detail = f"{seconds / bare:.1f} times {table.microseconds(bare)}"
        what = f"{name} inline, {way}: over an empty call"
        yield Row(what, seconds - bare, goal, table.microseconds, detail)


def _long(scale: Scale) -> Row:
    """A text of 5 MB that cannot be stored, against encoding it and one pass of counting its lines."""
    text = LINE * (scale.pick(5_000_000, 500_000) // len(LINE))
    guard = Guard()
    times = scale.pick(10, 1)
    ours, theirs = [], []
    for _ in range(4 * scale.rounds):
        ours.append(_cpu(lambda: guard.process_sync(text, tool="tool"), times))
        theirs.append(_cpu(lambda: (len(text.encode()), text.count("\n")), times))
    detail = f"{1e3 * median(ours):.2f} ms against {1e3 * median(theirs):.2f} ms of CPU"
    what = "5 MB without storing: over encoding it and counting its lines"
    return Row(what, median(ours) / median(theirs), LONG_GOAL, detail=detail)


def _cpu(work: Callable[[], object], times: int) -> float:
    start = measuring.own()
    for _ in range(times):
        work()
    return (measuring.own() - start) / times
