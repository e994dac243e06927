"""The cost of the guard: outputs that stay inline, over an empty call; a long one, over measuring it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from statistics import median
from timeit import timeit
from typing import TYPE_CHECKING, Any, Final

from overspill.guard.guard import Guard
from overspill.guard.policy import Policy
from overspill.previews.cut import HEAD
from overspill.spools.spool import Spool

from tests.bench import measuring, table, texts
from tests.bench.table import Goal, Row

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from tests.bench.scale import Scale
    from tests.bench.servers import Servers

    Calls = Callable[[int], Awaitable[float]]
    """Seconds that so many calls take."""

LINE: Final = "2026-11-22 02:11:07 INFO worker-7 request 81723 served in 12 ms\n"
INLINE: Final[dict[str, tuple[Any, Goal]]] = {
    "1 KB": ((LINE * 17)[:1_024], Goal(1e-6)),
    "40 KB": ((LINE * 641)[:40_960], Goal(5e-6)),
    "one line of 40 KB": ("x" * 40_960, Goal(5e-6)),
    "a dict of 1 KB": (
        {"rows": [{"id": n, "name": f"name {n}", "is_open": True} for n in range(22)]},
        Goal(50e-6),
    ),
    "3 MCP blocks": ([{"type": "text", "text": LINE * 5} for _ in range(3)], Goal(50e-6)),
}
LONG: Final = 5_000_000
SPILLED: Final = 500_000
FEW_BYTES: Final = 100_000
MEASURED: Final = "encoding it and counting its lines"
POLICIES: Final = {
    "": Policy(redaction="off"),
    ", its beginning shown": Policy(strategy=HEAD, redaction="off"),
}
"""What masking secrets costs has figures of its own."""

GUARD_ONE: Final = """
import resource, sys
from overspill.guard.guard import Guard
from overspill.guard.policy import Policy
from overspill.spools.spool import Spool

def peak():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

text = "a line of sixty-four characters, as they are usual in such texts\\n" * (int(sys.argv[1]) // 65)
spool = Spool(sys.argv[2], max_bytes=2 * len(text)) if sys.argv[2] else False
guard = Guard(policy=Policy(wait=300.0), spool=spool)
before = peak()
guard.process_sync(text, tool="tool")
print(peak() - before)
"""


def measure(servers: Servers, scale: Scale) -> Iterator[Row]:
    for name, (value, goal) in INLINE.items():
        yield from _inline(name, value, goal, scale)
    for how, policy in POLICIES.items():
        text = texts.text(texts.LOG, scale.pick(LONG, FEW_BYTES)).decode()
        yield _long(f"5 MB without storing{how}", text, Guard(policy=policy), Goal(1.2), scale)
    for how, policy in POLICIES.items():
        # Spooling that came too late for its call may still write when all is measured.
        with (
            tempfile.TemporaryDirectory(prefix="overspill-guard-", ignore_cleanup_errors=True) as root,
            Guard(policy=policy, spool=Spool(root)) as guard,
        ):
            text = texts.text(texts.LOG, scale.pick(SPILLED, FEW_BYTES)).decode()
            yield _long(f"500 KB to the spool{how}", text, guard, Goal(10), scale)
    for store in "", "in the spool":
        yield _memory(store, scale)


def _memory(store: str, scale: Scale) -> Row:
    """What a process takes beyond the text itself at its peak."""
    size = scale.pick(1_000_000_000, 10_000_000)
    with tempfile.TemporaryDirectory(prefix="overspill-guard-") as root:
        command = [sys.executable, "-c", GUARD_ONE, str(size), root if store else ""]
        done = subprocess.run(command, capture_output=True, check=True, timeout=600)
    what = f"a text of {size // 1_000_000:,} MB, {store or 'nowhere to store'}: memory beyond it"
    return Row(what, int(done.stdout), Goal(150 * 2**20), table.mebibytes)


def _inline(name: str, value: Any, goal: Goal, scale: Scale) -> Iterator[Row]:
    def empty() -> object:
        return value

    async def empty_async() -> object:
        return value

    guard = Guard()
    ways: dict[str, tuple[Calls, Calls]] = {
        "wrapped tool": (_sync(guard.wrap(empty)), _sync(empty)),
        "process_sync": (_sync(lambda: guard.process_sync(value, tool="tool")), _sync(empty)),
        "wrapped async tool": (_awaited(guard.wrap(empty_async)), _awaited(empty_async)),
        "process": (_awaited(lambda: guard.process(value, tool="tool")), _awaited(empty_async)),
    }
    for way, (ours, bare) in ways.items():
        more, least = asyncio.run(_best(ours, bare, scale))
        detail = f"{1 + more / least:.1f} times {table.microseconds(least)}{_counting(value, scale)}"
        yield Row(f"{name} inline, {way}: over an empty call", more, goal, table.microseconds, detail)


def _counting(value: Any, scale: Scale) -> str:
    """What a pass over the text costs on this machine just now."""
    if not isinstance(value, str):
        return ""
    seconds = min(timeit(lambda: value.count("\n"), number=100) / 100 for _ in range(6 * scale.rounds))
    return f"; to count its newlines takes {table.microseconds(seconds)}"


async def _best(ours: Calls, bare: Calls, scale: Scale) -> tuple[float, float]:
    """Seconds over an empty call, and of that: the least of many short rounds, as other work only adds."""
    times = scale.pick(4_000, 20)
    rounds = [(await ours(times), await bare(times)) for _ in range(6 * scale.rounds)]
    mine, least = (min(seconds) / times for seconds in zip(*rounds, strict=True))
    return mine - least, least


def _sync(call: Callable[[], object]) -> Calls:
    async def calls(times: int) -> float:
        start = time.perf_counter()
        for _ in range(times):
            call()
        return time.perf_counter() - start

    return calls


def _awaited(call: Callable[[], Awaitable[object]]) -> Calls:
    async def calls(times: int) -> float:
        start = time.perf_counter()
        for _ in range(times):
            await call()
        return time.perf_counter() - start

    return calls


def _long(what: str, text: str, guard: Guard, goal: Goal, scale: Scale) -> Row:
    """A text that is too long, against encoding it and one pass of counting its lines, in CPU time."""
    times = scale.pick(5, 1)
    ours, theirs = [], []
    for number in range(4 * scale.rounds + 1):
        ours.append(_cpu(lambda at: guard.process_sync(text, tool="tool", call_id=f"{number}.{at}"), times))  # noqa: B023
        theirs.append(_cpu(lambda _: (len(text.encode()), text.count("\n")), times))
    mine, least = median(ours[1:]), median(theirs[1:])
    detail = f"{1e3 * mine:.2f} ms against {1e3 * least:.2f} ms of CPU"
    return Row(f"{what}: over {MEASURED}", mine / least, goal, detail=detail)


def _cpu(work: Callable[[int], object], times: int) -> float:
    start = measuring.own()
    for number in range(times):
        work(number)
    return (measuring.own() - start) / times
