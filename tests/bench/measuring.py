"""CPU time and memory of processes, and two costs held against each other round by round. Linux only.

CPU time is user and system time, of all threads. A process's own clock ticks in nanoseconds, unlike the
hundredths of a second in /proc/PID/stat.
"""

from __future__ import annotations

import re
import resource
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    Clock = Callable[[], float]
    """CPU seconds spent so far."""

SCHEDULER_CLOCK: Final = 2
"""CPUCLOCK_SCHED of the kernel's include/linux/posix-timers.h."""
RESET_PEAK: Final = "5"
"""What /proc/PID/clear_refs takes to set VmHWM back (proc(5))."""

own: Clock = time.process_time


def of_process(pid: int) -> Clock:
    """The clock of another process, without its children (clock_getcpuclockid(3))."""
    number = (~pid << 3) | SCHEDULER_CLOCK
    return lambda: time.clock_gettime(number)


def of_children() -> float:
    """The clock of all children that have ended, and theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Cost(NamedTuple):
    """Seconds; as a ratio of two costs, plain numbers."""

    cpu: float
    wall: float

    def against(self, other: Cost) -> Cost:
        return Cost(self.cpu / other.cpu, self.wall / other.wall)


def cost(work: Callable[[], object], *clocks: Clock) -> Cost:
    """What `work` takes, by these clocks together."""
    cpu, wall = sum(clock() for clock in clocks), time.perf_counter()
    work()
    return Cost(sum(clock() for clock in clocks) - cpu, time.perf_counter() - wall)


def compared(rounds: int, ours: Callable[[], Cost], theirs: Callable[[], Cost]) -> Cost:
    """Ours against theirs: medians of the rounds' ratios. One round more comes first and does not count."""
    ratios = []
    for number in range(rounds + 1):
        if number % 2:
            first = ours()
            ratios.append(first.against(theirs()))
        else:
            second = theirs()
            ratios.append(ours().against(second))
    return middle(ratios[1:])


def middle(ratios: list[Cost]) -> Cost:
    return Cost(median(each.cpu for each in ratios), median(each.wall for each in ratios))


class Memory:
    """The resident memory of a process, in bytes, and its peak since `begin`."""

    def __init__(self, pid: int) -> None:
        self._folder = Path("/proc") / str(pid)

    def begin(self) -> None:
        (self._folder / "clear_refs").write_text(RESET_PEAK)

    @property
    def now(self) -> int:
        return self._read("VmRSS")

    @property
    def peak(self) -> int:
        return self._read("VmHWM")

    def _read(self, name: str) -> int:
        found = re.search(rf"^{name}:\s+(\d+) kB$", (self._folder / "status").read_text(), re.MULTILINE)
        assert found is not None, f"/proc/PID/status has no {name}"
        return int(found[1]) * 1024
