"""The answer for a dashboard: figures over time, the tools with the most, and advice on these."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  (msgspec resolves annotations at run time)
from typing import Annotated

from msgspec import Meta, Struct

from overspill.wire.statistics import StatsRow  # noqa: TC001  (as above)


class OverviewQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The buckets to sum up, as in `StatsQuery`, and the number of tools that get figures of their own.

    With `tool`, all figures are of this tool, or of this tenant, alone.
    """

    since: datetime | None = None
    until: datetime | None = None
    step: int | None = None
    tool: str | None = None
    top: Annotated[int, Meta(ge=1, le=200)] = 25


class Advice(Struct, frozen=True, kw_only=True):
    """The advice on one tool. A setting that may stay is None. `reasons` has a sentence for each rule.

    `missing` says what there is too little of; then there is no advice.
    """

    tool: str
    max_bytes: int | None = None
    strategy: str | None = None
    reasons: list[str] = []
    missing: str = ""

    @property
    def is_change(self) -> bool:
        """Whether a setting should change."""
        return self.max_bytes is not None or self.strategy is not None


class UsualAdvice(Advice, frozen=True, kw_only=True):
    """The advice to a guard whose policy sets nothing for the tool."""

    usual_max_bytes: int
    usual_strategy: str
    policy: str = ""
    """The lines of a policy file that follow the advice; empty if nothing should change."""


class Overview(Struct, frozen=True, kw_only=True):
    """The answer. `step` is in seconds. In the view of all tenants, tenants replace tools."""

    since: datetime
    until: datetime
    step: int
    series: list[StatsRow]
    """All tools together, by start and outcome."""
    tools: list[StatsRow]
    """Those that kept the most bytes out of conversations, and the rest as `other`. All start at `since`."""
    advice: list[UsualAdvice]
    """On the tools of `tools`, by name."""
