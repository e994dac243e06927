"""Search the lines of a capture, from either end, within bounds on matches, bytes and time.

    search = Search(query, extent)
    while (wanted := search.begin_part()) is not None:   # the first chunk, as `chunks` says
        for chunk in ...:                                # from there on; downwards where search.backwards
            search.feed(chunk)                           # or, over several threads: take(prepare(chunk))
            if search.wanted is None or search.has_jumped:
                break
    answer = search.answer()

`prepare` does the work, and may run for several chunks at once, in any threads. `take` puts the results
together: call it once for each chunk, in order. If a search stops early, `next` has a cursor with all that
another search needs to go on behind the last line reported. Each search gets further, since it searches at
least one part of the first line.

Escape sequences are removed before searching unless `ansi`: what is searched is what is shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from overspill.reading.chunks import DEFAULT_CAPS, Caps, Wanted
from overspill.reading.matching import Matcher
from overspill.reading.open_line import OpenLine
from overspill.reading.patterns import compile_pattern
from overspill.reading.regions import near_side
from overspill.reading.results import Results
from overspill.reading.scanning import Cursor, Scanner
from overspill.reading.search_bounds import (
    Ending,
    beyond_line,
    cursor_in_region,
    first_wanted,
    lines_asked,
    needs_lead,
    start_of,
    takes_every_line,
)
from overspill.reading.split_line import SAMPLE_BYTES, LineResult, StoppedInside

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.reading.chunks import Chunk, Extent
    from overspill.reading.patterns import Pattern
    from overspill.reading.regions import Region
    from overspill.reading.scanning import ScannedChunk
    from overspill.wire import GrepQuery, Text


def never() -> bool:
    """Return False: the time is never over."""
    return False


class Search:
    """One search. `wanted` is None once the answer is complete, or a bound is reached."""

    def __init__(
        self,
        query: GrepQuery,
        extent: Extent,
        *,
        caps: Caps = DEFAULT_CAPS,
        expired: Callable[[], bool] = never,
        pattern: Pattern | None = None,
    ) -> None:
        """`expired` says that the time is up. It is called after each part, from any thread.

        `pattern` is the compiled pattern of the query, if the caller has compiled it. Raises
        `InvalidPattern`, and `InvalidQuery` for a cursor of another search.
        """
        if pattern is None:
            pattern = compile_pattern(query.pattern, fixed=query.fixed, ignore_case=query.ignore_case)
        self.backwards: bool = query.from_end
        self._query, self._extent = query, extent
        self._matcher = Matcher(pattern, invert=query.invert, backwards=query.from_end, expired=expired)
        self._results = Results(query, caps, is_terminal=extent.is_terminal)
        self._findings, self._context = self._results.findings, self._results.context
        self._start = start_of(query, extent, self._matcher)
        self._scanner = Scanner(
            self._matcher, self._start, backwards=query.from_end, ansi=query.ansi, count=query.count
        )
        self._line = OpenLine(self._matcher, extent, backwards=query.from_end, ansi=query.ansi)
        self._last_offset: int | None = None
        """The offset of the chunk taken last. Only kept backwards."""
        self._ending = Ending(extent, self._findings, backwards=query.from_end, count=query.count)
        self._is_leading = needs_lead(query, self._start, self._context, extent)
        """Whether the next lines are before the cursor. They may be shown, but are not searched."""
        self.has_jumped: bool = False
        """Whether `wanted` is another place than the end of the chunk taken last."""
        self.wanted = self._begin() if extent.size else None

    def _begin(self) -> Wanted | None:
        if self._query.count and self._start.offset is None and takes_every_line(self._query):
            self._results.count = lines_asked(self._start.line, self._extent, backwards=self.backwards)
            return None
        if self._start.offset is not None and not self._is_leading:
            return self._enter_cursor_line()
        return first_wanted(self._start.line, self._context, self._extent, backwards=self.backwards)

    def _enter_cursor_line(self, beginning: LineResult | None = None) -> Wanted:
        """Go on inside the line of the cursor, whose `beginning` has been searched."""
        self._is_leading, self._last_offset = False, None
        self._line.enter(self._start, beginning)
        return Wanted(offset=(self._start.offset or 0) - self.backwards)

    def begin_part(self) -> Wanted | None:
        """Return where to read from now on; None once the search has ended."""
        self.has_jumped = False
        return self.wanted

    def prepare(self, chunk: Chunk) -> ScannedChunk:
        """Search the lines that lie wholly in a chunk. Safe to call from several threads at once.

        Raises `InvalidQuery` if the cursor is of another capture.
        """
        if self._is_leading:
            return self._scanner.prepare(chunk, 0)
        return self._scanner.prepare(self._scanner.trimmed(chunk), self._findings.matches_left)

    def feed(self, chunk: Chunk) -> None:
        """Search the next chunk: `take(prepare(chunk))`."""
        self.take(self.prepare(chunk))

    def take(self, prepared: ScannedChunk) -> None:
        """Take the next chunk's results, in the order of the search."""
        if self._is_over:
            return
        if self.backwards:
            self._take_upwards(prepared)
        else:
            self._take_downwards(prepared)
        if self.wanted is not None and self._findings.is_settled:
            self.wanted = None
            self._ending.settle(prepared.chunk)

    @property
    def _is_over(self) -> bool:
        """Whether the rest of this chunk and the chunks behind it are not needed."""
        return self.wanted is None or self.has_jumped

    def _take_downwards(self, prepared: ScannedChunk) -> None:
        chunk, end = prepared.chunk, prepared.chunk.start + len(prepared.chunk.data)
        if self._line.is_open:
            self._line.number = chunk.newlines + 1
            self._extend_line(prepared.head, chunk, is_whole=prepared.has_newline)
        self._take_region(prepared)
        if self._is_over or (self._findings.is_settled and not self._query.count):
            return
        if prepared.has_newline or (chunk.start == 0 and not self._line.is_open):
            self._open_line(self._number_behind(prepared), end - len(prepared.tail))
            self._extend_line(prepared.tail, chunk, is_whole=False)
        if self._is_over:
            return
        self.wanted = Wanted(offset=end)
        if end == self._extent.size:
            self._end_downwards(chunk)
        else:
            self._skip_rest_of_line()

    def _end_downwards(self, chunk: Chunk) -> None:
        if not chunk.data.endswith(b"\n"):
            self._line.end_without_newline()
            self._extend_line(b"", chunk, is_whole=True)
        if not self._is_over:
            self._end()

    def _number_behind(self, prepared: ScannedChunk) -> int:
        """Return the number of the line that goes on behind a chunk.

        For a line that is searched and short so far it is a lower bound: the next chunk says it exactly.
        """
        chunk = prepared.chunk
        first = chunk.newlines + 1
        if first >= self._start.line and len(prepared.tail) < SAMPLE_BYTES and not self._findings.is_full:
            return first
        return first + chunk.data.count(b"\n")

    def _take_upwards(self, prepared: ScannedChunk) -> None:
        chunk, end = prepared.chunk, prepared.chunk.start + len(prepared.chunk.data)
        begins_capture = chunk.start == 0
        if self._last_offset is not None and chunk.start >= self._last_offset:
            return  # taken before the jump
        if self._last_offset not in (None, end):
            self._line.forget()
        self._last_offset = chunk.start
        if end == self._extent.size and not chunk.data.endswith(b"\n") and not self._line.is_open:
            self._line.end_without_newline()
            self._open_line(self._extent.lines, end)
        if self._line.is_open:
            self._extend_line(prepared.tail, chunk, is_whole=prepared.has_newline or begins_capture)
        self._take_region(prepared)
        if self._is_leading and chunk.newlines < self._start.line:
            self._jump(self._enter_cursor_line())
        if self._is_over:
            return
        if prepared.has_newline and not begins_capture:
            self._open_line(chunk.newlines + 1, chunk.start + len(prepared.head))
            self._extend_line(prepared.head, chunk, is_whole=False)
        if self._is_over:
            return
        self.wanted = Wanted(offset=chunk.start - 1)
        if begins_capture:
            self._end()
        else:
            self._skip_rest_of_line()

    def _end(self) -> None:
        """End the search at the end of the capture, or its start."""
        self.wanted = None
        self._ending.end()

    def _open_line(self, number: int, offset: int) -> None:
        """Begin a line at `offset`; backwards at its end."""
        is_asked = number <= self._start.line if self.backwards else number >= self._start.line
        is_searched = is_asked and not self._is_leading and not self._findings.is_full
        self._line.begin(number, offset, is_searched=is_searched)

    def _extend_line(self, piece: bytes, chunk: Chunk, *, is_whole: bool) -> None:
        """Add to the open line; with `is_whole`, that was all of it."""
        line = self._line
        try:
            whole = line.add(piece, utf8=chunk.utf8, is_whole=is_whole)
        except StoppedInside as stopped:
            self._stop_inside(piece, stopped)
            whole = line.whole() if is_whole else None
        if whole is None or self.wanted is None:
            return
        is_searched = line.is_searched
        line.close()
        if self._is_leading and line.number == self._start.line:
            self._jump(self._enter_cursor_line(whole))
        else:
            self._results.take_line(whole, line.number, is_searched=is_searched)

    def _stop_inside(self, piece: bytes, stopped: StoppedInside) -> None:
        """Handle the end of the time inside the open line, to which `piece` was added last."""
        line = self._line
        if not line.is_enough:
            self._stop_for_time(Cursor(line.number, stopped.offset, stopped.trails))
            line.show(piece)
        elif not any(self._context):
            self._results.take_line(line.whole(), line.number, is_searched=True)
            self._ending.stop_behind(self._findings.last_number if self._findings.is_full else line.number)
            self.wanted = None

    def _skip_rest_of_line(self) -> None:
        """Jump over the rest of an open line if enough of it is known."""
        line = self._line
        if not line.is_enough:
            return
        if self._is_leading and line.number == self._start.line:
            self._jump(self._enter_cursor_line(line.whole()))
        elif any(self._context) and line.skip():
            self._jump(beyond_line(line.number, self._extent, backwards=self.backwards))

    def _jump(self, wanted: Wanted) -> None:
        self.wanted, self.has_jumped = wanted, True

    def _take_region(self, prepared: ScannedChunk) -> None:
        region, found = prepared.region, prepared.found
        if region is None or self._is_over:
            return
        if self._is_leading:
            self._take_leading(region)
            return
        self._results.take_region(region, found)
        if found and found.reached and not self._findings.is_full:
            ansi, backwards = self._query.ansi, self.backwards
            cursor = cursor_in_region(region, prepared.chunk, found.reached, ansi=ansi, backwards=backwards)
            self._stop_for_time(cursor)

    def _take_leading(self, region: Region) -> None:
        """Take the lines on the near side of the cursor's line; downwards, go on there at the cursor."""
        near, here = near_side(region, self._start.line, backwards=self.backwards)
        if near:
            self._findings.take(near, [])
        if not self.backwards and here <= region.stop:
            end = region.data.find(b"\n", here, region.stop)
            line = region.data[here : end if end >= 0 else region.stop][:SAMPLE_BYTES]
            self._jump(self._enter_cursor_line(LineResult(line, is_utf8=region.source is None)))

    def _stop_for_time(self, cursor: Cursor) -> None:
        """Stop searching. Another search goes on at `cursor`. Lines around matches are still read."""
        if not self._ending.stop_for_time(cursor):
            self.wanted = None

    def answer(self) -> Text:
        """Return what was found, once `wanted` is None.

        `start_line` and `end_line` bound the part that was searched. `content` shows the matches as `grep -n`
        does, or with `count` their number.
        """
        return self._results.answer(self._extent, self._start, self._ending)
