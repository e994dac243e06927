"""The lifetimes of captures."""

from __future__ import annotations

import pytest
from overspill_service.archive import retention
from overspill_service.errors import InvalidParameter
from overspill_service.tenants.directory import Limits

NOW = 1_800_000_000.0
DAY = 24 * 3600
LIMITS = Limits(
    max_capture_size=1, max_stored_size=0, max_captures=0, default_ttl=DAY, max_ttl=2 * DAY, min_ttl=10
)


def test_an_expiry_is_a_whole_second_and_never_early() -> None:
    assert retention.expiry(NOW + 0.25, 60, LIMITS) == NOW + 61
    assert retention.expiry(NOW, None, LIMITS) == NOW + DAY


@pytest.mark.parametrize("ttl", [0, 9, 2 * DAY + 1])
def test_a_ttl_outside_the_bounds_is_refused_with_the_bounds(ttl: int) -> None:
    with pytest.raises(InvalidParameter, match=f"live 10 to {2 * DAY} s"):
        retention.expiry(NOW, ttl, LIMITS)


@pytest.mark.parametrize(
    ("left", "wanted"),
    [
        (DAY - 3600, DAY),  # an hour more
        (25, 60),  # little more, but less than half is left
        (-5, 60),  # expired, and not swept yet
    ],
)
def test_a_repetition_renews_what_would_end_soon(left: float, wanted: float) -> None:
    assert retention.is_worth_renewing(NOW, NOW + left, NOW + wanted)


@pytest.mark.parametrize(
    ("left", "wanted"),
    [
        (DAY - 600, DAY),  # less than two hundredths
        (55, 60),
        (2 * DAY, DAY),  # it already lives longer
    ],
)
def test_a_repetition_that_would_add_little_costs_no_request(left: float, wanted: float) -> None:
    assert not retention.is_worth_renewing(NOW, NOW + left, NOW + wanted)
