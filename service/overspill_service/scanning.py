"""Searching one chunk by itself, from the line of a cursor on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill_service.chunks import Chunk, newline_position
from overspill_service.errors import InvalidParameter
from overspill_service.findings import Region
from overspill_service.text import strip_escapes

if TYPE_CHECKING:
    from overspill_service.chunks import Extent
    from overspill_service.matching import Found, Matcher

_CURSOR: Final = re.compile(r"([fr])(\d{1,15})(?:\.(\d{1,15}))?", re.ASCII)


class Cursor(NamedTuple):
    """Where a search goes on: at a line, and in it at an offset of the capture where one is given.

    As text: `f` or `r` (from the end), the line, and with a dot the offset.
    """

    line: int
    offset: int | None = None

    @classmethod
    def parse(cls, text: str, extent: Extent, *, backwards: bool) -> Cursor:
        """Raises `InvalidParameter` where `text` is no cursor of such a search."""
        match = _CURSOR.fullmatch(text)
        if match is None or (match[1] == "r") != backwards:
            raise InvalidParameter(
                f"{_NOT_A_CURSOR} with the same from_end, or none to search from the start"
            )
        cursor = cls(int(match[2]), int(match[3]) if match[3] else None)
        if not 1 <= cursor.line <= max(extent.lines, 1) or not 0 < (cursor.offset or 1) <= extent.size:
            raise InvalidParameter(f"{_NOT_A_CURSOR}; this one points beyond the capture")
        return cursor

    def text(self, *, backwards: bool) -> str:
        offset = "" if self.offset is None else f".{self.offset}"
        return f"{'r' if backwards else 'f'}{self.line}{offset}"


_NOT_A_CURSOR: Final = "cursor= takes what `next` of an earlier answer of the same search holds"


class Prepared(NamedTuple):
    """What searching one chunk by itself gave; its lines that reach over its ends are left for `take`."""

    chunk: Chunk
    head: bytes
    """What the chunk holds of a line that began before it: up to its first newline, or all of it."""
    tail: bytes
    """What it holds of a line that goes on behind it."""
    has_newline: bool
    region: Region | None
    found: list[Found]
    matched: int
    reached: int | None
    """Where in the region the time ran out."""


class Scanner:
    """Finds the lines wanted, or only counts them. Stateless: safe to use from several threads at once."""

    def __init__(self, matcher: Matcher, start: Cursor, *, backwards: bool, ansi: bool, count: bool) -> None:
        self._matcher, self._start, self._backwards = matcher, start, backwards
        self._ansi, self._count = ansi, count

    def prepare(self, chunk: Chunk, limit: int) -> Prepared:
        """Search the lines that lie wholly in a chunk, for up to `limit` matches.

        Raises `InvalidParameter` where the cursor is not of this capture.
        """
        chunk = self._trim(chunk)
        data = chunk.data if self._ansi else strip_escapes(chunk.data)
        first, last = data.find(b"\n"), data.rfind(b"\n")
        start, number = (0, 1) if chunk.start == 0 else (first + 1, chunk.newlines + 2)
        region = Region(data, start, last, number) if first >= 0 and start <= last else None
        found, count, reached = self._search(region, chunk, limit) if region else ([], 0, None)
        head = data[:first] if first >= 0 else data
        return Prepared(chunk, head, data[last + 1 :], first >= 0, region, found, count, reached)

    def _trim(self, chunk: Chunk) -> Chunk:
        """The chunk without the part of a line that an earlier search has been through."""
        line, offset = self._start
        if offset is None or not chunk.start <= offset - self._backwards < chunk.start + len(chunk.data):
            return chunk
        position = offset - chunk.start
        if chunk.newlines + chunk.data.count(b"\n", 0, position) != line - 1:
            raise InvalidParameter(f"{_NOT_A_CURSOR}; this one is of another capture")
        if self._backwards:
            return chunk._replace(data=chunk.data[:position])
        return Chunk(chunk.data[position:], offset, line - 1, chunk.utf8)

    def _search(self, region: Region, chunk: Chunk, limit: int) -> tuple[list[Found], int, int | None]:
        start, stop = self._bounds(region, chunk.newlines)
        if start > stop or limit <= 0:
            return [], 0, None
        if self._count:
            return [], *self._matcher.count(region.data, start, stop, utf8=chunk.utf8)
        found, reached = self._matcher.lines(region.data, start, stop, utf8=chunk.utf8, limit=limit)
        return found, len(found), reached

    def _bounds(self, region: Region, newlines: int) -> tuple[int, int]:
        """The part of a region that is to be searched: from the line of the cursor on, or up to it."""
        data, start, stop, number = region
        line = self._start.line
        if self._backwards:
            if line < number:
                return start, -1
            return start, _newline(data, line - newlines, stop)
        return (_newline(data, line - 1 - newlines, stop) + 1 if line > number else start), stop


def _newline(data: bytes, number: int, last: int) -> int:
    """The position of a newline, or that of the last where there are fewer."""
    try:
        return newline_position(data, number)
    except ValueError:
        return last
