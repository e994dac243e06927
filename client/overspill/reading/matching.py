r"""Find matching lines in a buffer: search it as a whole, and look up line bounds only at matches.

The engine searches slices, and the deadline is checked between them. A hostile pattern of `MAX_PROGRAM`
instructions can take two seconds for 64 KiB, which is its slice. Smaller programs get larger slices, up to
the whole buffer. A line longer than a slice is searched by `long_line`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.reading.long_line import SLICE_BYTES, LongSearch, OutOfTime, Trail, window

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from overspill.reading.patterns import Pattern

_UNSURE: Final = -1


class MatchedLine(NamedTuple):
    r"""One line, `start` to `stop` in the buffer without its `\n`. Its match begins at `at`."""

    start: int
    stop: int
    at: int
    excerpt: bytes | None = None
    """The text to show, if that is not in the buffer. `at` is then a position in it."""

    @classmethod
    def unsure(cls, start: int, stop: int) -> MatchedLine:
        """Return a line that may match: it is too long for its pattern."""
        return cls(start, stop, _UNSURE)

    @property
    def is_sure(self) -> bool:
        """Return whether the line certainly matches."""
        return self.at != _UNSURE


class StopPosition(NamedTuple):
    """The position where a search ran out of time: between two lines, or inside a line with `trails`.

    Without trails, everything before `position` was searched; backwards, everything from it on. With trails,
    `position` is where the line starts.
    """

    position: int
    trails: tuple[Trail, ...] = ()


class MatchedLines(NamedTuple):
    """The lines found, with those that may match, and where the search ran out of time, if it did."""

    found: list[MatchedLine]
    reached: StopPosition | None


class MatchCount(NamedTuple):
    """The number of lines that were found. `unsure` are lines that may match."""

    lines: int
    unsure: list[MatchedLine]
    reached: StopPosition | None


class Matcher:
    """A pattern and how it is applied. Safe to use from several threads at once."""

    def __init__(
        self, pattern: Pattern, *, invert: bool, backwards: bool, expired: Callable[[], bool]
    ) -> None:
        self._pattern, self._backwards = pattern, backwards
        self.invert = invert
        self.expired = expired
        self._longest = window(pattern.program_size)
        self._size = SLICE_BYTES if backwards else self._longest

    def lines(self, data: bytes, start: int, stop: int, *, limit: int) -> MatchedLines:
        r"""Return the wanted lines of `data[start:stop]`, which are whole; backwards, the last one first.

        `stop` is where the last line's `\n` stands, or the end of `data`. Searches one slice at least.
        """
        found: list[MatchedLine] = []
        left = limit
        for low, high in self._slices(data, start, stop):
            try:
                lines = self._slice(data, low, high)
            except _Stopped as stopped:
                return MatchedLines(found, stopped.reached)
            for line in reversed(list(lines)) if self._backwards else lines:
                found.append(line)
                left -= line.is_sure
                if not left:
                    return MatchedLines(found, None)
            if self.expired():
                return MatchedLines(found, StopPosition(low - 1 if self._backwards else high + 1))
        return MatchedLines(found, None)

    def count(self, data: bytes, start: int, stop: int) -> MatchCount:
        """Return how many lines `lines` would find."""
        count, unsure = 0, []
        for low, high in self._slices(data, start, stop):
            try:
                if high - low <= self._size:
                    count += self._count(data, low, high)
                elif (line := self._long(data, low, high)) is not None and line.is_sure:
                    count += 1
                elif line is not None:
                    unsure.append(line)
            except _Stopped as stopped:
                return MatchCount(count, unsure, stopped.reached)
            if self.expired():
                return MatchCount(count, unsure, StopPosition(low - 1 if self._backwards else high + 1))
        return MatchCount(count, unsure, None)

    def in_line(self, line: bytes) -> int | None:
        """Return where a match begins in a whole line that `is_short`; None if there is none."""
        span = self._pattern.search(line, 0, len(line))
        return span[0] if span else None

    def is_short(self, size: int) -> bool:
        """Return whether a line of this size can be searched at once."""
        return size <= self._longest

    def long_search(self, trails: tuple[Trail, ...] = ()) -> LongSearch:
        """Return a search of a line in parts. Raises `ValueError` for trails of another pattern."""
        return LongSearch(self._pattern, backwards=self._backwards, expired=self.expired, trails=trails)

    def _slice(self, data: bytes, start: int, stop: int) -> Iterator[MatchedLine]:
        if stop - start > self._size:
            line = self._long(data, start, stop)
            return iter([] if line is None else [line])
        found = _matching(self._pattern, data, start, stop)
        return _unmatched(data, start, stop, found) if self.invert else found

    def _count(self, data: bytes, start: int, stop: int) -> int:
        """Return how many lines `_slice` would yield."""
        count = self._pattern.count(data, start, stop)
        return data.count(b"\n", start, stop) + 1 - count if self.invert else count

    def _long(self, data: bytes, start: int, stop: int) -> MatchedLine | None:
        """Return the one line of `data[start:stop]`, if it is wanted or may be. Raises `_Stopped`."""
        line, is_sure = data[start:stop], True
        if self.is_short(len(line)):
            at = self.in_line(line)
        else:
            search = self.long_search()
            try:
                at = search.search(line, 0, len(line))
            except OutOfTime:
                raise _Stopped(StopPosition(start, tuple(search.trails))) from None
            is_sure = search.is_exact
        if at is None and not is_sure:
            return MatchedLine.unsure(start, stop)
        is_wanted = (at is not None) != self.invert
        return MatchedLine(start, stop, start + (at or 0)) if is_wanted else None

    def _slices(self, data: bytes, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yield runs of whole lines: of the slice's size at most, or one line that is longer."""
        while start <= stop:
            if self._backwards:
                low = _start_of_last(data, start, stop, self._size)
                yield low, stop
                stop = low - 1
            else:
                high = _end_of_first(data, start, stop, self._size)
                yield start, high
                start = high + 1


class _Stopped(Exception):
    def __init__(self, reached: StopPosition) -> None:
        super().__init__(reached)
        self.reached = reached


def _end_of_first(data: bytes, start: int, stop: int, size: int) -> int:
    """Return where the first slice ends: at the last newline within `size`, else at the next one."""
    if stop - start <= size:
        return stop
    newline = data.rfind(b"\n", start, start + size + 1)
    if newline < 0:
        newline = data.find(b"\n", start + size, stop)
    return stop if newline < 0 else newline


def _start_of_last(data: bytes, start: int, stop: int, size: int) -> int:
    """Return where the last slice starts: behind the first newline within `size`, else the one before."""
    if stop - start <= size:
        return start
    within = data.find(b"\n", stop - size - 1, stop) + 1
    return within or data.rfind(b"\n", start, stop - size) + 1 or start


def _matching(pattern: Pattern, data: bytes, start: int, stop: int) -> Iterator[MatchedLine]:
    """Yield the lines of `data[start:stop]` that match."""
    start = pattern.first_line(data, start, stop)
    while start <= stop:
        span = pattern.search(data, start, stop)
        if span is None:
            return
        at, end = span
        low = data.rfind(b"\n", start, at) + 1 or start
        high = data.find(b"\n", end, stop)
        if high < 0:
            high = stop
        yield MatchedLine(low, high, at)
        start = high + 1


def _unmatched(data: bytes, start: int, stop: int, found: Iterator[MatchedLine]) -> Iterator[MatchedLine]:
    """Yield the lines of `data[start:stop]` that were not found."""
    for line in found:
        yield from _every(data, start, line.start - 1)
        start = line.stop + 1
    yield from _every(data, start, stop)


def _every(data: bytes, start: int, stop: int) -> Iterator[MatchedLine]:
    while start <= stop:
        high = data.find(b"\n", start, stop)
        if high < 0:
            high = stop
        yield MatchedLine(start, high, start)
        start = high + 1
