"""Statistics over time: the main figures of a tenant, or of all tenants, in buckets."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  (msgspec resolves annotations at run time)
from typing import Final

from msgspec import Struct

STEPS: Final = {60: 3 * 3600, 900: 7 * 86400, 86400: 400 * 86400}
"""How long a bucket is kept after its end, by its length, both in seconds."""
MAX_ROWS: Final = 20_000
"""Rows of one answer."""


class StatsQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The buckets to sum up: those that begin in `since <= start < until`.

    The default of `since` is an hour before `until`, or a day for buckets of a day. The default of `until` is
    now. The default of `step` is the shortest one that the service still keeps from `since` on.
    """

    since: datetime | None = None
    until: datetime | None = None
    step: int | None = None
    """The length of a bucket in seconds: 60, 900 or 86400. The longer, the longer it is kept."""
    tools: bool = True
    """False: all tools of a tenant together, in rows without a tool."""
    total: bool = False
    """Sum up all buckets: rows by tool and outcome, which all start at `since`."""


class StatsRow(Struct, frozen=True, kw_only=True):
    """The sums of one bucket, tool and outcome."""

    start: datetime
    tenant: str
    tool: str
    """Empty for figures that have no tool, and for all tools of a tenant in the view of all tenants."""
    outcome: str
    """The outcome of outputs or captures, the mode of reads, or empty."""
    figures: dict[str, int]
    """Sums by the name of the metric, without `overspill_` and `_total`."""


class Stats(Struct, frozen=True, kw_only=True):
    """The answer: rows by start, tenant, tool and outcome. `step` is in seconds.

    `since` is later than asked for if buckets of this step are not kept for all of that time.
    """

    since: datetime
    until: datetime
    step: int
    rows: list[StatsRow]
