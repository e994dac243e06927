"""The backlogs of clients' spools, as clients report them: the last report of each spool, for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_SPOOLS: Final = 10_000
"""Spools of one tenant whose reports are kept. Further ones are not."""


class Backlog(NamedTuple):
    """Captures that wait, their bytes, and when the oldest was spooled, in seconds since the epoch."""

    captures: int
    size: int
    oldest: float


NOTHING: Final = Backlog(0, 0, float("inf"))


def added_up(backlogs: Iterable[tuple[str, Backlog]]) -> dict[str, Backlog]:
    """Return the sums by tenant, with the oldest of all."""
    sums: dict[str, Backlog] = {}
    for tenant, each in backlogs:
        total = sums.get(tenant, NOTHING)
        sums[tenant] = Backlog(
            total.captures + each.captures, total.size + each.size, min(total.oldest, each.oldest)
        )
    return sums
