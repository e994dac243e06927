"""The ledger of what a service owes: every request's effect, as far as its answers say it.

An answered request has had its effect. One without an answer may have it at any later time, for a paused
replica goes on where it stopped: such an effect lingers beside that of every later answer.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from tests.faults.traffic import MIB, log_lines, noise

if TYPE_CHECKING:
    from collections.abc import Callable

MAKERS: Final[tuple[Callable[[int, int], bytes], ...]] = (noise, log_lines)
SIZES: Final = (0, 10, 5_000, 60_000, 700_000, 2 * MIB, 18 * MIB)
WEIGHTS: Final = (1, 3, 4, 4, 2, 1, 0.1)
EXPIRY_SLACK: Final = 60.0
"""Seconds by which a lingering change of expiry may come later than it was asked for."""


@dataclass
class Capture:
    """One output, and what may be true of it in the service."""

    id: str
    call_id: str
    maker: int
    size: int
    seed: int
    sha256: bytes
    presences: set[bool] = field(default_factory=lambda: {False})
    """The answers that a read may give: there (True), not there (False)."""
    lingering: set[bool] = field(default_factory=set)
    expiries: set[float] = field(default_factory=set)
    """One of these holds: several after a repeated upload that was told an earlier one than before."""
    lingering_expiries: list[float] = field(default_factory=list)
    version: int = 0
    """Grows with every request that changes the capture, so that readers see that they were overtaken."""
    history: list[str] = field(default_factory=list)
    """What was asked of it and answered: printed where something is wrong."""

    @property
    def content(self) -> bytes:
        return MAKERS[self.maker](self.size, self.seed)

    @property
    def is_owed(self) -> bool:
        return self.presences == {True}

    def note(self, what: str) -> None:
        self.history.append(f"{datetime.now(UTC):%H:%M:%S.%f} {what}")

    def asked(self, is_there: bool) -> None:
        """A request is sent that stores or removes the capture."""
        self.version += 1
        self.presences = {*self.presences, is_there}

    def unanswered(self, is_there: bool) -> None:
        self.lingering.add(is_there)

    def answered(self, is_there: bool) -> None:
        self.presences = {is_there, *self.lingering}
        self.version += 1

    def renewed(self, expiry: float) -> None:
        """An upload was answered. It never shortens a life: where it seems to, the catalog had lost one."""
        self.expiries = {expiry, *(each for each in self.expiries if each > expiry)}

    def may_expire_at(self, instant: float) -> bool:
        """Whether this expiry was set; an unanswered upload brings one that nobody was told."""
        return (
            bool(self.lingering)
            or instant in self.expiries
            or any(0 <= instant - each <= EXPIRY_SLACK for each in self.lingering_expiries)
        )


@dataclass
class Ledger:
    """All captures of a run, what was found wrong, and how often what was answered."""

    captures: list[Capture] = field(default_factory=list)
    wrongs: list[str] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)

    @property
    def owed(self) -> list[Capture]:
        return [each for each in self.captures if each.is_owed]

    def make(self, chance: random.Random, session: str, name: Callable[[str, bytes], str]) -> Capture:
        """A capture that was never sent. `name` gives its id from its call id and digest."""
        number = len(self.captures)
        maker, seed = chance.randrange(len(MAKERS)), chance.randrange(2**32)
        (size,) = chance.choices(SIZES, WEIGHTS)
        sha256 = hashlib.sha256(MAKERS[maker](size, seed)).digest()
        call_id = f"{session}-{number}"
        made = Capture(name(call_id, sha256), call_id, maker, size, seed, sha256)
        self.captures.append(made)
        return made

    def wrong(self, what: str, capture: Capture) -> None:
        wrong = f"{what}: {capture.id} ({capture.size} bytes, call {capture.call_id})"
        self.wrongs.append("\n    ".join([wrong, *capture.history]))

    def summary(self) -> str:
        answers = ", ".join(f"{name} {count:,}" for name, count in sorted(self.answers.items()))
        counts = f"{len(self.captures):,} captures sent, {len(self.owed):,} owed, {len(self.wrongs)} wrongs"
        return f"{counts}; {answers}"
