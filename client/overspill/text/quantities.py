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


def readable_size(size: int) -> str:
    """Return a size in decimal units: `512 bytes`, `50.1 KB`, `4.2 MB`."""
    scaled = float(size)
    for unit in ("KB", "MB", "GB"):
        scaled /= 1000
        if scaled < _LARGEST_SCALED:
            return f"{scaled:.1f} {unit}" if size >= 1000 else plural(size, "byte")  # noqa: PLR2004
    return f"{scaled:.1f} GB"
