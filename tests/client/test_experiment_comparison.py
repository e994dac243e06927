"""Verdicts on experiments: which way a difference goes, and when there is not enough data to tell."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING

from msgspec.structs import replace
from overspill import compare_arms
from overspill.advice.comparison import MEASURES, MIN_COUNTS, ArmVerdict
from overspill.advice.estimates import MIN_GROUPS
from overspill.wire import COUNTED, GROUPS, NOTED, Arm, CohortRow, Experiments

if TYPE_CHECKING:
    from collections.abc import Mapping

    from overspill.advice.comparison import Comparison, ExperimentReport

EVEN = {
    "sessions": 20,
    "outputs": 400,
    "oversized": 60,
    "spilled": 60,
    "bytes_before": 4_000_000,
    "bytes_after": 900_000,
    "read_bytes": 20_000,
    "tokens_kept_out": 900_000,
    "captures": 60,
    "captures_read": 20,
    "reads": 30,
    "bursts": 8,
    "identical": 6,
}
NOW = datetime(2000, 1, 1, tzinfo=UTC)


def rows(
    arm: Arm, figures: Mapping[str, int], groups: int = GROUPS, name: str = "e", seed: int = 1
) -> list[CohortRow]:
    """Groups with about these figures each: a tenth more or less."""
    dice = random.Random(f"{seed} {arm}")
    return [
        CohortRow(
            experiment=name,
            arm=arm,
            group=group,
            figures={figure: round(amount * dice.uniform(0.9, 1.1)) for figure, amount in figures.items()},
        )
        for group in range(groups)
    ]


def report(*parts: list[CohortRow]) -> ExperimentReport:
    [found] = compare_arms(Experiments(since=NOW, until=NOW, rows=list(chain(*parts))))
    return found


def compared(*parts: list[CohortRow]) -> dict[str, Comparison]:
    return {each.measure.partition(",")[0]: each for each in report(*parts).comparisons}


def test_every_measure_is_of_figures_that_are_kept() -> None:
    for measure in MEASURES:
        assert {*measure.figures, measure.over} <= {*COUNTED, *NOTED}
        assert measure.over in MIN_COUNTS


def test_arms_that_are_alike_show_no_difference() -> None:
    usual = rows(Arm.USUAL, EVEN)
    found = compared(usual, [replace(row, arm=Arm.HOLDOUT) for row in usual])

    assert {each.verdict for each in found.values()} == {ArmVerdict.NO_DIFFERENCE}
    assert all(each.missing == [] for each in found.values())


def test_a_difference_is_that_of_the_holdout_arm_from_the_usual_one() -> None:
    more = rows(Arm.HOLDOUT, {**EVEN, "bytes_after": 1_800_000, "captures_read": 10})
    found = compared(rows(Arm.USUAL, EVEN), more)
    entered, reads = found["bytes into the conversation"], found["captures read"]

    assert (entered.verdict, reads.verdict) == (ArmVerdict.HIGHER, ArmVerdict.LOWER)
    assert entered.difference is not None
    assert entered.ratio is not None
    assert entered.ratio.low < 1_820 / 920 < entered.ratio.high


def test_an_arm_that_spills_nothing_has_no_reads_by_design() -> None:
    whole = {**EVEN, **dict.fromkeys(("spilled", "tokens_kept_out", "captures", "captures_read"), 0)}
    found = compared(rows(Arm.USUAL, EVEN), rows(Arm.HOLDOUT, whole))

    by_design = {name for name, each in found.items() if each.verdict is ArmVerdict.BY_DESIGN}
    assert by_design == {"tokens kept out", "captures read"}
    assert found["captures read"].holdout is not None
    assert found["captures read"].ratio is None


def test_an_arm_without_any_session_says_what_is_missing() -> None:
    found = report(rows(Arm.USUAL, EVEN))

    assert found.holdout.sessions == 0
    for each in found.comparisons:
        assert each.verdict is ArmVerdict.NOT_ENOUGH_DATA
        assert each.difference is None
        assert each.usual is not None
        assert "0 sessions in the arm holdout, 100 needed" in each.missing


def test_few_sessions_get_intervals_but_no_verdict() -> None:
    few = {**EVEN, "sessions": 3, "bytes_after": 9_000_000}
    found = compared(rows(Arm.USUAL, EVEN), rows(Arm.HOLDOUT, few))["bytes into the conversation"]

    assert found.verdict is ArmVerdict.NOT_ENOUGH_DATA
    assert found.missing == ["48 sessions in the arm holdout, 100 needed"]
    assert found.difference is not None
    assert found.difference.excludes(0)


def test_few_groups_and_few_events_get_no_verdict() -> None:
    rare = {**EVEN, "captures_read": 0, "sessions": 100}
    groups = MIN_GROUPS - 1
    found = compared(rows(Arm.USUAL, EVEN), rows(Arm.HOLDOUT, rare, groups))["captures read"]

    assert found.verdict is ArmVerdict.NOT_ENOUGH_DATA
    assert found.missing == [
        "0 captures that were read in the arm holdout, 10 needed",
        f"{groups} groups with data in the arm holdout, {MIN_GROUPS} needed",
    ]


def test_of_events_that_did_not_happen_no_rate_is_known() -> None:
    found = compared(rows(Arm.USUAL, EVEN), rows(Arm.HOLDOUT, {**EVEN, "bursts": 0}))["bursts of calls"]

    assert found.verdict is ArmVerdict.NOT_ENOUGH_DATA
    assert found.usual is not None
    assert (found.holdout, found.difference, found.ratio) == (None, None, None)
    assert found.missing == ["0 bursts of calls in the arm holdout, 10 needed"]


def test_experiments_are_reported_by_name() -> None:
    both = [*rows(Arm.USUAL, EVEN, name="b"), *rows(Arm.USUAL, EVEN, name="a")]
    found = Experiments(since=NOW, until=NOW, rows=both)

    assert [each.experiment for each in compare_arms(found)] == ["a", "b"]
    assert [each.experiment for each in compare_arms(found, "b")] == ["b"]
    assert compare_arms(found, "c") == compare_arms(Experiments(since=NOW, until=NOW, rows=[])) == []


def test_alike_arms_seldom_get_a_verdict() -> None:
    """One in twenty by each measure, as the intervals say."""
    verdicts = [
        each.verdict
        for seed in range(100)
        for each in report(rows(Arm.USUAL, EVEN, seed=seed), rows(Arm.HOLDOUT, EVEN, seed=seed)).comparisons
    ]
    wrong = sum(each is not ArmVerdict.NO_DIFFERENCE for each in verdicts)

    assert len(verdicts) == 700
    assert 0.02 <= wrong / len(verdicts) <= 0.09
