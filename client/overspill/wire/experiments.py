"""Experiments with holdouts: arms, groups, and what is counted in each.

An experiment compares two arms. Whole sessions are in an arm, because what an agent does later depends on
what it saw before. Within its arm a session is in one of `GROUPS` random groups. Only sums by arm and group
are kept; how much the groups differ says how uncertain the sums are.
"""

from __future__ import annotations

import hashlib
import re
from datetime import datetime  # noqa: TC003  (msgspec resolves annotations at run time)
from enum import StrEnum
from typing import Annotated, Final, NamedTuple

from msgspec import Meta, Struct

from overspill.wire.identity import END

GROUPS: Final = 16
"""Groups of sessions in each arm."""
MAX_COHORTS: Final = 64
"""Cohorts in one batch of observations."""
COHORT_LABEL: Final = "overspill.cohort"
"""The label of a capture that says which cohort its session is in: a `Cohort` as text."""
EXPERIMENT_NAME: Final = "^[A-Za-z0-9_-]{1,64}" + END
_COHORT: Final = re.compile(r"([A-Za-z0-9_-]{1,64})\.(usual|holdout)\.([0-9]{2})", re.ASCII)
_WORD: Final = 2**64

Sum = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class Arm(StrEnum):
    """The sessions that the guard treats as usual, and those that it holds out."""

    USUAL = "usual"
    HOLDOUT = "holdout"


class Cohort(NamedTuple):
    """A group of sessions in one arm of an experiment. Groups count from 0."""

    experiment: str
    arm: Arm
    group: int

    @classmethod
    def of(cls, experiment: str, session: str, share: float) -> Cohort:
        """Return the cohort of a session: the same on every machine.

        BLAKE2b, keyed with the experiment's name, of the session in UTF-8 gives two numbers of 64 bits, big
        end first. The first one, as a fraction of 2^64, is below `share` in the holdout arm. The second one
        modulo `GROUPS` is the group.
        """
        digest = hashlib.blake2b(
            session.encode("utf-8", "surrogatepass"), digest_size=16, key=experiment.encode("ascii")
        ).digest()
        position, group = int.from_bytes(digest[:8]), int.from_bytes(digest[8:])
        arm = Arm.HOLDOUT if position < share * _WORD else Arm.USUAL
        return cls(experiment, arm, group % GROUPS)

    @classmethod
    def decode(cls, text: str) -> Cohort | None:
        """Return the cohort that `encode` made this text of, or None for any other text."""
        match = _COHORT.fullmatch(text)
        if match is None or int(match[3]) >= GROUPS:
            return None
        return cls(match[1], Arm(match[2]), int(match[3]))

    def encode(self) -> str:
        """Return a label: `previews.holdout.07`."""
        return f"{self.experiment}.{self.arm}.{self.group:02}"


class CohortSums(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The counts of guards in one cohort. Each field is one figure."""

    sessions: Sum = 0
    """Sessions, as each process counts those that it meets."""
    outputs: Sum = 0
    oversized: Sum = 0
    """Outputs above the limits of the usual policy, whatever became of them."""
    spilled: Sum = 0
    """Outputs that a notice replaced."""
    bytes_before: Sum = 0
    bytes_after: Sum = 0
    """Bytes of outputs as the tools returned them, and as they entered the conversation."""
    tokens_kept_out: Sum = 0
    identical: Sum = 0
    """Oversized outputs with the same bytes as an earlier one of the session, spilled or not."""
    bursts: Sum = 0
    """Bursts of calls soon after an oversized output, spilled or not."""


COUNTED: Final = CohortSums.__struct_fields__
"""The figures that clients report."""
NOTED: Final = ("captures", "captures_read", "reads", "read_bytes")
"""The figures that the service adds, by the label of captures: captures stored, those that were read at least
once, all reads, and the bytes of content in their answers."""


class CohortCount(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A client's counts in one cohort since its last report."""

    experiment: Annotated[str, Meta(pattern=EXPERIMENT_NAME)]
    arm: Arm
    group: Annotated[int, Meta(ge=0, lt=GROUPS)]
    sums: CohortSums

    @property
    def cohort(self) -> Cohort:
        """The cohort of these counts."""
        return Cohort(self.experiment, self.arm, self.group)


class ExperimentsQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The time to sum up: buckets that begin in `since <= start < until`, as in `StatsQuery`.

    The default of `since` is 30 days before `until`. The default of `until` is now.
    """

    since: datetime | None = None
    until: datetime | None = None


class CohortRow(Struct, frozen=True, kw_only=True):
    """The sums of one cohort. `figures` has those of `COUNTED` and `NOTED` that are not 0."""

    experiment: str
    arm: Arm
    group: int
    figures: dict[str, int]


class Experiments(Struct, frozen=True, kw_only=True):
    """The answer: rows by experiment, arm and group."""

    since: datetime
    until: datetime
    rows: list[CohortRow]
    overflowed: bool = False
    """There were more experiments than the service keeps apart: sums are missing."""
