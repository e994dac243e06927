"""Quantities as people read them: a number with its noun, a size in units, about how many tokens."""

from __future__ import annotations

from typing import Final

from overspill import wire

_LARGEST_SCALED: Final = 999.95
"""From here on, one decimal place would print as `1000.0`."""


def approx_tokens(size: int) -> int:
    """Return `wire.approx_tokens` to two digits, which is more than the estimate is worth. For display."""
    return int(float(f"{wire.approx_tokens(size):.1e}"))


def plural(number: int, noun: str) -> str:
    """Return a number with its noun: `1 line`, `2,000 lines`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def scaled(number: float) -> tuple[str, str]:
    """Return a number in three or four digits, and its decimal prefix: `512` and none, `4.2` and `M`."""
    if abs(number) < 1000:  # noqa: PLR2004
        return f"{number:.0f}", ""
    prefixes, last = iter("KMGTP"), ""
    while abs(number) >= _LARGEST_SCALED and (prefix := next(prefixes, "")):
        number, last = number / 1000, prefix
    return f"{number:.1f}", last


def readable_size(size: int) -> str:
    """Return a size in decimal units: `512 bytes`, `50.1 KB`, `4.2 MB`."""
    number, prefix = scaled(size)
    return f"{number} {prefix}B" if prefix else plural(size, "byte")
