"""Finds where a search begins and ends, and which chunks it needs for that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from overspill.reading.chunks import ContextLines, Wanted, newline_position
from overspill.reading.long_line import Trail
from overspill.reading.scanning import Cursor, foreign_cursor
from overspill.reading.split_line import LOOKBEHIND_BYTES, SAMPLE_BYTES, passed_over

if TYPE_CHECKING:
    from overspill.reading.chunks import Chunk, Extent
    from overspill.reading.findings import Findings
    from overspill.reading.matching import Matcher, StopPosition
    from overspill.reading.regions import Region
    from overspill.wire import GrepQuery

_EVERYWHERE: Final = frozenset({"^", "$", ".*"})
"""Patterns that match in every line, as the empty pattern does."""


def context_lines(query: GrepQuery) -> ContextLines:
    """Return how many lines are shown around each match."""
    if query.count:
        return ContextLines(0, 0)
    before = query.context if query.before is None else query.before
    return ContextLines(before, query.context if query.after is None else query.after)


def takes_every_line(query: GrepQuery) -> bool:
    """Return whether the query matches every line, so that nothing has to be searched."""
    is_everywhere = not query.pattern or (query.pattern in _EVERYWHERE and not query.fixed)
    return is_everywhere and not query.invert


def lines_asked(line: int, extent: Extent, *, backwards: bool) -> int:
    """Return the number of lines from `line` on, in the direction of the search."""
    if not extent.lines:
        return 0
    return line if backwards else extent.lines + 1 - line


def start_of(query: GrepQuery, extent: Extent, matcher: Matcher) -> Cursor:
    """Return the cursor of a query, or one at its first line. Raises `InvalidQuery`."""
    if not query.cursor:
        return Cursor(max(extent.lines, 1) if query.from_end else 1)
    cursor = Cursor.parse(query.cursor, extent, backwards=query.from_end)
    try:
        matcher.long_search(cursor.trails)
    except ValueError:
        raise foreign_cursor() from None
    return cursor


def needs_lead(query: GrepQuery, start: Cursor, context: ContextLines, extent: Extent) -> bool:
    """Return whether a search from inside a line shows something that lies before its cursor."""
    if start.offset is None:
        return False
    if query.from_end:
        return bool(context.after) and start.line < extent.lines
    return bool(context.before) or (query.invert and not query.count)


def first_wanted(line: int, context: ContextLines, extent: Extent, *, backwards: bool) -> Wanted:
    """Return the first chunks for a search that begins at the start of a line (backwards: at its end)."""
    if not backwards:
        return Wanted(newline=max(0, line - 1 - context.before))
    last = line + context.after
    return Wanted(newline=last) if last < extent.lines else Wanted(offset=extent.size - 1)


def beyond_line(line: int, extent: Extent, *, backwards: bool) -> Wanted:
    """Return the chunks for a search that skips the rest of a line."""
    if backwards:
        return Wanted(newline=line - 1, span=SAMPLE_BYTES)
    return Wanted(newline=line) if line < extent.lines else Wanted(offset=extent.size - 1)


def cursor_in_region(
    region: Region, chunk: Chunk, reached: StopPosition, *, ansi: bool, backwards: bool
) -> Cursor:
    """Return the cursor of a search that ran out of time in a region of this chunk.

    It is at the start of a line, backwards at its end, or inside it.
    """
    position = reached.position
    if position < region.start:
        return Cursor(region.number - 1)
    number = region.number + region.data.count(b"\n", region.start, position)
    if not reached.trails:
        return Cursor(number)
    return _cursor_inside(chunk, number, reached.trails, ansi=ansi, backwards=backwards)


def _cursor_inside(
    chunk: Chunk, number: int, trails: tuple[Trail, ...], *, ansi: bool, backwards: bool
) -> Cursor:
    """Return a cursor inside a line of this chunk, after the bytes that its trails no longer need."""
    before = number - 1 - chunk.newlines
    start = newline_position(chunk.data, before) + 1 if before else 0
    line = chunk.data[start : chunk.data.find(b"\n", start)]
    done = min((trail.distance for trail in trails), default=0) - LOOKBEHIND_BYTES
    position, passed = passed_over(line, done, ansi=ansi, utf8=chunk.utf8, backwards=backwards)
    left = tuple(Trail(found, max(0, distance - passed)) for found, distance in trails)
    return Cursor(number, chunk.start + start + position, left)


class Ending:
    """The end of a search. `cursor` says where the next one goes on; None if nothing is left."""

    def __init__(self, extent: Extent, findings: Findings, *, backwards: bool, count: bool) -> None:
        self._extent, self._findings, self._backwards, self._count = extent, findings, backwards, count
        self._late: Cursor | None = None
        self.cursor: Cursor | None = None

    def stop_for_time(self, cursor: Cursor) -> bool:
        """Stop searching, since the time is over. Return whether lines around matches must still be read."""
        if not self._findings.is_lacking:
            self._stop(cursor)
            return False
        self._late, self._findings.is_full = cursor, True
        return True

    def stop_behind(self, line: int) -> None:
        """Go on behind a line that was reported."""
        self._stop(Cursor(line - 1 if self._backwards else line + 1))

    def settle(self, chunk: Chunk) -> None:
        """Stop because there are enough matches; for a count, after the lines that end in this chunk."""
        if self._count:
            newlines = 0 if self._backwards else chunk.data.count(b"\n")
            self._stop(Cursor(chunk.newlines + 1 + newlines))
        elif self._late and not self._findings.has_given_up:
            self._stop(self._late)
        else:
            self.stop_behind(self._findings.last_number)

    def end(self) -> None:
        """Note the end of the capture. If the findings were full before, there may be more to find."""
        if self._late and not self._findings.has_given_up:
            self._stop(self._late)
        elif self._findings.is_full and not self._count:
            self.stop_behind(self._findings.last_number)

    def _stop(self, cursor: Cursor) -> None:
        self.cursor = cursor if 1 <= cursor.line <= self._extent.lines else None

    def searched(self, start: Cursor) -> tuple[int, int]:
        """Return the first and the last line that were searched, from `start` on."""
        cursor = self.cursor or Cursor(0 if self._backwards else self._extent.lines + 1)
        line = cursor.line
        if self._backwards:
            return (line if cursor.offset else line + 1), min(start.line, self._extent.lines)
        return start.line, (line if cursor.offset else line - 1)
