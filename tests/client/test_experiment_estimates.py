"""Intervals from random groups: quantiles of a published table, and the coverage of simulated experiments."""

from __future__ import annotations

import math
import random
from statistics import NormalDist

import pytest
from overspill.advice.estimates import Interval, Ratio, difference, quotient, t_quantile
from overspill.wire import GROUPS

NIST = {7: 2.365, 8: 2.306, 10: 2.228, 15: 2.131, 20: 2.086, 24: 2.064, 30: 2.042, 60: 2.000, 100: 1.984}
"""t for 95 %, two-sided: NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2."""
EXPERIMENTS = 500
USUAL_SESSIONS, HOLDOUT_SESSIONS = 200, 100


@pytest.mark.parametrize("degrees", NIST)
def test_quantiles_are_those_of_the_published_table(degrees: int) -> None:
    assert t_quantile(degrees) == pytest.approx(NIST[degrees], abs=0.0006)


def test_of_a_mean_the_jackknife_is_the_textbook_variance() -> None:
    values = [3, 5, 1, 8, 4, 4, 7, 2]
    middle = sum(values) / 8
    expected = sum((value - middle) ** 2 for value in values) / 7 / 8
    ratio = Ratio.of(values, [1] * 8)

    assert ratio is not None
    assert ratio.value == middle
    assert ratio.variance() == pytest.approx(expected)
    reach = 2.3646 * math.sqrt(expected)
    assert ratio.interval.high == pytest.approx(middle + reach, rel=1e-4)


def test_welch_has_the_degrees_of_both() -> None:
    same = Ratio.of([3, 5, 1, 8, 4, 4, 7, 2], [1] * 8)
    exact = Ratio.of([4] * 8, [1] * 8)
    assert same is not None
    assert exact is not None
    reach = t_quantile(14) * math.sqrt(2 * same.variance())

    assert difference(same, same).high == pytest.approx(reach)
    assert difference(same, exact).high == pytest.approx(
        same.value - 4 + t_quantile(7) * math.sqrt(same.variance())
    )
    assert difference(exact, exact) == Interval(value=0, low=0, high=0)


def test_too_few_groups_have_no_interval() -> None:
    assert Ratio.of([1] * 7 + [0] * 9, [1] * 7 + [0] * 9) is None
    assert Ratio.of([1] * 8 + [0] * 8, [1] * 8 + [0] * 8) is not None


def test_a_group_beyond_all_measure_leaves_a_ratio_of_the_others() -> None:
    most = 2**63 - 1
    found = Ratio.of([most] + [3] * 7, [most] + [1] * 7)

    assert found is not None
    assert found.left_out[0] == 3
    assert found.interval.low < found.value == 1 < found.interval.high


def test_a_ratio_of_nothing_is_not_computed() -> None:
    some, none = Ratio.of([1] * 16, [2] * 16), Ratio.of([0] * 16, [2] * 16)
    rare = Ratio.of([1] + [0] * 15, [2] * 16)
    assert some is not None
    assert none is not None
    assert rare is not None

    assert quotient(some, none) is quotient(none, some) is quotient(rare, some) is None
    assert quotient(some, some) == Interval(value=1, low=1, high=1)


class Arm:
    """One simulated arm: sessions of different lengths, each with a rate of its own."""

    def __init__(self, dice: random.Random, sessions: int) -> None:
        self.events, self.outputs = [0] * GROUPS, [0] * GROUPS
        for _ in range(sessions):
            group, outputs = dice.randrange(GROUPS), dice.randint(5, 40)
            rate = dice.betavariate(1, 4)  # on average 0.2, and very different from session to session
            self.outputs[group] += outputs
            self.events[group] += binomial(dice, outputs, rate)

    @property
    def ratio(self) -> Ratio:
        found = Ratio.of(self.events, self.outputs)
        assert found is not None
        return found


def binomial(dice: random.Random, number: int, rate: float) -> int:
    """About a binomial number: a rounded normal one, drawn at once."""
    drawn = round(dice.gauss(number * rate, math.sqrt(number * rate * (1 - rate))))
    return min(number, max(0, drawn))


def naive(first: Arm, second: Arm) -> Interval:
    """The interval of a textbook for independent outputs."""
    value, variance = 0.0, 0.0
    for sign, arm in ((1, first), (-1, second)):
        number, rate = sum(arm.outputs), sum(arm.events) / sum(arm.outputs)
        value += sign * rate
        variance += rate * (1 - rate) / number
    reach = NormalDist().inv_cdf(0.975) * math.sqrt(variance)
    return Interval(value=value, low=value - reach, high=value + reach)


def test_intervals_cover_the_truth_as_often_as_they_say_and_naive_ones_do_not() -> None:
    dice = random.Random(20)
    covered = dict.fromkeys(("difference", "ratio", "naive"), 0)
    for _ in range(EXPERIMENTS):
        usual, holdout = Arm(dice, USUAL_SESSIONS), Arm(dice, HOLDOUT_SESSIONS)
        divided = quotient(holdout.ratio, usual.ratio)
        assert divided is not None
        covered["difference"] += not difference(holdout.ratio, usual.ratio).excludes(0)
        covered["ratio"] += not divided.excludes(1)
        covered["naive"] += not naive(holdout, usual).excludes(0)
    shares = {name: count / EXPERIMENTS for name, count in covered.items()}

    assert 0.93 <= shares["difference"] <= 0.97, shares
    assert 0.93 <= shares["ratio"] <= 0.97, shares
    assert 0.57 <= shares["naive"] <= 0.65, shares


@pytest.mark.parametrize(("held_out", "least", "most"), [(100, 0.89, 0.95), (30, 0.80, 0.88)])
def test_with_very_different_sessions_intervals_are_somewhat_too_narrow(
    held_out: int, least: float, most: float
) -> None:
    """The page says so, and how much."""
    dice = random.Random(1)
    covered, experiments = 0, 500
    for _ in range(experiments):
        usual, holdout = (sizes(dice, sessions) for sessions in (600, held_out))
        covered += not difference(holdout, usual).excludes(0)

    assert least <= covered / experiments <= most


def sizes(dice: random.Random, sessions: int) -> Ratio:
    """The mean of log-normal sizes, estimated from groups."""
    sums, counts = [0] * GROUPS, [0] * GROUPS
    for _ in range(sessions):
        group = dice.randrange(GROUPS)
        sums[group] += round(10**6 * dice.lognormvariate(0, 1.5))
        counts[group] += 1
    found = Ratio.of(sums, counts)
    assert found is not None
    return found
