r"""Matching lines in a buffer: the buffer is searched as a whole, and line bounds looked up only at matches.

The engine is called on slices, with a look at the deadline between them. A hostile pattern of `MAX_PROGRAM`
instructions can take a second or two for 64 KiB, which is its slice then: the smaller the program, the larger
they are, up to all of the buffer. A longer line is searched in windows of this size, which overlap by a
quarter, so a match of up to 16 KiB is found wherever it lies.

Lines are searched without their end, `\n` or `\r\n`. A line that is not valid UTF-8 is also searched byte
by byte, so bad bytes hide nothing.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill_service.chunks import count_newlines
from overspill_service.patterns import MAX_PROGRAM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from overspill_service.patterns import Pattern

SLICE: Final = 64 * 1024
_RETURN: Final = 0x0D


class Found(NamedTuple):
    r"""One line, `start` to `stop` in the buffer without its `\n`, and where its match begins."""

    start: int
    stop: int
    at: int


class Lines(NamedTuple):
    """The lines found, and where the search stopped for want of time, if it did.

    What lies before `reached` has been searched; backwards, what lies from it on.
    """

    found: list[Found]
    reached: int | None


class Tally(NamedTuple):
    """How many lines were found; `reached` as in `Lines`."""

    lines: int
    reached: int | None


class OutOfTime(Exception):
    """Not an error: the search is to go on at `position`."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


class Matcher:
    """A pattern, and how it is applied. Safe to use from several threads at once."""

    def __init__(
        self, pattern: Pattern, *, invert: bool, backwards: bool, expired: Callable[[], bool]
    ) -> None:
        self._pattern, self._backwards = pattern, backwards
        self.invert, self.expired = invert, expired
        self._size = SLICE if backwards else _window(pattern)

    def lines(self, data: bytes, start: int, stop: int, *, utf8: bool, limit: int) -> Lines:
        r"""The lines wanted among the whole ones of `data[start:stop]`; the last first where backwards.

        `stop` is where the last line's `\n` stands, or the end of `data`. At least one slice is searched.
        """
        found: list[Found] = []
        for low, high in self._slices(data, start, stop):
            try:
                lines = self._slice(data, low, high, utf8=utf8)
                found += islice(reversed(list(lines)) if self._backwards else lines, limit - len(found))
            except OutOfTime as error:
                return Lines(found, error.position)
            if len(found) == limit:
                break
            if self.expired():
                return Lines(found, low - 1 if self._backwards else high + 1)
        return Lines(found, None)

    def count(self, data: bytes, start: int, stop: int, *, utf8: bool) -> Tally:
        """How many lines `lines` would find."""
        count = 0
        for low, high in self._slices(data, start, stop):
            try:
                count += self._count(data, low, high, utf8=utf8)
            except OutOfTime as error:
                return Tally(count, error.position)
            if self.expired():
                return Tally(count, low - 1 if self._backwards else high + 1)
        return Tally(count, None)

    def find(self, data: bytes, start: int, stop: int, *, utf8: bool) -> int | None:
        """Where a match begins in `data`, one line or a part of one.

        Raises `OutOfTime` with the position to go on at.
        """
        at = self._search(self._pattern.alone, data, start, stop)
        if at is None and not utf8 and self._pattern.latin1 and not _is_utf8(data):
            at = self._search(self._pattern.latin1.alone, data, start, stop)
        return at

    def _slice(self, data: bytes, start: int, stop: int, *, utf8: bool) -> Iterator[Found]:
        if stop - start > self._size:
            found = self._long(data, start, stop, utf8=utf8)
        else:
            found = _matching(self._pattern, data, start, stop)
            if not utf8 and self._pattern.latin1:
                hidden = _matching(self._pattern.latin1, data, start, stop)
                found = _merged(
                    found, (line for line in hidden if not _is_utf8(data[line.start : line.stop]))
                )
        return _others(data, start, stop, found) if self.invert else found

    def _count(self, data: bytes, start: int, stop: int, *, utf8: bool) -> int:
        """How many lines `_slice` would give."""
        count = self._pattern.count(data, start, stop)
        if count is None:
            if not utf8 or stop - start > self._size or data.find(b"\r", start, stop) >= 0:
                return sum(1 for _ in self._slice(data, start, stop, utf8=utf8))
            count = self._pattern.count_unended(data, start, stop)
        return count_newlines(data, start, stop) + 1 - count if self.invert else count

    def _long(self, data: bytes, start: int, stop: int, *, utf8: bool) -> Iterator[Found]:
        """The one line of `data[start:stop]`, if it matches."""
        end = stop - 1 if data[stop - 1] == _RETURN else stop
        try:
            at = self.find(data[start:end], 0, end - start, utf8=utf8)
        except OutOfTime as error:
            raise OutOfTime(start + error.position) from None
        if at is not None:
            yield Found(start, stop, start + at)

    def _search(self, pattern: Pattern, data: bytes, start: int, stop: int) -> int | None:
        """Where a match begins in a part of a line; the deadline is looked at between windows."""
        window = _window(pattern)
        for low, high in self._windows(start, stop, window):
            span = pattern.search(data, low, high)
            if span is not None:
                return span[0]
            if (low > start if self._backwards else high < stop) and self.expired():
                raise OutOfTime(low + window // 4 if self._backwards else high - window // 4)
        return None

    def _windows(self, start: int, stop: int, window: int) -> Iterator[tuple[int, int]]:
        """Windows over a part of a line, each overlapping the last by a quarter."""
        while True:
            low, high = (
                (max(start, stop - window), stop) if self._backwards else (start, min(stop, start + window))
            )
            yield low, high
            if high - low < window:
                return
            start, stop = (start, low + window // 4) if self._backwards else (high - window // 4, stop)

    def _slices(self, data: bytes, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Runs of whole lines: of the slice's size at most, or one line that is longer."""
        size = self._size
        if not self._backwards:
            while start <= stop:
                high = stop
                if stop - start > size:
                    high = data.rfind(b"\n", start, start + size + 1)
                    if high < 0:
                        high = data.find(b"\n", start + size, stop)
                    if high < 0:
                        high = stop
                yield start, high
                start = high + 1
            return
        while start <= stop:
            low = start
            if stop - start > size:
                low = data.find(b"\n", stop - size - 1, stop) + 1
                low = low or data.rfind(b"\n", start, stop - size) + 1 or start
            yield low, stop
            stop = low - 1


def _window(pattern: Pattern) -> int:
    """Bytes of text that the pattern takes a second or two for at the worst."""
    return SLICE * MAX_PROGRAM // pattern.program_size


def _matching(pattern: Pattern, data: bytes, start: int, stop: int) -> Iterator[Found]:
    """The lines of `data[start:stop]` that match."""
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
        if end == high > low and data[high - 1] == _RETURN:
            span = pattern.alone.search(data[low : high - 1], 0, high - 1 - low)
            at = low + span[0] if span else -1
        if at >= 0:
            yield Found(low, high, at)
        start = high + 1


def _merged(*lists: Iterable[Found]) -> Iterator[Found]:
    """The lines of all lists, each once, in the order of the buffer."""
    return iter(sorted({line.start: line for found in lists for line in found}.values()))


def _others(data: bytes, start: int, stop: int, found: Iterator[Found]) -> Iterator[Found]:
    """The lines of `data[start:stop]` that were not found."""
    for line in found:
        yield from _every(data, start, line.start - 1)
        start = line.stop + 1
    yield from _every(data, start, stop)


def _every(data: bytes, start: int, stop: int) -> Iterator[Found]:
    while start <= stop:
        high = data.find(b"\n", start, stop)
        if high < 0:
            high = stop
        yield Found(start, high, start)
        start = high + 1


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
