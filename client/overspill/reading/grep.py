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
from overspill.reading.patterns import compile_pattern
from overspill.reading.regions import near_side
from overspill.reading.results import Results
from overspill.reading.scanning import Cursor, Scanner
from overspill.reading.search_bounds import (
    Ending,
    cursor_inside,
    first_wanted,
    lines_asked,
    needs_lead,
    start_of,
    takes_every_line,
)
from overspill.reading.split_line import SAMPLE_BYTES, LineResult, SplitLine, StoppedInside, UnsearchedLine

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.reading.chunks import Chunk, Extent
    from overspill.reading.matching import StopPosition
    from overspill.reading.patterns import Pattern
    from overspill.reading.regions import Region
    from overspill.reading.scanning import ScannedChunk
    from overspill.wire import GrepQuery, Text


def never() -> bool:
    """Return False: the time is never up."""
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
        self._line: SplitLine | UnsearchedLine | None = None
        self._number = self._start.line
        """The number of the open line."""
        self._last_offset: int | None = None
        """The offset of the chunk taken last. Only kept backwards."""
        self._is_unended = False
        r"""Whether the capture is known to end without `\n`."""
        self._ending = Ending(extent, self._findings, backwards=query.from_end, count=query.count)
        self._is_leading = needs_lead(query, self._start, self._context, extent)
        """Whether what comes is before the cursor, so that it is shown at most."""
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
        offset = self._start.offset or 0
        self._is_leading, self._last_offset = False, None
        self._number = self._start.line
        self._line = SplitLine(
            self._matcher,
            offset,
            backwards=self.backwards,
            ansi=self._query.ansi,
            trails=self._start.trails,
            beginning=beginning,
        )
        return Wanted(offset=offset - self.backwards)

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
        return self._scanner.prepare(self._scanner.trimmed(chunk), self._findings.room)

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
        """Whether the rest of this chunk, and the chunks behind it, are not needed."""
        return self.wanted is None or self.has_jumped

    def _take_downwards(self, prepared: ScannedChunk) -> None:
        chunk, end = prepared.chunk, prepared.chunk.start + len(prepared.chunk.data)
        if self._line:
            self._number = chunk.newlines + 1
            self._extend_line(prepared.head, chunk, is_whole=prepared.has_newline)
        self._take_region(prepared)
        if self._is_over or (self._findings.is_settled and not self._query.count):
            return
        if prepared.has_newline or (chunk.start == 0 and self._line is None):
            self._number = self._number_behind(prepared)
            self._open_line(end - len(prepared.tail))
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
            self._number, self._is_unended = self._extent.lines, True
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
        if self._line and self._last_offset not in (None, end):
            self._line.forget()
        self._last_offset = chunk.start
        if end == self._extent.size and not chunk.data.endswith(b"\n") and not self._line:
            self._number, self._is_unended = self._extent.lines, True
            self._open_line(end)
        if self._line:
            self._extend_line(prepared.tail, chunk, is_whole=prepared.has_newline or begins_capture)
        self._take_region(prepared)
        if self._is_leading and chunk.newlines < self._start.line:
            self._jump(self._enter_cursor_line())
        if self._is_over:
            return
        if prepared.has_newline and not begins_capture:
            self._number = chunk.newlines + 1
            self._open_line(chunk.start + len(prepared.head))
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

    @property
    def _is_ended(self) -> bool:
        r"""Whether the open line ends with `\n`."""
        return not (self._is_unended and self._number == self._extent.lines)

    def _open_line(self, offset: int) -> None:
        """Begin a line at `offset`; backwards at its end."""
        is_asked = self._number <= self._start.line if self.backwards else self._number >= self._start.line
        backwards, ansi = self.backwards, self._query.ansi
        if self._is_leading or self._findings.is_full or not is_asked:
            self._line = UnsearchedLine(backwards=backwards, ansi=ansi)
        else:
            self._line = SplitLine(
                self._matcher, offset, backwards=backwards, ansi=ansi, is_ended=self._is_ended
            )

    def _extend_line(self, piece: bytes, chunk: Chunk, *, is_whole: bool) -> None:
        """Add to the open line, number `_number`; with `is_whole`, that was all of it."""
        line = self._line
        assert line is not None
        closed = None
        try:
            line.add(piece, utf8=chunk.utf8)
            closed = line.close(is_ended=self._is_ended) if is_whole else None
        except StoppedInside as stopped:
            assert isinstance(line, SplitLine)
            line = self._line = self._stopped_inside(line, piece, stopped)
            closed = line.close(is_ended=self._is_ended) if is_whole else None
        if closed is None or self.wanted is None:
            return
        self._line = None
        if self._is_leading and self._number == self._start.line:
            self._jump(self._enter_cursor_line(closed))
        else:
            self._results.take_line(closed, self._number, is_searched=isinstance(line, SplitLine))

    def _stopped_inside(
        self, line: SplitLine, piece: bytes, stopped: StoppedInside
    ) -> SplitLine | UnsearchedLine:
        """Handle the end of time in the open line. Return what is left of the line to read."""
        if not line.is_enough:
            self._stop_for_time(Cursor(self._number, stopped.offset, stopped.trails))
            return line.shown(piece)
        if not any(self._context):
            self._results.take_line(line.close(is_ended=self._is_ended), self._number, is_searched=True)
            self._ending.stop_behind(self._findings.last_number if self._findings.is_full else self._number)
            self.wanted = None
        return line

    def _skip_rest_of_line(self) -> None:
        """Jump over the rest of an open line if enough of it is known."""
        line = self._line
        if line is None or not line.is_enough:
            return
        if self._is_leading and self._number == self._start.line:
            self._jump(self._enter_cursor_line(line.close(is_ended=True)))
        elif any(self._context) and not line.is_skipped:
            line.is_skipped = True
            if self.backwards:
                self._jump(Wanted(newline=self._number - 1, span=SAMPLE_BYTES))
            elif self._number < self._extent.lines:
                self._jump(Wanted(newline=self._number))
            else:
                self._jump(Wanted(offset=self._extent.size - 1))

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
            self._stop_in_region(region, prepared.chunk, found.reached)

    def _take_leading(self, region: Region) -> None:
        """Take the lines on the near side of the cursor's line; downwards, go on there at the cursor."""
        near, here = near_side(region, self._start.line, backwards=self.backwards)
        if near:
            self._findings.take(near, [])
        if not self.backwards and here <= region.stop:
            end = region.data.find(b"\n", here, region.stop)
            line = region.data[here : end if end >= 0 else region.stop][:SAMPLE_BYTES]
            self._jump(self._enter_cursor_line(LineResult(line, is_utf8=region.source is None)))

    def _stop_in_region(self, region: Region, chunk: Chunk, reached: StopPosition) -> None:
        """Handle the end of time in a region: at the start of a line, backwards at its end, or inside it."""
        position = reached.position
        if position < region.start:
            self._stop_for_time(Cursor(region.number - 1))
            return
        number = region.number + region.data.count(b"\n", region.start, position)
        ansi, backwards = self._query.ansi, self.backwards
        inside = cursor_inside(chunk, number, reached.trails, ansi=ansi, backwards=backwards)
        self._stop_for_time(inside if reached.trails else Cursor(number))

    def _stop_for_time(self, cursor: Cursor) -> None:
        """Search no more; another search goes on at `cursor`. Lines around matches are still read."""
        if not self._ending.stop_for_time(cursor):
            self.wanted = None

    def answer(self) -> Text:
        """Return what was found, once `wanted` is None.

        `start_line` and `end_line` bound the part that was searched. `content` shows the matches as `grep -n`
        does, or with `count` their number.
        """
        return self._results.answer(self._extent, self._start, self._ending)
