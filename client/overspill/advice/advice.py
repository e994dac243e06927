"""Advice on a policy: what to change for each tool, and why. A rule is one sentence; no rule undoes another.

- If most captures are read within a minute, the notice only costs a call: keep larger outputs whole.
- If hardly any is ever read, and the tool is not run again, the preview is enough: spill smaller ones.
- If most reads are of the end, or of the beginning, the preview shows that end.
- If the tool is run again after notices, the model lacks the tools that read: there is nothing to set.

A rule applies only if the whole 95 % interval of the share is on its side, so that chance gives no advice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from overspill.advice.figures import LARGEST, Share
from overspill.wire import Advice

if TYPE_CHECKING:
    from collections.abc import Mapping

    from overspill.advice.figures import ToolFigures

MIN_CAPTURES: Final = 30
MIN_READS: Final = 30
MAJORITY: Final = 0.5
NEXT_TO_NONE: Final = 0.05
OFTEN_AGAIN: Final = 0.2
COVERED: Final = 0.8
"""The share of captures read at once that a larger limit should keep whole."""
MAX_BYTES: Final = 200_000
"""No limit is raised beyond it: hosts cut or file away results of about this size themselves."""
MIN_BYTES: Final = 8_192
"""No limit is lowered beyond it: a notice would hardly be shorter."""


class Now(Struct, frozen=True, kw_only=True):
    """The present settings of a tool."""

    max_bytes: int
    strategy: str


def advice_on(figures: ToolFigures, now: Now) -> Advice:
    """Return the advice on a tool with these sums and settings."""
    if figures.captures < MIN_CAPTURES:
        found = f"{figures.captures} of the {MIN_CAPTURES} captures that advice needs"
        return Advice(tool=figures.tool, missing=found)
    reasons: list[str] = []
    max_bytes = _raised(figures, now, reasons)
    if max_bytes is None:
        max_bytes = _lowered(figures, now, reasons)
    strategy = _strategy(figures.modes, now, reasons)
    again = Share.of(figures.again, figures.spilled)
    if again.low > OFTEN_AGAIN:
        reasons.append(f"run again after {again} spills: give the agent inspect_output, or tell it to use it")
    return Advice(tool=figures.tool, max_bytes=max_bytes, strategy=strategy, reasons=reasons)


def _raised(figures: ToolFigures, now: Now, reasons: list[str]) -> int | None:
    """Return a larger limit if most captures are read at once."""
    at_once = Share.of(sum(figures.at_once.values()), figures.captures)
    if at_once.low <= MAJORITY or now.max_bytes >= MAX_BYTES:
        return None
    target = min(_bound_of(figures.at_once, COVERED), MAX_BYTES)
    if target <= now.max_bytes:
        return None
    reasons.append(f"{at_once} captures were read within a minute: the notice only cost a call")
    return target


def _bound_of(sizes: Mapping[int, int], share: float) -> int:
    """Return the bound of the smallest classes that have this share of all."""
    needed, covered = share * sum(sizes.values()), 0
    for bound in sorted(sizes):
        covered += sizes[bound]
        if covered >= needed:
            return bound
    return LARGEST


def _lowered(figures: ToolFigures, now: Now, reasons: list[str]) -> int | None:
    """Return half the limit if next to no capture is read, and the tool is not run again instead."""
    read = Share.of(max(figures.read, sum(figures.at_once.values())), figures.captures)
    again = Share.of(figures.again, figures.spilled)
    target = max(now.max_bytes // 2, MIN_BYTES)
    if read.high >= NEXT_TO_NONE or again.high >= OFTEN_AGAIN or target >= now.max_bytes:
        return None
    reasons.append(f"{read} captures were read: the preview was enough")
    return target


def _strategy(modes: Mapping[str, int], now: Now, reasons: list[str]) -> str | None:
    """Return the end that most reads ask for."""
    total = sum(modes.values())
    if total < MIN_READS:
        return None
    for mode, strategy, end in (("tail", "TAIL", "end"), ("head", "HEAD", "beginning")):
        share = Share.of(modes.get(mode, 0), total)
        if share.low > MAJORITY and now.strategy != strategy:
            reasons.append(f"{share} reads asked for the {end}: the preview should show it")
            return strategy
    return None
