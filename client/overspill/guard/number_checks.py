"""Checks of single settings. Each raises `ValueError`, which names the setting."""

from __future__ import annotations

import math
from typing import Any


def whole(name: str, number: Any, *, is_optional: bool = False) -> None:
    """Check that `number` is an integer of 0 or more, or None if it `is_optional`."""
    if number is None and is_optional:
        return
    if isinstance(number, bool) or not isinstance(number, int):
        raise ValueError(f"{name} must be a whole number, not {number!r}")  # noqa: TRY004  (one kind of error)
    if number < 0:
        raise ValueError(f"{name} must be 0 or more, not {number}")


def finite(name: str, number: Any) -> None:
    """Check that `number` is finite, and 0 or more."""
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not math.isfinite(number):
        raise ValueError(f"{name} must be a number, not {number!r}")
    if number < 0:
        raise ValueError(f"{name} must be 0 or more, not {number}")


def positive(name: str, number: Any) -> None:
    """Check that `number` is finite, and more than 0."""
    finite(name, number)
    if number == 0:
        raise ValueError(f"{name} must be more than 0")


def share(name: str, number: Any) -> None:
    """Check that `number` is more than 0, and at most 1."""
    positive(name, number)
    if number > 1:
        raise ValueError(f"{name} must be at most 1, not {number}")
