"""Read lines by number: the first, the last, and any between, within caps on lines and bytes.

Content is given exactly as stored, line ends included, so consecutive answers join without a seam. An answer
ends at a line end if one fits. Only a line longer than the byte cap is cut inside, between characters; `next`
then has the offset in it to go on at. See `chunks` for how to drive a read.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from overspill.reading.chunks import DEFAULT_CAPS, Caps, Chunk, Extent, Wanted, newline_position
from overspill.reading.errors import InvalidQuery
from overspill.reading.text import Decoded, cut_after, cut_before, decode
from overspill.wire import Text, approx_tokens

if TYPE_CHECKING:
    from collections.abc import Callable

_NEWLINE: Final = 0x0A
_MARGIN: Final = 4
"""Bytes kept beyond the cap, to see whether the cap falls on a line end or inside a character."""


def head(
    lines: int, extent: Extent, *, first: int = 1, caps: Caps = DEFAULT_CAPS, ansi: bool = False
) -> LineRead:
    """Return a read of the first `lines` lines from line `first` on."""
    return LineRead("head", first, first + lines - 1, 0, extent, caps=caps, ansi=ansi)


def between(
    start: int,
    end: int | None,
    extent: Extent,
    *,
    offset: int = 0,
    caps: Caps = DEFAULT_CAPS,
    ansi: bool = False,
) -> LineRead:
    """Return a read of lines `start` to `end`, from byte `offset` of line `start` on; None is the last line.

    Raises `InvalidQuery` if `end` is before `start`. `LineRead.feed` raises it if line `start` ends before
    `offset`.
    """
    if end is not None and end < start:
        raise InvalidQuery(f"end={end} is before start={start}; lines count from 1, both ends inclusive")
    return LineRead("lines", start, end, offset, extent, caps=caps, ansi=ansi)


def tail(lines: int, extent: Extent, *, caps: Caps = DEFAULT_CAPS, ansi: bool = False) -> TailRead:
    """Return a read of the last `lines` lines.

    If the last line is longer than the byte cap, it reads the line's end.
    """
    return TailRead(lines, extent, caps=caps, ansi=ansi)


class LineRead:
    """Lines by number, in the order of the capture.

    For a start inside a line it first wants the chunk in which that line begins, then jumps to the one
    that holds the offset, whatever lies between. `wanted` is None once nothing more is needed.
    """

    def __init__(
        self, mode: str, first: int, last: int | None, offset: int, extent: Extent, *, caps: Caps, ansi: bool
    ) -> None:
        self._mode, self._first, self._last, self._offset = mode, first, last, offset
        self._extent, self._caps = extent, caps
        self._decode = partial(decode, ansi=ansi, columns=extent.columns)
        self._end = min(extent.lines, extent.lines if last is None else last)
        self._stop = min(self._end, first + caps.lines - 1)
        self._origin: int | None = None
        self._data = bytearray()
        self.wanted: Wanted | None = None
        if first <= extent.lines:
            self.wanted = self._want(newline=first - 1, span=0 if offset else None)

    def _want(self, *, newline: int = 0, offset: int = 0, span: int | None = None) -> Wanted:
        behind = self._caps.size - len(self._data) if span is None else span
        return Wanted(newline=newline, offset=offset, last_newline=self._stop, span=behind)

    def feed(self, chunk: Chunk) -> None:
        """Take the next chunk. Raises `InvalidQuery` if the offset is beyond the end of its line."""
        if self._origin is None:
            self._origin = self._locate(chunk)
        position = self._origin + len(self._data) - chunk.start
        if position >= len(chunk.data):
            self.wanted = self._want(offset=chunk.start + position)
            return
        if self._offset and not self._data:
            position = self._enter(chunk, position)
        self._take(chunk, position)

    def _locate(self, chunk: Chunk) -> int:
        """Return where reading begins in the capture, from the chunk with the newline before it."""
        before = self._first - 1 - chunk.newlines
        start = chunk.start + (newline_position(chunk.data, before) + 1 if before else 0)
        if self._offset and start + self._offset >= self._extent.size:
            raise self._offset_error()
        return start + self._offset

    def _enter(self, chunk: Chunk, position: int) -> int:
        """Begin at an offset inside line `first`: check that it is inside, and move onto a character."""
        if chunk.newlines + chunk.data.count(b"\n", 0, position) != self._first - 1:
            raise self._offset_error()
        moved = cut_after(chunk.data, position) if chunk.utf8 else position
        self._offset += moved - position
        self._origin = chunk.start + moved
        return moved

    def _offset_error(self) -> InvalidQuery:
        return InvalidQuery(
            f"offset={self._offset} is beyond the end of line {self._first}; use start={self._first + 1}"
        )

    def _take(self, chunk: Chunk, position: int) -> None:
        room = self._caps.size + _MARGIN - len(self._data)
        self._data += chunk.data[position : position + room]
        end = chunk.start + min(position + room, len(chunk.data))
        enough = len(self._data) == self._caps.size + _MARGIN or end == self._extent.size
        if enough or self._data.count(b"\n") > self._stop - self._first:
            self.wanted = None
        else:
            self.wanted = self._want(offset=end)

    def answer(self) -> Text:
        """Return the lines read, once `wanted` is None."""
        data = bytes(self._data)
        raw, decoded = _fit(self._caps.size, self._decode, lambda cap: data[: self._cut(data, cap)])
        is_whole = raw.endswith(b"\n") or (self._origin or 0) + len(raw) == self._extent.size
        end = self._first + _count_lines(raw) - 1
        following = None if is_whole and end >= self._end else self._following(raw, end, is_whole=is_whole)
        return _text(self._mode, decoded, (self._first, end), self._extent, following)

    def _cut(self, data: bytes, cap: int) -> int:
        """Return where the answer ends in `data`: behind the last wanted line that fits, or in the first."""
        lines = self._stop - self._first + 1
        if data.count(b"\n", 0, cap) >= lines:
            return newline_position(data, lines) + 1
        if len(data) <= cap:
            return len(data)
        return data.rfind(b"\n", 0, cap) + 1 or cut_before(data, cap)

    def _following(self, raw: bytes, end: int, *, is_whole: bool) -> dict[str, str] | None:
        """Return the query that goes on behind `raw`, whose last line is `end`."""
        if end < self._first:
            return None
        query = {"start": str(end + 1 if is_whole else end)}
        if not is_whole:
            query["offset"] = str(self._offset + len(raw))
        if self._last is not None:
            query["end"] = str(self._last)
        return query


class TailRead:
    """The last lines. Only the chunks with the last bytes that an answer may hold are wanted."""

    def __init__(self, lines: int, extent: Extent, *, caps: Caps, ansi: bool) -> None:
        self._requested = min(lines, extent.lines)
        self._lines = min(self._requested, caps.lines)
        self._extent, self._caps = extent, caps
        self._decode = partial(decode, ansi=ansi, columns=extent.columns)
        self._data = b""
        self.wanted: Wanted | None = None
        if extent.lines:
            offset = max(0, extent.size - caps.size - _MARGIN)
            is_drawn = extent.is_terminal and not ansi  # so that more than the last lines may be needed
            newline = 0 if is_drawn else extent.lines - self._lines
            self.wanted = Wanted(newline=newline, offset=offset)

    def feed(self, chunk: Chunk) -> None:
        """Take the next chunk; the last one of the capture ends the read."""
        self._data = (self._data + chunk.data)[-(self._caps.size + _MARGIN) :]
        end = chunk.start + len(chunk.data)
        self.wanted = None if end >= self._extent.size else Wanted(offset=end)

    def answer(self) -> Text:
        """Return the lines read, once `wanted` is None.

        The query in `next` reads what is missing before them.
        """
        raw, decoded = self._shown()
        if decoded.numbers is not None and len(decoded.numbers) < self._lines:
            self._lines = self._lines_drawn_as(self._lines)
            raw, decoded = self._shown()
        decoded = decoded.last_lines(self._requested)
        last = self._extent.lines
        start, first = last - _count_lines(raw) + 1, last - self._requested + 1
        cut = len(self._data) - len(raw)
        is_inside = len(raw) < self._extent.size and cut > 0 and self._data[cut - 1] != _NEWLINE
        following = None
        if start > first or is_inside:
            following = {"start": str(first), "end": str(start if is_inside else start - 1)}
        return _text("tail", decoded, (start, last), self._extent, following)

    def _shown(self) -> tuple[bytes, Decoded]:
        return _fit(self._caps.size, self._decode, lambda cap: self._data[self._cut(cap) :])

    def _lines_drawn_as(self, lines: int) -> int:
        """Return how many lines of the kept bytes a terminal shows as the last `lines`."""
        numbers = self._decode(self._data).numbers or [0]
        return max(lines, _count_lines(self._data) - numbers[max(0, len(numbers) - lines)])

    def _cut(self, cap: int) -> int:
        """Return where the answer begins in the kept bytes: at the start of a line, or inside the last."""
        data = self._data
        surplus = _count_lines(data) - self._lines
        start = newline_position(data, surplus) + 1 if surplus > 0 else 0
        if len(data) - start <= cap:
            return start
        start = len(data) - cap
        line_start = data.find(b"\n", start - 1, len(data) - 1) + 1
        return line_start or cut_after(data, start)


def _count_lines(data: bytes) -> int:
    return data.count(b"\n") + (1 if data and not data.endswith(b"\n") else 0)


def _fit(
    size: int, decode: Callable[[bytes], Decoded], choose: Callable[[int], bytes]
) -> tuple[bytes, Decoded]:
    """Return what `choose` gives for the largest cap whose text has at most `size` bytes.

    U+FFFD makes a text longer, and so do the blanks that a terminal shows where its cursor jumped over.
    """
    cap = size
    while True:
        raw = choose(cap)
        decoded = decode(raw)
        may_be_longer = decoded.replaced or decoded.rewritten
        text_size = len(decoded.text.encode()) if may_be_longer else 0
        if text_size <= size or cap == 1:
            return raw, decoded
        cap = max(1, min(cap - 1, cap * size // text_size))


def _text(
    mode: str, decoded: Decoded, span: tuple[int, int], extent: Extent, following: dict[str, str] | None
) -> Text:
    return Text(
        content=decoded.text,
        start_line=span[0],
        end_line=span[1],
        total_lines=extent.lines,
        total_bytes=extent.size,
        mode=mode,
        truncated=following is not None,
        approx_tokens=approx_tokens(len(decoded.text.encode())),
        next=following,
        replaced=decoded.replaced,
        rewritten=decoded.rewritten or UNSET,
    )
