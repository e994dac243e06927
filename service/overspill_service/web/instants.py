"""Instants in queries."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


def seconds_of(when: datetime) -> float:
    """Return seconds since the epoch. A time without a zone is UTC, whatever this machine's zone."""
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
