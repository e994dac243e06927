"""The reports of clients about tool outputs, for the service's metrics."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  (msgspec resolves annotations at run time)
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta, Struct

from overspill.wire.experiments import MAX_COHORTS, CohortCount
from overspill.wire.identity import END, MAX_VALUE
from overspill.wire.queries import Count  # noqa: TC001  (msgspec resolves annotations at run time)


class Outcome(StrEnum):
    """The fate of an output: it stays, is in the service, waits on this machine, or is lost in part."""

    INLINE = "inline"
    CAPTURED = "captured"
    SPOOLED = "spooled"
    TRUNCATED = "truncated"


SIZE_BOUNDS: Final = tuple(4**power for power in range(4, 16))
"""Bounds in bytes, each inclusive, of the classes that outputs' sizes are counted in: 256 B to 1 GiB."""
SIZE_CLASSES: Final = len(SIZE_BOUNDS) + 1
"""One for each bound, and one for what is larger than all."""
MAX_COUNTED_NAME: Final = 256
"""UTF-8 bytes of a tool's name in counts, by `fit`. A longer one would be in every line of the metrics."""
BACKLOG_MEMORY: Final = 1800
"""Seconds after which a spool that reports no more is forgotten."""
BATCH_MEMORY: Final = 24 * 3600
"""Seconds for which the service knows a batch of observations, and does not count it again."""
_Sizes = Annotated[
    tuple[Annotated[int, Meta(ge=0, le=2**53)], ...],
    Meta(min_length=SIZE_CLASSES, max_length=SIZE_CLASSES),
]


class Observation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tool outputs that a client saw, grouped by tool and outcome.

    `sizes` is how many of them, as the tools returned them, fell into each class of `SIZE_BOUNDS`; without
    it they are counted in no histogram. Raises `ValueError` if it does not add up to `count`.
    """

    tool: Annotated[str, Meta(max_length=MAX_VALUE)]
    outcome: Outcome
    count: Count
    bytes_before: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    bytes_after: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    sizes: _Sizes | None = None
    tokens_kept_out: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0
    """Estimated tokens of the outputs less those of what entered the conversation."""
    identical: Annotated[int, Meta(ge=0, le=2**53)] = 0
    """How many of the outputs have the same bytes as an earlier one of their session."""
    bursts: Annotated[int, Meta(ge=0, le=2**53)] = 0
    """How often calls came in a burst soon after a notice: the model runs the tool again."""

    def __post_init__(self) -> None:
        if self.sizes is not None and sum(self.sizes) != self.count:
            raise ValueError(f"sizes must add up to count: {sum(self.sizes)} is not {self.count}")


class SpoolBacklog(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The captures that wait in one spool for this service and key. `oldest` is when the oldest was spooled.

    `spool` names the spool, the same in every process that uses it: the last report of each counts.
    """

    spool: Annotated[str, Meta(pattern="^[0-9a-f]{16}" + END)]
    captures: Annotated[int, Meta(ge=0, le=2**53)] = 0
    size: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0
    oldest: datetime | None = None


class Observations(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A batch of observations; one whose id was seen within `BATCH_MEMORY` is not counted again."""

    batch: Annotated[str, Meta(min_length=8, max_length=64, pattern="^[A-Za-z0-9_-]+" + END)]
    observations: Annotated[list[Observation], Meta(max_length=1000)]
    cohorts: Annotated[list[CohortCount], Meta(max_length=MAX_COHORTS)] = []
    """The same outputs by cohort, if their guards hold out some sessions."""
    backlog: SpoolBacklog | None = None
    """The backlog of the guard's spool, if anything waits there or did at the last report."""


class Accepted(Struct, frozen=True, kw_only=True):
    """The answer to a batch of observations: whether the metrics count them."""

    counted: bool
