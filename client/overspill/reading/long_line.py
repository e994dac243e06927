"""Search one long line part by part, with the chains that `stages` makes of a pattern.

Positions are distances from the end of the line at which the search began: the left end, or backwards the
right one. So they stay the same when the other end grows.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.reading.pattern_syntax import MAX_PROGRAM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from overspill.reading.patterns import Pattern

SLICE_BYTES: Final = 64 * 1024
_MIN_WINDOW_BYTES: Final = 16 * 1024
_EDGE_CALLS: Final = 8
"""The factor by which windows are smaller backwards, where finding an edge takes several searches."""


def window(program_size: int) -> int:
    """Return how many bytes of text a pattern of this size searches in two seconds at worst."""
    return SLICE_BYTES * MAX_PROGRAM // program_size


class OutOfTime(Exception):
    """The time is up. Not an error: the search can go on with its trails as they are."""


class Trail(NamedTuple):
    """The state of one chain: how many blocks were found, and from which distance the next is searched."""

    found: int
    distance: int


class LongSearch:
    """A search in the parts of one line. `trails` say how far it is, one for each chain."""

    def __init__(
        self,
        pattern: Pattern,
        *,
        backwards: bool,
        expired: Callable[[], bool],
        trails: tuple[Trail, ...] = (),
    ) -> None:
        """Go on from `trails`. Raises `ValueError` if they belong to another pattern."""
        chains = pattern.chains
        self.is_exact: bool = chains is not None
        """Whether a line in which nothing was found is sure not to match."""
        chains = chains or ((pattern,),)
        self._chains = [chain[::-1] if backwards else chain for chain in chains]
        self._backwards, self._expired = backwards, expired
        self.trails: list[Trail] = list(trails) or [Trail(0, 0)] * len(chains)
        if len(self.trails) != len(chains) or any(
            trail.found >= len(chain) for trail, chain in zip(self.trails, chains, strict=False)
        ):
            raise ValueError("the trails are those of another pattern")
        blocks = [block for chain in chains for block in chain]
        size = window(sum(block.program_size for block in blocks))
        if backwards and any(len(chain) > 1 for chain in chains):
            size //= _EDGE_CALLS
        self._reach = max(block.program_size for block in blocks) if self.is_exact else size // 4
        self._window = max(size, _MIN_WINDOW_BYTES, 4 * self._reach)

    @property
    def done(self) -> int:
        """The distance up to which the text is no longer needed."""
        return min(trail.distance for trail in self.trails)

    def drop(self, size: int) -> None:
        """Forget `size` bytes of the text, from where the search began."""
        self.trails = [Trail(found, max(0, distance - size)) for found, distance in self.trails]

    def search(self, data: bytes, start: int, stop: int) -> int | None:
        """Return where in `data[start:stop]` the last block of a chain begins; None if there is no match.

        Bytes around the range are context for anchors. Raises `OutOfTime` between two windows.
        """
        for low, high in self._windows(len(data), start, stop):
            for number, chain in enumerate(self._chains):
                at = self._advance(number, chain, data, low, high)
                if at is not None:
                    return at
            is_last = low == start if self._backwards else high == stop
            if not is_last and self._expired():
                raise OutOfTime
        return None

    def _windows(self, size: int, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yield windows over the text that is not searched yet.

        Each overlaps the last one by the longest block.
        """
        if self._backwards:
            high = min(stop, size - self.done)
            while high >= start:
                low = max(start, high - self._window)
                yield low, high
                if low == start:
                    return
                high = low + self._reach
            return
        low = max(start, self.done)
        while low <= stop:
            high = min(stop, low + self._window)
            yield low, high
            if high == stop:
                return
            low = high - self._reach

    def _advance(self, number: int, chain: Sequence[Pattern], data: bytes, low: int, high: int) -> int | None:
        """Search a window for the next blocks of a chain.

        Return where the last one begins, if it is found.
        """
        found, distance = self.trails[number]
        while True:
            if self._backwards:
                start, stop = low, min(high, len(data) - distance)
            else:
                start, stop = max(low, distance), high
            span = chain[found].search(data, start, stop) if start <= stop else None
            if span is None:
                break
            if found + 1 == len(chain):
                return span[0]
            edge = self._edge(chain[found], data, span, stop)
            found, distance = found + 1, len(data) - edge if self._backwards else edge
        searched = len(data) - low if self._backwards else high
        self.trails[number] = Trail(found, max(distance, searched - self._reach))
        return None

    def _edge(self, block: Pattern, data: bytes, span: tuple[int, int], stop: int) -> int:
        """Return where the earliest match ends; backwards, where the latest begins.

        `span` is the leftmost.
        """
        start, end = span
        if self._backwards:
            starts = range(start, stop + 1)
            return start + bisect_left(starts, 1, key=lambda at: block.search(data, at, stop) is None) - 1
        return start + bisect_left(
            range(start, end), 1, key=lambda to: block.search(data, start, to) is not None
        )
