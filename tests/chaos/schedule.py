"""The schedule of faults: planned from a seed, so that a run can be repeated."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

SHORTEST: Final = 0.5
LONGEST: Final = 4.0
"""Seconds that a fault lasts."""
PAUSES: Final = (1.0, 3.0)
"""Seconds between two faults of one lane, at least and at most."""


@dataclass(frozen=True)
class Strike:
    """One fault: seconds from the start of the run, and for how long."""

    at: float
    lasts: float
    lane: str
    fault: str

    def __str__(self) -> str:
        return f"{self.at:7.1f} s  {self.lasts:4.1f} s  {self.lane}: {self.fault}"


def plan(lanes: Mapping[str, Collection[str]], seconds: float, seed: int) -> list[Strike]:
    """Faults of several lanes: those of one lane never overlap, those of different lanes do."""
    return sorted(
        (strike for lane, faults in lanes.items() for strike in _lane(lane, faults, seconds, seed)),
        key=lambda strike: strike.at,
    )


def _lane(lane: str, faults: Collection[str], seconds: float, seed: int) -> list[Strike]:
    chance = random.Random(f"{seed} {lane}")
    strikes: list[Strike] = []
    waiting: list[str] = []
    at = chance.uniform(*PAUSES)
    while at < seconds:
        if not waiting:  # every fault once before any of them again
            waiting = chance.sample(sorted(faults), len(faults))
        lasts = chance.uniform(SHORTEST, LONGEST)
        strikes.append(Strike(at, lasts, lane, waiting.pop()))
        at += lasts + chance.uniform(*PAUSES)
    return strikes
