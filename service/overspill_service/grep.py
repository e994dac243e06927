"""Searching the lines of a capture, from either end, with bounds on matches, bytes and time.

    search = Search(query, extent)
    while (wanted := search.begin_part()) is not None:   # the first chunk, as `chunks` says
        for chunk in ...:                                # from there on; downwards where search.backwards
            search.feed(chunk)                           # or, over several threads: take(prepare(chunk))
            if search.wanted is None or search.has_jumped:
                break
    answer = search.answer()

`prepare` does the work: it may be called for several chunks at once, from any threads. `take` puts the
results together and is called once for each chunk, in order. Where a search stops early, `next` has a
cursor, which holds all that another search needs to go on behind the last line reported. It always lies
further in the direction of the search, since at least one part of the first line asked for is searched.

Escape sequences are removed before searching unless `ansi`: what is searched is what is shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import UNSET
from overspill.wire import Text, approx_tokens

from overspill_service.chunks import DEFAULT_CAPS, Caps, Wanted, count_newlines, newline_position
from overspill_service.findings import Around, Findings, Region, numbered
from overspill_service.long_line import Trail
from overspill_service.matching import Found, Matcher, Tally
from overspill_service.open_line import MARGIN, SAMPLE, Line, OpenLine, ShownLine, StoppedInside, passed_over
from overspill_service.patterns import Pattern
from overspill_service.scanning import Cursor, Scanner, foreign_cursor

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.wire import GrepQuery

    from overspill_service.chunks import Chunk, Extent
    from overspill_service.matching import Reached
    from overspill_service.scanning import Prepared


_EVERYWHERE: Final = frozenset({"^", "$", ".*"})
"""What matches in every line, as the empty pattern does."""


def never() -> bool:
    return False


def _takes_every_line(query: GrepQuery) -> bool:
    is_everywhere = not query.pattern or (query.pattern in _EVERYWHERE and not query.fixed)
    return is_everywhere and not query.invert


class Search:
    """One search. `wanted` is None once the answer is complete or a bound is reached."""

    def __init__(
        self,
        query: GrepQuery,
        extent: Extent,
        *,
        caps: Caps = DEFAULT_CAPS,
        expired: Callable[[], bool] = never,
    ) -> None:
        """`expired` says that the time is up; it is asked after every part searched, from any thread.

        Raises `InvalidPattern`, and `InvalidParameter` for a cursor that is not one of this search.
        """
        pattern = Pattern.compile(query.pattern, fixed=query.fixed, ignore_case=query.ignore_case)
        self._query, self._extent, self.backwards = query, extent, query.from_end
        self._matcher = Matcher(pattern, invert=query.invert, backwards=query.from_end, expired=expired)
        around = Around(
            query.context if query.before is None else query.before,
            query.context if query.after is None else query.after,
        )
        self._around = Around(0, 0) if query.count else around
        self._findings = Findings(query.max_matches, around, caps, backwards=query.from_end, ansi=query.ansi)
        self._start = self._started(extent)
        self._scanner = Scanner(
            self._matcher, self._start, backwards=query.from_end, ansi=query.ansi, count=query.count
        )
        self._count = 0
        self._line: OpenLine | ShownLine | None = None
        self._number = self._start.line
        """Of the open line."""
        self._low: int | None = None
        """Backwards, where the chunk taken last begins."""
        self._is_unended = False
        r"""Whether the capture is known to end without `\n`."""
        self._next: Cursor | None = None
        self._late: Cursor | None = None
        """Where the time ran out, while only lines around matches are still read."""
        self._is_leading = self._start.offset is not None and self._needs_lead
        """Whether what comes is before the cursor, so that it is shown at most."""
        self.has_jumped = False
        """Whether `wanted` is another place than the end of the chunk taken last."""
        self.wanted = self._begin() if extent.size else None
        if query.count and self._start.offset is None and _takes_every_line(query):
            self._count, self.wanted = self._asked(), None

    def _started(self, extent: Extent) -> Cursor:
        backwards = self.backwards
        if not self._query.cursor:
            return Cursor(max(extent.lines, 1) if backwards else 1)
        cursor = Cursor.parse(self._query.cursor, extent, backwards=backwards)
        try:
            self._matcher.long_search(cursor.trails)
        except ValueError:
            raise foreign_cursor() from None
        return cursor

    def _asked(self) -> int:
        """How many lines there are from that of the cursor on."""
        if not self._extent.lines:
            return 0
        return self._start.line if self.backwards else self._extent.lines + 1 - self._start.line

    @property
    def _needs_lead(self) -> bool:
        """Whether more of the capture is shown than lies behind a cursor inside a line."""
        if self.backwards:
            return bool(self._around.after) and self._start.line < self._extent.lines
        return bool(self._around.before) or (self._query.invert and not self._query.count)

    def _begin(self) -> Wanted:
        line, offset = self._start.line, self._start.offset
        if offset is not None and not self._is_leading:
            return self._enter()
        if not self.backwards:
            return Wanted(newline=max(0, line - 1 - self._around.before))
        last = line + self._around.after
        return Wanted(newline=last) if last < self._extent.lines else Wanted(offset=self._extent.size - 1)

    def _enter(self, beginning: Line | None = None) -> Wanted:
        """Go on inside the line of the cursor, whose `beginning` has been searched."""
        offset = self._start.offset or 0
        self._is_leading, self._low = False, None
        self._number = self._start.line
        self._line = OpenLine(
            self._matcher,
            offset,
            backwards=self.backwards,
            ansi=self._query.ansi,
            trails=self._start.trails,
            beginning=beginning,
        )
        return Wanted(offset=offset - self.backwards)

    def begin_part(self) -> Wanted | None:
        """Where to read from now on; None once the search has ended."""
        self.has_jumped = False
        return self.wanted

    def prepare(self, chunk: Chunk) -> Prepared:
        """Search the lines that lie wholly in a chunk; safe to call from several threads at once.

        Raises `InvalidParameter` where the cursor is not of this capture.
        """
        if self._is_leading:
            return self._scanner.prepare(chunk, 0)
        return self._scanner.prepare(self._scanner.trimmed(chunk), self._findings.room)

    def feed(self, chunk: Chunk) -> None:
        """`take(prepare(chunk))`."""
        self.take(self.prepare(chunk))

    def take(self, prepared: Prepared) -> None:
        """Take the next chunk's results, in the order of the search."""
        if self._is_over:
            return
        if self.backwards:
            self._take_upwards(prepared)
        else:
            self._take_downwards(prepared)
        if self.wanted is not None and self._findings.is_settled:
            self._stop(self._settled_at(prepared.chunk))

    @property
    def _is_over(self) -> bool:
        """Whether no more of this chunk, and of those behind it, is to be taken."""
        return self.wanted is None or self.has_jumped

    def _take_downwards(self, prepared: Prepared) -> None:
        chunk, end = prepared.chunk, prepared.chunk.start + len(prepared.chunk.data)
        if self._line:
            self._number = chunk.newlines + 1
            self._extend(prepared.head, chunk, is_whole=prepared.has_newline)
        self._take_region(prepared)
        if self._is_over:
            return
        if prepared.has_newline or (chunk.start == 0 and self._line is None):
            self._number = self._number_behind(prepared)
            self._open(end - len(prepared.tail))
            self._extend(prepared.tail, chunk, is_whole=False)
        if self._is_over:
            return
        self.wanted = Wanted(offset=end)
        if end == self._extent.size:
            self._end_downwards(chunk)
        else:
            self._skip()

    def _end_downwards(self, chunk: Chunk) -> None:
        if not chunk.data.endswith(b"\n"):
            self._number, self._is_unended = self._extent.lines, True
            self._extend(b"", chunk, is_whole=True)
        if not self._is_over:
            self._end()

    def _number_behind(self, prepared: Prepared) -> int:
        """The number of the line that goes on behind a chunk; of a short one that is searched, a lower bound."""
        chunk = prepared.chunk
        first = chunk.newlines + 1
        if first >= self._start.line and len(prepared.tail) < SAMPLE and not self._findings.is_full:
            return first
        return first + count_newlines(chunk.data, 0, len(chunk.data))

    def _take_upwards(self, prepared: Prepared) -> None:
        chunk, end = prepared.chunk, prepared.chunk.start + len(prepared.chunk.data)
        begins_capture = chunk.start == 0
        if self._low is not None and chunk.start >= self._low:
            return  # taken before the jump
        if self._line and self._low not in (None, end):
            self._line.forget()
        self._low = chunk.start
        if end == self._extent.size and not chunk.data.endswith(b"\n") and not self._line:
            self._number, self._is_unended = self._extent.lines, True
            self._open(end)
        if self._line:
            self._extend(prepared.tail, chunk, is_whole=prepared.has_newline or begins_capture)
        self._take_region(prepared)
        if self._is_leading and chunk.newlines < self._start.line:
            self._jump(self._enter())
        if self._is_over:
            return
        if prepared.has_newline and not begins_capture:
            self._number = chunk.newlines + 1
            self._open(chunk.start + len(prepared.head))
            self._extend(prepared.head, chunk, is_whole=False)
        if self._is_over:
            return
        self.wanted = Wanted(offset=chunk.start - 1)
        if begins_capture:
            self._end()
        else:
            self._skip()

    # --- lines that reach over chunks ---

    @property
    def _is_ended(self) -> bool:
        r"""Whether the open line ends with `\n`."""
        return not (self._is_unended and self._number == self._extent.lines)

    def _open(self, offset: int) -> None:
        """Begin a line at `offset`; backwards at its end."""
        is_asked = self._number <= self._start.line if self.backwards else self._number >= self._start.line
        backwards, ansi = self.backwards, self._query.ansi
        if self._is_leading or self._findings.is_full or not is_asked:
            self._line = ShownLine(backwards=backwards, ansi=ansi)
        else:
            self._line = OpenLine(
                self._matcher, offset, backwards=backwards, ansi=ansi, is_ended=self._is_ended
            )

    def _extend(self, piece: bytes, chunk: Chunk, *, is_whole: bool) -> None:
        """Add to the open line, number `_number`; with `is_whole`, that was all of it."""
        line = self._line
        assert line is not None
        closed = None
        try:
            line.add(piece, utf8=chunk.utf8)
            closed = line.close(is_ended=self._is_ended) if is_whole else None
        except StoppedInside as stopped:
            if line.is_enough and not any(self._around):
                self._take_line(line.close(is_ended=self._is_ended), is_searched=True)
                self._stop(self._behind(self._number))
                return
            if not line.is_enough:
                self._stop_for_time(Cursor(self._number, stopped.offset, stopped.trails))
                self._line = line = line.shown(piece)
            closed = line.close(is_ended=self._is_ended) if is_whole else None
        if closed is None or self.wanted is None:
            return
        self._line = None
        if self._is_leading and self._number == self._start.line:
            self._jump(self._enter(closed))
        else:
            self._take_line(closed, is_searched=isinstance(line, OpenLine))

    def _take_line(self, line: Line, *, is_searched: bool) -> None:
        found = []
        if is_searched and line.at is None and not line.is_sure:
            found = [Found.unsure(0, len(line.data))]
        elif is_searched and (line.at is not None) != self._query.invert:
            found = [Found(0, len(line.data), line.at or 0, line.around)]
        region = Region(line.data, 0, len(line.data), self._number, None, line.is_utf8)
        if not self._query.count:
            self._findings.take(region, found)
        elif found and found[0].is_sure:
            self._count += 1
        elif found:
            self._findings.doubt(self._number)

    def _skip(self) -> None:
        """Jump over the rest of an open line of which enough is known."""
        line = self._line
        if line is None or not line.is_enough:
            return
        if self._is_leading and self._number == self._start.line:
            self._jump(self._enter(line.close(is_ended=True)))
        elif any(self._around) and not line.is_skipped:
            line.is_skipped = True
            if self.backwards:
                self._jump(Wanted(newline=self._number - 1, span=SAMPLE))
            elif self._number < self._extent.lines:
                self._jump(Wanted(newline=self._number))
            else:
                self._jump(Wanted(offset=self._extent.size - 1))

    def _jump(self, wanted: Wanted) -> None:
        self.wanted, self.has_jumped = wanted, True

    # --- lines within a chunk ---

    def _take_region(self, prepared: Prepared) -> None:
        region, found = prepared.region, prepared.found
        if region is None or self._is_over:
            return
        if self._is_leading:
            self._lead(region)
            return
        if isinstance(found, Tally):
            self._count += found.lines
            for _, number in numbered(region, found.unsure):
                self._findings.doubt(number)
        elif not self._query.count:
            self._findings.take(region, found.found if found else [])
        if found and found.reached and not self._findings.is_full:
            self._stop_in(region, prepared.chunk, found.reached)

    def _lead(self, region: Region) -> None:
        """Take the lines on the near side of the cursor's line; downwards, go on there at the cursor."""
        data, start, stop, number = region[:4]
        bound = self._start.line + self.backwards - number
        if bound > data.count(b"\n", start, stop):
            here = stop + 1
        else:
            here = start + newline_position(data[start : stop + 1], bound) + 1 if bound > 0 else start
        if self.backwards:
            region = region._replace(start=here, number=max(number, number + bound))
        else:
            region = region._replace(stop=here - 1)
        if region.start <= region.stop:
            self._findings.take(region, [])
        if not self.backwards and here <= stop:
            end = data.find(b"\n", here, stop)
            line = data[here : end if end >= 0 else stop][:SAMPLE]
            self._jump(self._enter(Line(line, is_utf8=region.source is None)))

    # --- where it ends ---

    def _behind(self, line: int) -> Cursor:
        return Cursor(line - 1 if self.backwards else line + 1)

    def _settled_at(self, chunk: Chunk) -> Cursor:
        """Where another search goes on, since this one has found enough."""
        if self._late and not self._findings.has_given_up:
            return self._late
        if not self._query.count:
            return self._behind(self._findings.last_number)
        newlines = 0 if self.backwards else count_newlines(chunk.data, 0, len(chunk.data))
        return Cursor(chunk.newlines + 1 + newlines)

    def _stop(self, cursor: Cursor) -> None:
        """End the search; another goes on at `cursor`, if there is anything left."""
        self.wanted = None
        self._next = cursor if 1 <= cursor.line <= self._extent.lines else None

    def _end(self) -> None:
        """End the search at the end of the capture, or its start."""
        self.wanted = None
        if self._late and not self._findings.has_given_up:
            self._stop(self._late)
        elif self._findings.is_full and not self._query.count:
            self._stop(self._behind(self._findings.last_number))

    def _stop_for_time(self, cursor: Cursor) -> None:
        """Find no more: another search goes on at `cursor`. Lines around matches are still read."""
        if self._findings.is_lacking:
            self._late, self._findings.is_full = cursor, True
        else:
            self._stop(cursor)

    def _stop_in(self, region: Region, chunk: Chunk, reached: Reached) -> None:
        """Time ran out in a region: at a line's start (backwards: its end), or inside a line."""
        position = reached.position
        if position < region.start:
            self._stop_for_time(Cursor(region.number - 1))
            return
        number = region.number + region.data.count(b"\n", region.start, position)
        inside = self._inside(chunk, number, reached.trails) if reached.trails else Cursor(number)
        self._stop_for_time(inside)

    def _inside(self, chunk: Chunk, number: int, trails: tuple[Trail, ...]) -> Cursor:
        """A cursor in a line that lies in this chunk, behind what its trails need no more."""
        before = number - 1 - chunk.newlines
        start = newline_position(chunk.data, before) + 1 if before else 0
        line = chunk.data[start : chunk.data.find(b"\n", start)]
        done = min(trail.distance for trail in trails) - MARGIN
        position, passed = passed_over(
            line, done, ansi=self._query.ansi, utf8=chunk.utf8, backwards=self.backwards
        )
        left = tuple(Trail(found, max(0, distance - passed)) for found, distance in trails)
        return Cursor(number, chunk.start + start + position, left)

    def answer(self) -> Text:
        """What was found, once `wanted` is None.

        `start_line` and `end_line` bound the part that was searched; `content` shows the matches as
        `grep -n` does, or with `count` how many there are.
        """
        findings, counting = self._findings, self._query.count
        content = str(self._count) if counting else findings.text()
        first, last = self._searched()
        return Text(
            content=content,
            start_line=first,
            end_line=last,
            total_lines=self._extent.lines,
            total_bytes=self._extent.size,
            mode="grep",
            truncated=self._next is not None or findings.is_cut,
            approx_tokens=approx_tokens(len(content.encode())),
            next={"cursor": self._next.text(backwards=self.backwards)} if self._next else None,
            replaced=findings.replaced,
            matches=findings.matches(),
            match_count=self._count if counting else len(findings),
            incomplete=sorted(findings.unsure) or UNSET,
        )

    def _searched(self) -> tuple[int, int]:
        """The first and the last line that were searched."""
        cursor = self._next or Cursor(0 if self.backwards else self._extent.lines + 1)
        line = cursor.line
        if self.backwards:
            return (line if cursor.offset else line + 1), min(self._start.line, self._extent.lines)
        return self._start.line, (line if cursor.offset else line - 1)
