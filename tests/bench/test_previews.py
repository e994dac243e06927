"""A preview shows the reason at least as often as other ways of cutting, in a few quick cases."""

from __future__ import annotations

import pytest
from overspill.guard.policy_defaults import PREVIEW_BYTES

from tests.bench.previews import CASES, QUICK, WAYS, Output, outputs


@pytest.fixture(scope="module")
def made() -> list[Output]:
    return outputs(case for case in CASES if case.name.startswith(QUICK) and not case.missing)


def test_every_output_holds_its_decisive_line_and_is_longer_than_a_preview(made: list[Output]) -> None:
    assert len(made) > 10
    assert [each.case.name for each in made if not each.case.is_told_by(each.text)] == []
    assert [each.case.name for each in made if len(each.text) <= PREVIEW_BYTES] == []


def test_no_other_way_of_cutting_shows_the_reason_more_often(made: list[Output]) -> None:
    shown = [each.shown_by for each in made]
    counts = {name: sum(name in names for names in shown) for name in WAYS}

    assert counts["ours"] == max(counts.values())
    assert counts["ours"] >= 0.95 * len(made)


def test_names_of_cases_are_unique_and_some_are_held_out() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 40
    assert sum(case.held_out for case in CASES) >= 10
