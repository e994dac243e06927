"""The form of statistics, the same in every adapter: sums by tenant, in buckets of three lengths.

A bucket begins at a multiple of its length since the epoch (UTC), and is kept for a fixed time. Clients name
the tools, so the room for names is limited: in one bucket by `MAX_CELLS`, in all buckets of a tenant by its
rooms. New names beyond that are counted as `other`, and no sum is lost.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.wire import STEPS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

OTHER: Final = "other"
"""Stands for all names beyond a bound, here and in the metrics' labels."""
FLEET: Final = "*"
"""The tenant of the sums of all tenants. Each of their cells has a tenant instead of a tool."""
EXPERIMENTS: Final = "*"
"""Before a tenant's name: the tenant of the sums of its experiments.

Each cell has a cohort instead of a tool. They take no room of the tenant's other sums.
"""
MAX_CELLS: Final = 4000
"""Sums in one bucket. Those of `other` come on top."""
CELL_BYTES: Final = 128
"""Bytes that a sum takes beside its name, about, in Redis."""
MAX_BATCHES: Final = 100_000
"""Batches of one tenant that are remembered, the last ones. An older one that comes again counts again."""
MAX_SUM: Final = 2**63 - 1
"""A sum stays there if more is added: the highest integer of Redis and SQLite. Clients may report any."""
LATE_SECONDS: Final = 120.0
"""How long a bucket may still change after its end: processes report every few seconds."""
_SEPARATOR: Final = "\0"


class Resolution(NamedTuple):
    seconds: int
    """The length of a bucket."""
    lifetime: int
    """How long a bucket is kept after its end, in seconds."""

    @property
    def buckets(self) -> int:
        """The number of buckets at once, with the one that is being filled and one that is about to go."""
        return self.lifetime // self.seconds + 2


RESOLUTIONS: Final = tuple(Resolution(*each) for each in STEPS.items())
MINUTES, QUARTERS, DAYS = RESOLUTIONS


class Room(NamedTuple):
    """Bytes that sums of one length may take: all buckets together, and in any case each of them.

    So names of one hour may fill what is free, but not what later buckets need for theirs. All together never
    take more than twice `together`, besides the sums of `other`.
    """

    together: int
    each: int


ROOMS: Final = {MINUTES: 6 * 2**20, QUARTERS: 20 * 2**20, DAYS: 14 * 2**20}
"""The bytes that a tenant's buckets of each length may take together."""
EXPERIMENTS_PART: Final = 8
"""The sums of its experiments may take an eighth of that."""


class Cell(NamedTuple):
    """The subject of a sum."""

    figure: str
    """The name of a metric."""
    tool: str = ""
    outcome: str = ""
    """The outcome of outputs or captures, or the mode of reads."""

    def encode(self) -> str:
        return _SEPARATOR.join(self)

    @classmethod
    @lru_cache(maxsize=2 * MAX_CELLS)  # the same cells are in every bucket
    def decode(cls, text: str) -> Cell:
        """The inverse of `encode`. Only a tool's name may contain the separator."""
        figure, _, rest = text.partition(_SEPARATOR)
        tool, _, outcome = rest.rpartition(_SEPARATOR)
        return cls(figure, tool, outcome)


Sums = dict[Cell, int]
Packed = dict[str, int]
"""Sums by their encoded cells, as catalogs keep them: thousands are added without a look at each cell."""


def part_of_cell(tool: str) -> str:
    """Return a part of every packed cell of this tool. A few others may have it too."""
    return f"{_SEPARATOR}{tool}{_SEPARATOR}"


def of_tool(sums: Packed, tool: str) -> Packed:
    """Return the sums of this tool alone."""
    return {cell: amount for cell, amount in sums.items() if Cell.decode(cell).tool == tool}


def unpacked(sums: Mapping[str, int]) -> Sums:
    """Return packed sums by their cells."""
    return dict(zip(map(Cell.decode, sums), sums.values(), strict=True))


def room_of(tenant: str, resolution: Resolution) -> Room:
    """Return the room of what is kept under this name. The sums of the fleet have `MAX_CELLS` alone."""
    if tenant == FLEET:
        return Room(MAX_SUM, MAX_SUM)
    part = EXPERIMENTS_PART if tenant.startswith(EXPERIMENTS) else 1
    together = ROOMS[resolution] // part
    return Room(together, together // resolution.buckets)


def size_of(cell: str) -> int:
    """Return the bytes that an encoded cell takes."""
    return len(cell.encode()) + CELL_BYTES


def bucket_start(now: float, resolution: Resolution) -> int:
    """Return when the bucket of an instant begins, in seconds since the epoch."""
    return int(now) // resolution.seconds * resolution.seconds


def bucket_starts(since: float, until: float, resolution: Resolution) -> range:
    """Return the starts of all buckets with `since <= start < until`."""
    first = math.ceil(since / resolution.seconds) * resolution.seconds
    return range(first, math.ceil(until), resolution.seconds)


def bounded(amount: int) -> int:
    """Return an amount that a catalog can add."""
    return min(amount, MAX_SUM)


def merged(sums: Iterable[Mapping[Cell, int]]) -> Sums:
    """Return the sums of several buckets."""
    total: Sums = {}
    for each in sums:
        add_to(total, each)
    return total


def add_to(total: Sums, sums: Mapping[Cell, int]) -> None:
    """Add the sums of a bucket to a total."""
    for cell, amount in sums.items():
        total[cell] = total.get(cell, 0) + amount
