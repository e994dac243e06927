"""Instants in queries and headers."""

from __future__ import annotations

from datetime import UTC, datetime


def seconds_of(when: datetime) -> float:
    """Return seconds since the epoch. A time without a zone is UTC, whatever this machine's zone."""
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def text_of(seconds: float) -> str:
    """Return an instant as RFC 3339 writes it, in UTC and whole seconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
