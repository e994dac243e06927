"""Compares the two arms of each experiment, measure by measure, and says when there is not enough data."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from overspill.advice.estimates import MIN_GROUPS, Interval, Ratio, difference, quotient
from overspill.wire import GROUPS, Arm

if TYPE_CHECKING:
    from collections.abc import Iterable

    from overspill.wire import CohortRow, Experiments

MIN_COUNTS: Final = {"sessions": 100, "outputs": 100, "oversized": 100}
"""How many of them an arm needs for a verdict. Sessions differ a lot: of fewer an interval is too narrow."""
MIN_EVENTS: Final = 10
"""Events, such as read-backs, that an arm needs for a verdict."""
_WORDS: Final = {
    "oversized": "oversized outputs",
    "captures_read": "captures that were read",
    "bursts": "bursts of calls",
    "identical": "identical outputs",
}


class Measure(Struct, frozen=True, kw_only=True):
    """The sum of some figures over the sum of another one, times `scale`."""

    name: str
    figures: tuple[str, ...]
    over: str
    scale: int = 1
    needs_spills: bool = False
    """Whether it is 0 in an arm that spills nothing."""
    of_events: bool = False


_ENTERED: Final = ("bytes_after", "read_bytes")
MEASURES: Final = (
    Measure(name="bytes into the conversation, per session", figures=_ENTERED, over="sessions"),
    Measure(name="bytes into the conversation, per output", figures=_ENTERED, over="outputs"),
    Measure(
        name="tokens kept out, per session", figures=("tokens_kept_out",), over="sessions", needs_spills=True
    ),
    Measure(name="outputs per session", figures=("outputs",), over="sessions"),
    Measure(
        name="captures read, per 100 oversized outputs",
        figures=("captures_read",),
        over="oversized",
        scale=100,
        needs_spills=True,
        of_events=True,
    ),
    Measure(
        name="bursts of calls, per 100 outputs",
        figures=("bursts",),
        over="outputs",
        scale=100,
        of_events=True,
    ),
    Measure(
        name="identical outputs, per 100 outputs",
        figures=("identical",),
        over="outputs",
        scale=100,
        of_events=True,
    ),
)
"""Bytes into the conversation are those of outputs as they entered it, and those of answers to reads."""


class ArmVerdict(StrEnum):
    """The result of the holdout arm compared with the usual one, by the interval of the difference."""

    HIGHER = "higher"
    LOWER = "lower"
    NO_DIFFERENCE = "no difference shown"
    BY_DESIGN = "0 by design"
    NOT_ENOUGH_DATA = "not enough data"


class Comparison(Struct, frozen=True, kw_only=True):
    """One measure in both arms. Intervals have 95 %, each by itself.

    `difference` is the holdout arm less the usual one, `ratio` is holdout divided by usual. What cannot be
    computed is None. `missing` says what a verdict would need.
    """

    measure: str
    verdict: ArmVerdict
    usual: Interval | None = None
    holdout: Interval | None = None
    difference: Interval | None = None
    ratio: Interval | None = None
    missing: list[str] = []


class ArmReport(Struct, frozen=True, kw_only=True):
    """The counts of one arm."""

    sessions: int
    outputs: int
    oversized: int
    spilled: int
    groups: int
    """Groups that have any output."""


class ExperimentReport(Struct, frozen=True, kw_only=True):
    """Both arms of one experiment, and the comparisons in the order of `MEASURES`."""

    experiment: str
    usual: ArmReport
    holdout: ArmReport
    comparisons: list[Comparison]


def compare_arms(experiments: Experiments, name: str | None = None) -> list[ExperimentReport]:
    """Return a report on each experiment, or on the one with this name: see `Client.experiments`.

    The list is empty if nothing was counted. Pure; raises nothing.
    """
    names = sorted({row.experiment for row in experiments.rows if name in (None, row.experiment)})
    return [_report(each, [row for row in experiments.rows if row.experiment == each]) for each in names]


class _ArmSums:
    """The sums of one arm by group."""

    def __init__(self, arm: Arm, rows: Iterable[CohortRow]) -> None:
        self.arm = arm
        self._groups = [dict[str, int]() for _ in range(GROUPS)]
        for row in rows:
            if row.arm is arm and 0 <= row.group < GROUPS:
                self._groups[row.group] = row.figures

    def by_group(self, *figures: str) -> list[int]:
        return [sum(group.get(figure, 0) for figure in figures) for group in self._groups]

    def total(self, *figures: str) -> int:
        return sum(self.by_group(*figures))

    def is_zero_by_design(self, measure: Measure) -> bool:
        return measure.needs_spills and self.total("oversized") > 0 and self.total("spilled") == 0

    def ratio(self, measure: Measure) -> Ratio | None:
        """Return the measure. None without data: of events that did not happen, no rate is known."""
        if measure.of_events and not self.is_zero_by_design(measure) and self.total(*measure.figures) == 0:
            return None
        above = [amount * measure.scale for amount in self.by_group(*measure.figures)]
        return Ratio.of(above, self.by_group(measure.over))

    def missing(self, measure: Measure) -> list[str]:
        """Return what the arm needs for a verdict and does not have."""
        needed = {"sessions": MIN_COUNTS["sessions"], measure.over: MIN_COUNTS[measure.over]}
        if measure.of_events:
            needed[measure.figures[0]] = MIN_EVENTS
        found = {figure: self.total(figure) for figure in needed}
        shortages = [
            f"{found[figure]} {_WORDS.get(figure, figure)} in the arm {self.arm}, {minimum} needed"
            for figure, minimum in needed.items()
            if found[figure] < minimum
        ]
        groups = sum(amount > 0 for amount in self.by_group(measure.over))
        if groups < MIN_GROUPS:
            shortages.append(f"{groups} groups with data in the arm {self.arm}, {MIN_GROUPS} needed")
        return shortages

    def report(self) -> ArmReport:
        return ArmReport(
            sessions=self.total("sessions"),
            outputs=self.total("outputs"),
            oversized=self.total("oversized"),
            spilled=self.total("spilled"),
            groups=sum(amount > 0 for amount in self.by_group("outputs")),
        )


def _report(name: str, rows: list[CohortRow]) -> ExperimentReport:
    usual, holdout = _ArmSums(Arm.USUAL, rows), _ArmSums(Arm.HOLDOUT, rows)
    return ExperimentReport(
        experiment=name,
        usual=usual.report(),
        holdout=holdout.report(),
        comparisons=[_compared(measure, usual, holdout) for measure in MEASURES],
    )


def _compared(measure: Measure, usual: _ArmSums, holdout: _ArmSums) -> Comparison:
    first, second = holdout.ratio(measure), usual.ratio(measure)
    apart = difference(first, second) if first is not None and second is not None else None
    missing = [*usual.missing(measure), *holdout.missing(measure)]
    is_zero = usual.is_zero_by_design(measure) or holdout.is_zero_by_design(measure)
    return Comparison(
        measure=measure.name,
        verdict=ArmVerdict.BY_DESIGN if is_zero else _verdict(apart, missing),
        usual=None if second is None else second.interval,
        holdout=None if first is None else first.interval,
        difference=apart,
        ratio=None if first is None or second is None else quotient(first, second),
        missing=[] if is_zero else missing,
    )


def _verdict(apart: Interval | None, missing: list[str]) -> ArmVerdict:
    if apart is None or missing:
        return ArmVerdict.NOT_ENOUGH_DATA
    if not apart.excludes(0):
        return ArmVerdict.NO_DIFFERENCE
    return ArmVerdict.HIGHER if apart.value > 0 else ArmVerdict.LOWER
