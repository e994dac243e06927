"""Counts of all tool outputs that passed a guard, by tool and outcome: the denominator of every rate."""

from __future__ import annotations

import operator
import threading
from bisect import bisect_left, bisect_right
from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from overspill.execution import forks
from overspill.wire import MAX_COUNTED_NAME, SIZE_BOUNDS, SIZE_CLASSES, Outcome, fit

if TYPE_CHECKING:
    from collections.abc import Callable

_PENDING: Final = 1024
_MAX_TOOLS: Final = 500
OTHER_TOOLS: Final = "(other)"
"""The tool name for the rest, if a process sees ever more names: a model may invent them."""


@dataclass(frozen=True, slots=True)
class OutputCount:
    """A number of outputs, with their bytes as the tools returned them and as the model got them.

    `sizes` says how many of them, as returned, are in each class of `wire.SIZE_BOUNDS`. `left_whole` says how
    many were too long and stayed because no shorter copy could be made. `tokens_kept_out` is an estimate,
    `identical` says how many had the bytes of an earlier output of the session, and `bursts` how often the
    tool was called again and again soon after a notice. Comparisons leave these out.
    """

    count: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    sizes: tuple[int, ...] = field(default=(0,) * SIZE_CLASSES, compare=False)
    left_whole: int = field(default=0, compare=False)
    tokens_kept_out: int = field(default=0, compare=False)
    identical: int = field(default=0, compare=False)
    bursts: int = field(default=0, compare=False)

    def __add__(self, other: OutputCount) -> OutputCount:
        return self._combined(operator.add, other)

    def __sub__(self, earlier: OutputCount) -> OutputCount:
        """Return what came since an earlier count."""
        return self._combined(operator.sub, earlier)

    def _combined(self, combine: Callable[[int, int], int], other: OutputCount) -> OutputCount:
        return OutputCount(
            combine(self.count, other.count),
            combine(self.bytes_before, other.bytes_before),
            combine(self.bytes_after, other.bytes_after),
            tuple(map(combine, self.sizes, other.sizes)),
            combine(self.left_whole, other.left_whole),
            combine(self.tokens_kept_out, other.tokens_kept_out),
            combine(self.identical, other.identical),
            combine(self.bursts, other.bursts),
        )


class Names:
    """Keeps the first 500 tool names, long ones shortened as metadata is. All others become one."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def __call__(self, tool: str) -> str:
        """Return the name under which a tool is counted.

        If there are too many names, it is that of all others.
        """
        if tool in self._known:
            return tool
        name = fit(tool, MAX_COUNTED_NAME)
        if name not in self._known:
            if len(self._known) >= _MAX_TOOLS:
                return OTHER_TOOLS
            self._known.add(name)
        return name


class Tally:
    """Counts of all outputs, for any number of threads. A forked child counts from zero."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._name = Names()
        self.on_outputs: Callable[[], object] = int
        """Called after the first inline output of each tool in each process, and now and then after that."""
        self._sums: dict[tuple[str, Outcome], _Sum] = {}
        self._inline: dict[str, InlineSizes] = {}
        self._spilled = 0
        forks.register(self)

    def reset_after_fork(self) -> None:
        """Start a forked child at zero: the parent keeps its own counts."""
        self._lock = threading.RLock()
        self._sums = {}
        self._spilled = 0
        for sizes in self._inline.values():
            sizes.forget()

    @property
    def spilled(self) -> int:
        """The number of outputs that did not stay inline."""
        return self._spilled

    def add(
        self,
        tool: str,
        outcome: Outcome,
        before: int,
        after: int,
        *,
        is_left_whole: bool = False,
        is_identical: bool = False,
        tokens_kept_out: int = 0,
    ) -> None:
        """Count one output, with its bytes before and after the guard."""
        with self._lock:
            self._spilled += outcome is not Outcome.INLINE
            total = self._sum(tool, outcome)
            total.count += 1
            total.left_whole += is_left_whole
            total.identical += is_identical
            total.tokens_kept_out += tokens_kept_out
            total.before += before
            total.after += after
            total.sizes[bisect_left(SIZE_BOUNDS, before)] += 1

    def add_burst(self, tool: str) -> None:
        """Count a burst of calls, with the outputs of the tool that stayed inline."""
        with self._lock:
            self._sum(tool, Outcome.INLINE).bursts += 1

    def add_inline(self, tool: str, sizes: list[int]) -> None:
        """Count inline outputs of these sizes in bytes. Sorts `sizes`."""
        sizes.sort()
        edges = [0, *(bisect_right(sizes, bound) for bound in SIZE_BOUNDS), len(sizes)]
        whole = sum(sizes)
        with self._lock:
            total = self._sum(tool, Outcome.INLINE)
            total.count += len(sizes)
            total.before += whole
            total.after += whole
            for number, (start, stop) in enumerate(pairwise(edges)):
                total.sizes[number] += stop - start

    def inline(self, tool: str) -> InlineSizes:
        """Return the object that notes the sizes of this tool's small outputs without a lock."""
        sizes = self._inline.get(tool)
        if sizes is None:
            with self._lock:
                name = self._name(tool)
                sizes = self._inline.setdefault(name, InlineSizes(name, self))
        return sizes

    def counts(self) -> dict[tuple[str, Outcome], OutputCount]:
        """Return what was counted since the start of the process, or of the tally."""
        for sizes in list(self._inline.values()):
            sizes.settle()
        with self._lock:
            return {key: total.as_count() for key, total in self._sums.items()}

    def _sum(self, tool: str, outcome: Outcome) -> _Sum:
        key = self._name(tool), outcome
        found = self._sums.get(key)
        if found is None:
            found = self._sums[key] = _Sum()
        return found


class _Sum:
    """A count as it grows."""

    __slots__ = (
        *("after", "before", "bursts", "count", "identical", "left_whole"),
        *("sizes", "tokens_kept_out"),
    )

    def __init__(self) -> None:
        self.count = self.before = self.after = self.left_whole = 0
        self.tokens_kept_out = self.identical = self.bursts = 0
        self.sizes = [0] * SIZE_CLASSES

    def as_count(self) -> OutputCount:
        return OutputCount(
            *(self.count, self.before, self.after, tuple(self.sizes), self.left_whole),
            *(self.tokens_kept_out, self.identical, self.bursts),
        )


class InlineSizes:
    """Sizes of one tool's inline outputs. `deque.append` needs no lock; the sum is made later."""

    __slots__ = ("_most", "_sizes", "_tally", "_tool")

    def __init__(self, tool: str, tally: Tally) -> None:
        self._sizes: deque[int] = deque()
        self._most = 0
        self._tally = tally
        self._tool = tool

    def note(self, size: int) -> None:
        """Count an output of `size` bytes."""
        self._sizes.append(size)
        if len(self._sizes) > self._most:
            self._most = _PENDING
            self.settle()
            self._tally.on_outputs()

    def settle(self) -> None:
        """Move what was noted so far into the tally."""
        if sizes := self._drain_sizes():
            self._tally.add_inline(self._tool, sizes)

    def forget(self) -> None:
        """Forget the sizes that were noted."""
        self._sizes.clear()
        self._most = 0

    def _drain_sizes(self) -> list[int]:
        sizes: list[int] = []
        try:
            while True:
                sizes.append(self._sizes.popleft())
        except IndexError:
            return sizes
