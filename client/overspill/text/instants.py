"""Reads instants as people and models write them: a time ago, or ISO 8601."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_AGO: Final = re.compile(
    r"(\d{1,7}(?:\.\d{1,3})?)\s*(s|m|h|d|secs?|seconds?|mins?|minutes?|hrs?|hours?|days?)", re.ASCII
)
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_LONGEST_AGO: Final = 100 * 365 * 86_400
"""Seconds before which nothing was written: there is no date of a million days ago."""
_SHOWN_CHARS: Final = 200


def instant_of(text: str, now: datetime) -> datetime:
    """Return the instant that `text` means: "30s" or "5 minutes ago", or ISO 8601, in UTC without a zone.

    Raises `ValueError`, which says what is allowed.
    """
    if ago := _AGO.fullmatch(text.strip().lower().removesuffix(" ago")):
        seconds = float(ago[1]) * _UNITS[ago[2][0]]
        return now - timedelta(seconds=min(seconds, _LONGEST_AGO))
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        wrong = f'{text[:_SHOWN_CHARS]!r} is not a time: use "30s", "5m", or ISO 8601'
        raise ValueError(wrong) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
