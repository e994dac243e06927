"""The process of a fleet that `fleet` measures: many tool outputs that spill at once, and what they cost it.

Run as `python -m tests.bench.fleet_process` with a `Task` as JSON; prints `Figures` as JSON.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec
from msgspec import Struct
from overspill import Client, Guard, Policy, Spool, SyncClient

from tests.bench import texts
from tests.bench.measuring import Memory
from tests.bench.mixed import outputs as mixed_outputs

if TYPE_CHECKING:
    from collections.abc import Callable

WARM_UP: Final = 3
TICK: Final = 0.005
"""Seconds between two looks at the clock."""
LOOK: Final = 0.25
"""Seconds between two looks at the threads and the sockets."""


class Task(Struct, frozen=True, kw_only=True):
    """`how` is one of `HOWS`. An empty `spool` is none. Outputs are of a log, or of many kinds if `mixed`."""

    how: str
    url: str
    spool: str
    count: int
    size: int
    keys: list[str]
    wait: float
    idle: float
    """Seconds until the threads are counted that are left."""
    mixed: bool = False


class Figures(Struct, frozen=True, kw_only=True):
    """`cpu` and `seconds` are of the whole; `memory` is in bytes beyond that of the outputs, at its peak."""

    outcomes: dict[str, int]
    reasons: dict[str, int]
    threads: int
    threads_after: int
    sockets: int
    block: float
    own: float
    """As `block`, but CPU seconds of the loop's thread: other work on the machine adds nothing to them."""
    memory: int
    cpu: float
    seconds: float
    slowest: float
    """Seconds of the slowest single call."""


class Watch:
    """Looks at threads and sockets from a thread of its own, which does not count."""

    def __init__(self) -> None:
        self.threads = self.sockets = 0
        self.block = self.own = 0.0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._memory = Memory(os.getpid())

    def __enter__(self) -> Self:
        self._before = self._memory.now
        self._memory.begin()
        self._cpu, self._start = _cpu(), time.perf_counter()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._start
        self.cpu = _cpu() - self._cpu
        self._is_over.set()
        self._thread.join()
        self.memory = self._memory.peak - self._before

    def _look(self) -> None:
        while not self._is_over.wait(LOOK):
            self.threads = max(self.threads, threads() - 1)
            self.sockets = max(self.sockets, sockets())

    async def tick(self) -> None:
        while True:
            before, own = time.perf_counter(), time.thread_time()
            await asyncio.sleep(TICK)
            self.block = max(self.block, time.perf_counter() - before - TICK)
            self.own = max(self.own, time.thread_time() - own)


def threads() -> int:
    return len(os.listdir("/proc/self/task"))  # noqa: PTH208  (as above)


def sockets() -> int:
    found = 0
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208  (paths would cost more than is measured)
        try:
            found += os.readlink(f"/proc/self/fd/{name}").startswith("socket:")  # noqa: PTH115  (as above)
        except OSError:
            continue
    return found


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def run(task: Task) -> Figures:
    outputs = outputs_of(task.count, task.size, mixed=task.mixed)
    with ExitStack() as stack:
        return HOWS[task.how](task, outputs, stack)


def outputs_of(count: int, size: int, *, mixed: bool) -> list[str]:
    return mixed_outputs(count, size) if mixed else [text(number, size) for number in range(count)]


def text(number: int, size: int) -> str:
    return (f"output {number} " + _log(size))[:size]


@cache
def _log(size: int) -> str:
    return texts.text(texts.LOG, size).decode()


def _guards(task: Task, stack: ExitStack) -> list[Guard]:
    spool: Any = Spool(task.spool) if task.spool else False
    clients = [stack.enter_context(SyncClient(task.url, key, retries=3)) for key in task.keys]
    return [stack.enter_context(Guard(client, Policy(wait=task.wait), spool=spool)) for client in clients]


def _tasks(task: Task, outputs: list[str], stack: ExitStack) -> Figures:
    guards, watch = _guards(task, stack), Watch()
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    slowest = [0.0]

    async def one(number: int) -> None:
        start = time.perf_counter()
        guard = guards[number % len(guards)]
        guarded = await guard.process(
            outputs[number], tool="tool", call_id=f"c{number}", session=f"s{number}"
        )
        counts[str(guarded.outcome)] += 1
        if guarded.reason:
            reasons[guarded.reason[:160]] += 1
        slowest[0] = max(slowest[0], time.perf_counter() - start)

    async def main() -> int:
        for number in range(WARM_UP):
            await guards[0].process(text(-1 - number, task.size), tool="tool", call_id=f"w{number}")
        with watch:
            ticker = asyncio.create_task(watch.tick())
            async with asyncio.TaskGroup() as group:
                for number in range(task.count):
                    group.create_task(one(number))
            ticker.cancel()
        await asyncio.sleep(task.idle)
        return threads()

    after = asyncio.run(main())
    return _figures(watch, counts, reasons, after, slowest[0])


def _threads(task: Task, outputs: list[str], stack: ExitStack) -> Figures:
    guards, watch = _guards(task, stack), Watch()
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    lock, slowest = threading.Lock(), [0.0]
    for number in range(WARM_UP):
        guards[0].process_sync(text(-1 - number, task.size), tool="tool", call_id=f"w{number}")
    workers = min(task.count, 200)

    def one(first: int) -> None:
        for number in range(first, task.count, workers):
            start = time.perf_counter()
            guarded = guards[number % len(guards)].process_sync(
                outputs[number], tool="tool", call_id=f"c{number}", session=f"s{number}"
            )
            with lock:
                counts[str(guarded.outcome)] += 1
                if guarded.reason:
                    reasons[guarded.reason[:160]] += 1
                slowest[0] = max(slowest[0], time.perf_counter() - start)

    with watch:
        running = [threading.Thread(target=one, args=[number]) for number in range(workers)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
    time.sleep(task.idle)
    watch.threads -= workers
    return _figures(watch, counts, reasons, threads(), slowest[0])


def _one_by_one(task: Task, outputs: list[str], stack: ExitStack) -> Figures:
    guards, watch = _guards(task, stack), Watch()
    counts: Counter[str] = Counter()
    for number in range(WARM_UP):
        guards[0].process_sync(text(-1 - number, task.size), tool="tool", call_id=f"w{number}")
    with watch:
        for number, output in enumerate(outputs):
            guarded = guards[0].process_sync(output, tool="tool", call_id=f"c{number}")
            counts[str(guarded.outcome)] += 1
    return _figures(watch, counts, Counter(), threads(), 0.0)


def _awaited(task: Task, outputs: list[str], stack: ExitStack) -> Figures:
    guards, watch = _guards(task, stack), Watch()
    counts: Counter[str] = Counter()

    async def main() -> None:
        for number in range(WARM_UP):
            await guards[0].process(text(-1 - number, task.size), tool="tool", call_id=f"w{number}")
        with watch:
            for number, output in enumerate(outputs):
                guarded = await guards[0].process(output, tool="tool", call_id=f"c{number}")
                counts[str(guarded.outcome)] += 1

    asyncio.run(main())
    return _figures(watch, counts, Counter(), threads(), 0.0)


def _puts(task: Task, outputs: list[str], stack: ExitStack) -> Figures:
    watch, counts = Watch(), Counter[str]()

    async def main() -> int:
        async with Client(task.url, task.keys[0]) as client:

            async def one(number: int) -> None:
                entry = await client.put(outputs[number], call_id=f"c{number}")
                counts[entry.state] += 1

            for number in range(WARM_UP):
                await client.put(text(-1 - number, task.size))
            with watch:
                ticker = asyncio.create_task(watch.tick())
                async with asyncio.TaskGroup() as group:
                    for number in range(task.count):
                        group.create_task(one(number))
                ticker.cancel()
            await asyncio.sleep(task.idle)
        return threads()

    return _figures(watch, counts, Counter(), asyncio.run(main()), 0.0)


def _figures(
    watch: Watch, counts: Counter[str], reasons: Counter[str], after: int, slowest: float
) -> Figures:
    return Figures(
        outcomes=dict(counts),
        reasons=dict(reasons.most_common(8)),
        threads=watch.threads,
        threads_after=after,
        sockets=watch.sockets,
        block=watch.block,
        own=watch.own,
        memory=watch.memory,
        cpu=watch.cpu,
        seconds=watch.seconds,
        slowest=slowest,
    )


HOWS: Final[dict[str, Callable[[Task, list[str], ExitStack], Figures]]] = {
    "tasks": _tasks,
    "threads": _threads,
    "one by one": _one_by_one,
    "awaited": _awaited,
    "put": _puts,
}


if __name__ == "__main__":
    print(msgspec.json.encode(run(msgspec.json.decode(sys.argv[1], type=Task))).decode())
