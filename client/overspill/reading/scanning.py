"""Search one chunk by itself, from the line of a cursor on; and the cursors of searches."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.reading.chunks import Chunk, newline_position
from overspill.reading.errors import InvalidQuery
from overspill.reading.long_line import Trail
from overspill.reading.regions import Region
from overspill.reading.text import normalize_lines

if TYPE_CHECKING:
    from overspill.reading.chunks import Extent
    from overspill.reading.matching import MatchCount, MatchedLines, Matcher

_CURSOR: Final = re.compile(
    r"([fr])(\d{1,15})(?:\.(\d{1,15})(?:\.(\d{1,3}-\d{1,15}(?:_\d{1,3}-\d{1,15}){0,31}))?)?", re.ASCII
)
_NOT_A_CURSOR: Final = "cursor= takes what `next` of an earlier answer of the same search holds"


class Cursor(NamedTuple):
    """The position where a search goes on: a line, and an offset of the capture in it if one is given.

    As text: `f` or `r` (from the end), the line, and with a dot the offset. Behind another dot stand the
    trails of a search in this line, if blocks were found: each as blocks found, `-` and distance.
    """

    line: int
    offset: int | None = None
    trails: tuple[Trail, ...] = ()

    @classmethod
    def parse(cls, text: str, extent: Extent, *, backwards: bool) -> Cursor:
        """Return the cursor that `text` stands for. Raises `InvalidQuery` if it is not such a cursor."""
        match = _CURSOR.fullmatch(text)
        if match is None or (match[1] == "r") != backwards:
            raise InvalidQuery(f"{_NOT_A_CURSOR} with the same from_end, or none to search from the start")
        trails = [trail.split("-") for trail in (match[4] or "").split("_") if trail]
        cursor = cls(
            int(match[2]),
            int(match[3]) if match[3] else None,
            tuple(Trail(int(found), int(distance)) for found, distance in trails),
        )
        if not 1 <= cursor.line <= max(extent.lines, 1) or not 0 < (cursor.offset or 1) <= extent.size:
            raise InvalidQuery(f"{_NOT_A_CURSOR}; this one points beyond the capture")
        return cursor

    def text(self, *, backwards: bool) -> str:
        """Return the cursor in the form of a query: where to go on, and in which direction."""
        offset = "" if self.offset is None else f".{self.offset}"
        trails = "_".join(f"{found}-{distance}" for found, distance in self.trails)
        has_found = any(trail.found for trail in self.trails)
        return f"{'r' if backwards else 'f'}{self.line}{offset}{f'.{trails}' if has_found else ''}"


def foreign_cursor() -> InvalidQuery:
    """Return the error for a cursor that belongs to another search or capture."""
    return InvalidQuery(f"{_NOT_A_CURSOR}; this one is of another search or capture")


class ScannedChunk(NamedTuple):
    """The result of searching one chunk by itself. Lines that reach over its ends are left for `take`."""

    chunk: Chunk
    head: bytes
    """The part of a line that began before the chunk, as stored: up to its first newline, or all."""
    tail: bytes
    """The part of a line that goes on after the chunk, as stored."""
    has_newline: bool
    region: Region | None
    found: MatchedLines | MatchCount | None
    """The matches in the region; None if nothing was searched."""


class Scanner:
    """Finds the lines wanted, or only counts them. Stateless: safe to use from several threads at once."""

    def __init__(self, matcher: Matcher, start: Cursor, *, backwards: bool, ansi: bool, count: bool) -> None:
        self._matcher, self._start, self._backwards = matcher, start, backwards
        self._ansi, self._count = ansi, count

    def prepare(self, chunk: Chunk, limit: int) -> ScannedChunk:
        """Search the lines that lie wholly in a chunk, for up to `limit` matches."""
        raw = chunk.data
        data = normalize_lines(raw, ansi=self._ansi, utf8=chunk.utf8)
        first, last = data.find(b"\n"), data.rfind(b"\n")
        start, number = (0, 1) if chunk.start == 0 else (first + 1, chunk.newlines + 2)
        region = None
        if first >= 0 and start <= last:
            region = Region(data, start, last, number, None if chunk.utf8 else chunk)
        found = self._search(region, chunk.newlines, limit) if region else None
        if first >= 0:
            return ScannedChunk(
                chunk, raw[: raw.find(b"\n")], raw[raw.rfind(b"\n") + 1 :], True, region, found
            )
        return ScannedChunk(chunk, raw, raw, False, region, found)

    def trimmed(self, chunk: Chunk) -> Chunk:
        """Return the chunk without the part of a line that an earlier search has searched.

        Raises `InvalidQuery` if the cursor is not of this capture.
        """
        line, offset = self._start.line, self._start.offset
        if offset is None or not chunk.start <= offset - self._backwards < chunk.start + len(chunk.data):
            return chunk
        position = offset - chunk.start
        if chunk.newlines + chunk.data.count(b"\n", 0, position) != line - 1:
            raise foreign_cursor()
        if self._backwards:
            return chunk._replace(data=chunk.data[:position])
        return Chunk(chunk.data[position:], offset, line - 1, chunk.utf8)

    def _search(self, region: Region, newlines: int, limit: int) -> MatchedLines | MatchCount | None:
        start, stop = self._bounds(region, newlines)
        if start > stop or limit <= 0:
            return None
        if self._count:
            return self._matcher.count(region.data, start, stop)
        return self._matcher.lines(region.data, start, stop, limit=limit)

    def _bounds(self, region: Region, newlines: int) -> tuple[int, int]:
        """Return the part of a region to search: from the line of the cursor on, or up to it."""
        data, start, stop, number = region[:4]
        line = self._start.line
        if self._backwards:
            if line < number:
                return start, -1
            return start, _newline(data, line - newlines, stop)
        return (_newline(data, line - 1 - newlines, stop) + 1 if line > number else start), stop


def _newline(data: bytes, number: int, last: int) -> int:
    """Return the position of a newline, or of the last one if there are fewer."""
    try:
        return newline_position(data, number)
    except ValueError:
        return last
