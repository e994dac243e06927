"""Sums for a dashboard: of several buckets together, of all tools together, and of the largest tools.

A month of a busy tenant has more than a hundred thousand sums. So they are added as they are packed, and
grouped by the places of their cells: buckets of one tenant mostly have the same cells.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from functools import lru_cache
from itertools import repeat
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from overspill_service.catalog.statistics import OTHER, Cell, Packed, bounded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from overspill_service.catalog.statistics import Sums

MAX_CELLS_TOGETHER: Final = 20_000
"""Sums of several buckets together. Those of `other` come on top, as in one bucket."""
_SIGNS: Final = {"tool_output_bytes": 1, "tool_output_kept_bytes": -1}
"""The figures that make the bytes that stayed out of conversations."""


class Layout(NamedTuple):
    """The places of the sums of some cells."""

    kinds: dict[Cell, list[int]]
    """Those of all tools together, by figure and outcome."""
    tools: dict[str, list[int]]
    """Those of each tool."""
    names: list[str]
    """The tools by their numbers."""
    weighed: list[int]
    """The places of the sums that make the bytes that stayed out of conversations."""
    signs: np.ndarray[tuple[int], np.dtype[np.float64]]
    """1 or -1 for each of these."""
    numbers: np.ndarray[tuple[int], np.dtype[np.int64]]
    """The tool of each of these."""

    def largest(self, amounts: list[int], top: int) -> list[str]:
        """Return the tools by the bytes that they kept out of conversations, most bytes first."""
        weights = self.signs * np.array([*map(amounts.__getitem__, self.weighed)], dtype=np.float64)
        kept_out = np.bincount(self.numbers, weights=weights, minlength=len(self.names))
        order = np.argsort(-kept_out, kind="stable")[: top + 1].tolist()
        return [name for number in order if (name := self.names[number]) != OTHER][:top]


@lru_cache(maxsize=8)
def layout_of(cells: tuple[str, ...]) -> Layout:
    kinds: dict[Cell, list[int]] = defaultdict(list)
    tools: dict[str, list[int]] = defaultdict(list)
    weighed: list[tuple[int, int, str]] = []
    for place, text in enumerate(cells):
        figure, tool, outcome = Cell.decode(text)
        kinds[Cell(figure, "", outcome)].append(place)
        tools[tool].append(place)
        if figure in _SIGNS:
            weighed.append((place, _SIGNS[figure], tool))
    number_of = {tool: number for number, tool in enumerate(tools)}
    return Layout(
        kinds,
        tools,
        [*tools],
        [place for place, _, _ in weighed],
        np.array([sign for _, sign, _ in weighed], np.float64),
        np.array([number_of[tool] for _, _, tool in weighed], np.int64),
    )


def together(sums: Packed) -> Sums:
    """Return the sums of all tools together."""
    amounts = [*sums.values()]
    kinds = layout_of(tuple(sums)).kinds
    return {cell: sum(map(amounts.__getitem__, places)) for cell, places in kinds.items()}


def add(total: Packed, sums: Mapping[str, int]) -> bool:
    """Add packed sums to a total. Return False if there was no room for some, which then count as `other`."""
    if (
        len(total) + len(sums) > MAX_CELLS_TOGETHER
        and len(sums.keys() - total.keys()) + len(total) > MAX_CELLS_TOGETHER
    ):
        _add_bounded(total, sums)
        return False
    before = map(total.get, sums, repeat(0))
    total.update(zip(sums, map(operator.add, before, sums.values()), strict=True))
    return True


def _add_bounded(total: Packed, sums: Mapping[str, int]) -> None:
    for text, amount in sums.items():
        cell = text
        if text not in total and len(total) >= MAX_CELLS_TOGETHER:
            cell = Cell.decode(text)._replace(tool=OTHER).encode()
        total[cell] = total.get(cell, 0) + amount


def subtract(total: Packed, sums: Mapping[str, int]) -> None:
    """Subtract a bucket from a total that includes it. Sums that become 0 are removed."""
    for cell, amount in sums.items():
        left = total.get(cell, 0) - amount
        if left:
            total[cell] = left
        else:
            total.pop(cell, None)


def of_largest(total: Packed, top: int) -> Sums:
    """Return the sums of the `top` tools that kept the most bytes out of conversations, and of `other`."""
    amounts = [*total.values()]
    layout = layout_of(tuple(total))
    cells = [*total]
    rest, found = together(total), {}
    for tool in layout.largest(amounts, top):
        for place in layout.tools[tool]:
            cell = Cell.decode(cells[place])
            found[cell] = bounded(amounts[place])
            rest[cell._replace(tool="")] -= amounts[place]
    others = {cell._replace(tool=OTHER): bounded(amount) for cell, amount in rest.items() if amount}
    return found | others
