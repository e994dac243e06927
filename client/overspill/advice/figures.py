"""The figures behind advice: the sums of one tool, and shares of them with intervals."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from overspill.wire import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable

    from overspill.wire import Stats, StatsRow

_Z: Final = 1.96
"""The quantile of the normal distribution for 95 %."""
_NO_TOOLS: Final = frozenset({"", "other", "(other)"})
"""The name for the rest, if there are more tools than the service and the guard count separately."""


class Share(NamedTuple):
    """`part` of `whole`, with the ends of Wilson's score interval for 95 %.

    Source: E. B. Wilson, JASA 22 (1927), 209-212. It holds for few events too, unlike the usual one.
    """

    part: int
    whole: int
    low: float
    high: float

    @classmethod
    def of(cls, part: int, whole: int) -> Share:
        """Return the share; of nothing it may be anything from 0 to 1. `part` is cut to the whole."""
        part = min(part, whole)
        if whole <= 0:
            return cls(0, 0, 0.0, 1.0)
        rate, spread = part / whole, _Z * _Z / whole
        middle = rate + spread / 2
        half = _Z * math.sqrt((rate * (1 - rate) + spread / 4) / whole)
        low, high = ((middle + way * half) / (1 + spread) for way in (-1, 1))
        return cls(part, whole, max(0.0, low), min(1.0, high))

    def __str__(self) -> str:
        percent = round(100 * self.part / self.whole) if self.whole else 0
        return f"{self.part:,} of {self.whole:,} ({percent} %)"


class Sums:
    """The sums of figures in rows of statistics."""

    def __init__(self, rows: Iterable[StatsRow]) -> None:
        self._amounts: dict[str, Counter[str]] = {}
        for row in rows:
            for figure, amount in row.figures.items():
                self._amounts.setdefault(figure, Counter())[row.outcome] += amount

    def by_outcome(self, figure: str) -> dict[str, int]:
        """Return the sum of a figure for each outcome."""
        return dict(self._amounts.get(figure, {}))

    def sum(self, figure: str, *outcomes: str) -> int:
        """Return the sum of a figure, of all outcomes unless some are named."""
        amounts = self.by_outcome(figure).items()
        return sum(amount for outcome, amount in amounts if not outcomes or outcome in outcomes)


class ToolFigures(Struct, frozen=True, kw_only=True):
    """The sums of one tool in some time. Sizes map the inclusive bound of a class, in bytes, to a count."""

    tool: str
    outputs: int = 0
    spilled: int = 0
    again: int = 0
    """Identical outputs and bursts of calls."""
    captures: int = 0
    read: int = 0
    """Captures that were read at least once."""
    sizes: dict[int, int] = {}
    at_once: dict[int, int] = {}
    """Captures that were first read within a minute, by size."""
    modes: dict[str, int] = {}
    """Reads by mode."""


def figures_of(stats: Stats) -> list[ToolFigures]:
    """Return the sums of each tool, by name, without those of no tool and of all further ones together."""
    rows: dict[str, list[StatsRow]] = {}
    for row in stats.rows:
        rows.setdefault(row.tool, []).append(row)
    return [_of_tool(tool, found) for tool, found in sorted(rows.items()) if tool not in _NO_TOOLS]


def _of_tool(tool: str, rows: Iterable[StatsRow]) -> ToolFigures:
    sums = Sums(rows)
    outputs = sums.sum("tool_outputs")
    return ToolFigures(
        tool=tool,
        outputs=outputs,
        spilled=outputs - sums.sum("tool_outputs", Outcome.INLINE),
        again=sums.sum("identical_tool_outputs") + sums.sum("tool_rerun_bursts"),
        captures=sums.sum("captures", "created"),
        read=sums.sum("captures_read"),
        sizes=_by_size(sums.by_outcome("captures_by_size")),
        at_once=_by_size(sums.by_outcome("captures_read_at_once")),
        modes=sums.by_outcome("reads"),
    )


def _by_size(amounts: dict[str, int]) -> dict[int, int]:
    """Return counts by the bound of their class. `LARGEST` stands for the class without one."""
    return {int(size) if size.isdigit() else LARGEST: amount for size, amount in amounts.items()}


LARGEST: Final = 2**63
"""Stands for the class without a bound."""
