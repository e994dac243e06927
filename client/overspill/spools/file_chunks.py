"""Reads a file as chunks for the bounded readers, and drives the readers."""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING, Final, Protocol, TypeVar

from overspill.reading.chunks import Chunk
from overspill.reading.errors import InvalidQuery
from overspill.reading.text import cut_after, is_utf8

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from overspill.reading.chunks import Extent, Wanted
    from overspill.reading.grep import Search
    from overspill.wire import Text

A_co = TypeVar("A_co", covariant=True)
T = TypeVar("T")

BLOCK: Final = 256 * 1024
_LONGEST_CHARACTER: Final = 4
_OTHER_LINES: Final = "the file has other lines than were written"


class Read(Protocol[A_co]):
    """A bounded reader. `wanted` says which chunks it needs next, and is None once it can answer."""

    wanted: Wanted | None

    def feed(self, chunk: Chunk) -> None:
        """Take the next wanted chunk."""

    def answer(self) -> A_co:
        """Return the answer, once nothing more is wanted."""


class FileChunks:
    """The bytes of a file that `extent` counts, from its beginning, in blocks of about 256 KiB.

    No block cuts a UTF-8 character. Safe to use from several threads. Raises `OSError`.
    """

    def __init__(self, file: IO[bytes], extent: Extent) -> None:
        self._file, self._descriptor = file, file.fileno()
        self.extent: Extent = extent
        size = extent.size
        self._blocks = max(1, -(-size // BLOCK))
        self._newlines = extent.lines - (size > 0 and self.bytes_at(size - 1, size) != b"\n")
        self._before = [0]
        """The newlines in the first 0, 1, 2 … blocks together, as far as they were counted."""
        self._behind = [0]
        """The same for the last 0, 1, 2 … blocks."""

    def bytes_at(self, start: int, stop: int) -> bytes:
        """Return the bytes from `start` up to, not including, `stop`; fewer at the end of the content."""
        remaining = min(stop, self.extent.size) - start
        pieces = []
        while remaining > 0 and (piece := os.pread(self._descriptor, remaining, start)):
            pieces.append(piece)
            start, remaining = start + len(piece), remaining - len(piece)
        return b"".join(pieces)

    def pieces(self, start: int, stop: int) -> Iterator[bytes]:
        """Yield the same bytes, a block at a time."""
        while start < stop and (piece := self.bytes_at(start, min(start + BLOCK, stop))):
            yield piece
            start += len(piece)

    def inspect(self, read: Read[T]) -> T:
        """Drive `lines.head`, `between`, `tail` or a `Summarizer` to its answer."""
        previous = None
        while (wanted := read.wanted) is not None:
            previous = _checked_progress(previous, wanted)
            for chunk in self._chunks(self._block_numbers(wanted)):
                _feed(read, chunk)
                if read.wanted is None:
                    break
        return read.answer()

    def search(self, search: Search) -> Text:
        """Drive a grep to its answer, downwards or upwards from the first wanted chunk."""
        previous = None
        while (wanted := search.begin_part()) is not None:
            previous = _checked_progress(previous, wanted)
            numbered = self._block_numbers(wanted)
            last = numbered[0] if wanted.span is None else numbered[-1]
            numbers = range(last, -1, -1) if search.backwards else range(numbered[0], self._blocks)
            for chunk in self._chunks(numbers):
                _feed(search, chunk)
                if search.wanted is None or search.has_jumped:
                    break
        return search.answer()

    def _block_numbers(self, wanted: Wanted) -> range:
        """Return the numbers of the blocks that a read asks for."""
        first = self._holding_newline(wanted.newline, self._holding(wanted.offset))
        last = self._blocks - 1
        if wanted.span is not None:
            last = min(last, self._holding(self._start(first + 1) + wanted.span - 1))
        return range(first, max(first, last) + 1)

    def _chunks(self, numbers: Iterable[int]) -> Iterator[Chunk]:
        for number in numbers:
            data = self._block(number)
            yield Chunk(data, self._start(number), self._newlines_before(number), is_utf8(data))

    def _block(self, number: int) -> bytes:
        """Return the bytes of a block. Count its newlines if those up to it, or behind it, are known."""
        start, stop = self._start(number), self._start(number + 1)
        data = self.bytes_at(start, stop)
        if len(data) < stop - start:
            raise OSError(f"the file ends at {start + len(data)} and had {self.extent.size} bytes")
        if number + 1 == len(self._before):
            self._before.append(self._before[-1] + data.count(b"\n"))
        elif self._blocks - number == len(self._behind):
            self._behind.append(self._behind[-1] + data.count(b"\n"))
        return data

    def _start(self, number: int) -> int:
        """Return the offset of a block: after a UTF-8 character that would reach into it."""
        start = min(number * BLOCK, self.extent.size)
        return start + cut_after(self.bytes_at(start, start + _LONGEST_CHARACTER), 0) if number else 0

    def _holding(self, offset: int) -> int:
        """Return the number of the block that holds this byte; the last block if there is no such byte."""
        number = min(offset // BLOCK, self._blocks - 1)
        return number - (number > 0 and offset < self._start(number))

    def _holding_newline(self, newline: int, minimum: int) -> int:
        """Return the number of the block that holds this newline, counted from 1, but at least `minimum`."""
        if newline <= self._newlines // 2:
            while minimum + 1 < self._blocks and self._newlines_before(minimum + 1) < newline:
                minimum += 1
            return minimum
        number = self._blocks - 1
        while number > minimum and self._newlines_before(number) >= newline:
            number -= 1
        return number

    def _newlines_before(self, number: int) -> int:
        """Return the newlines before a block. Count from the end of the file that is nearer."""
        while number >= len(self._before) and self._blocks - number >= len(self._behind):
            from_start = number - len(self._before) < self._blocks - number - len(self._behind)
            self._block(len(self._before) - 1 if from_start else self._blocks - len(self._behind))
        if number < len(self._before):
            return self._before[number]
        return self._newlines - self._behind[self._blocks - number]


def _checked_progress(previous: Wanted | None, wanted: Wanted) -> Wanted:
    """Return what a reader wants, if it has not just got it.

    Raises `OSError` if it has: it looks for lines that the file should have and has not.
    """
    if wanted == previous:
        raise OSError(_OTHER_LINES)
    return wanted


def _feed(read: Read[object] | Search, chunk: Chunk) -> None:
    """Let a reader take a chunk. Raises `OSError` if a line is not where it should be."""
    try:
        read.feed(chunk)
    except InvalidQuery:
        raise
    except ValueError as error:
        raise OSError(_OTHER_LINES) from error
