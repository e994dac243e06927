"""Searching the lines of a capture, from either end, with bounds on matches, bytes and time.

    search = Search(query, extent)
    while search.wanted is not None:           # the first chunk, as `chunks` says
        for chunk in ...:                      # from there on; downwards where search.backwards
            search.feed(chunk)                 # or, over several threads: take(prepare(chunk))
            if search.wanted is None:
                break
    answer = search.answer()

`prepare` does the work: it may be called for several chunks at once, from any threads. `take` puts the
results together and is called once for each chunk, in order. Where a search stops early, `next` has a
cursor, which holds all that another search needs to go on behind the last line reported.

Escape sequences are removed before searching unless `ansi`: what is searched is what is shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from overspill.wire import Text, approx_tokens

from overspill_service.chunks import DEFAULT_CAPS, Caps, Wanted
from overspill_service.findings import Around, Findings, Region
from overspill_service.matching import Found, Matcher, OutOfTime
from overspill_service.open_line import OpenLine
from overspill_service.patterns import Pattern
from overspill_service.scanning import Cursor, Scanner

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.wire import GrepQuery

    from overspill_service.chunks import Chunk, Extent
    from overspill_service.open_line import Line
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
        """`expired` says that the time is up; it is asked after every 64 KiB, from any thread.

        Raises `InvalidPattern`, and `InvalidParameter` for a cursor that is not one of this search.
        """
        pattern = Pattern.compile(query.pattern, fixed=query.fixed, ignore_case=query.ignore_case)
        self._query, self._extent, self.backwards = query, extent, query.from_end
        self._matcher = Matcher(pattern, invert=query.invert, backwards=query.from_end, expired=expired)
        around = Around(
            query.context if query.before is None else query.before,
            query.context if query.after is None else query.after,
        )
        self._findings = Findings(query.max_matches, around, caps, backwards=query.from_end, ansi=query.ansi)
        self._start = Cursor(max(extent.lines, 1) if query.from_end else 1)
        if query.cursor:
            self._start = Cursor.parse(query.cursor, extent, backwards=query.from_end)
        self._scanner = Scanner(
            self._matcher, self._start, backwards=query.from_end, ansi=query.ansi, count=query.count
        )
        self._count = 0
        self._open: OpenLine | None = None
        self._number = self._start.line
        self._next: Cursor | None = None
        self.wanted = self._begin(around) if extent.size else None
        if query.count and self._start.offset is None and _takes_every_line(query):
            self._count, self.wanted = self._asked(), None

    def _asked(self) -> int:
        """How many lines there are from that of the cursor on."""
        if not self._extent.lines:
            return 0
        return self._start.line if self.backwards else self._extent.lines + 1 - self._start.line

    def _begin(self, around: Around) -> Wanted:
        line, offset = self._start
        if offset is not None:
            self._open = OpenLine(self._matcher, offset, backwards=self.backwards, is_part=True)
            return Wanted(offset=offset - 1 if self.backwards else offset)
        if not self.backwards:
            return Wanted(newline=max(0, line - 1 - around.before))
        last = line + around.after
        return Wanted(newline=last) if last < self._extent.lines else Wanted(offset=self._extent.size - 1)

    def prepare(self, chunk: Chunk) -> Prepared:
        """Search the lines that lie wholly in a chunk; safe to call from several threads at once.

        Raises `InvalidParameter` where the cursor is not of this capture.
        """
        return self._scanner.prepare(chunk, self._findings.room)

    def feed(self, chunk: Chunk) -> None:
        """`take(prepare(chunk))`."""
        self.take(self.prepare(chunk))

    def take(self, prepared: Prepared) -> None:
        """Take the next chunk's results, in the order of the search."""
        if self.wanted is None:
            return
        try:
            if self.backwards:
                self._take_upwards(prepared)
            else:
                self._take_downwards(prepared)
        except OutOfTime as error:
            self._stop_inside(error.position)
        if self.wanted is not None and self._findings.is_settled:
            self._stop(self._behind(self._findings.last_number))

    def _take_downwards(self, prepared: Prepared) -> None:
        chunk, end = prepared.chunk, prepared.chunk.start + len(prepared.chunk.data)
        begins_capture = chunk.start == 0
        if self._open and not begins_capture:
            self._number = chunk.newlines + 1
            self._extend(prepared.head, chunk, is_whole=prepared.has_newline)
        self._take_region(prepared)
        if self.wanted is None:
            return
        if prepared.has_newline or begins_capture:
            begin = chunk.start + chunk.data.rfind(b"\n") + 1
            self._open = OpenLine(self._matcher, begin, backwards=False)
            self._extend(prepared.tail, chunk, is_whole=False)
        self.wanted = Wanted(offset=end)
        if end == self._extent.size:
            self._number = self._extent.lines
            if not chunk.data.endswith(b"\n"):
                self._extend(b"", chunk, is_whole=True)
            self._end()

    def _take_upwards(self, prepared: Prepared) -> None:
        chunk, end = prepared.chunk, prepared.chunk.start + len(prepared.chunk.data)
        begins_capture = chunk.start == 0
        if end == self._extent.size and not chunk.data.endswith(b"\n") and not self._open:
            self._open, self._number = OpenLine(self._matcher, end, backwards=True), self._extent.lines
        if self._open:
            self._extend(prepared.tail, chunk, is_whole=prepared.has_newline or begins_capture)
        self._take_region(prepared)
        if self.wanted is None:
            return
        if prepared.has_newline and not begins_capture:
            self._open = OpenLine(self._matcher, chunk.start + chunk.data.find(b"\n"), backwards=True)
            self._number = chunk.newlines + 1
            self._extend(prepared.head, chunk, is_whole=False)
        self.wanted = Wanted(offset=chunk.start - 1)
        if begins_capture:
            self._end()

    def _extend(self, piece: bytes, chunk: Chunk, *, is_whole: bool) -> None:
        """Add to the open line, number `_number`; with `is_whole`, that was all of it."""
        assert self._open is not None
        self._open.add(piece, utf8=chunk.utf8)
        if is_whole:
            line, self._open = self._open.close(), None
            self._take_line(line)

    def _take_line(self, line: Line) -> None:
        is_asked = self._number <= self._start.line if self.backwards else self._number >= self._start.line
        is_wanted = is_asked and (line.at is not None) != self._query.invert
        found = [Found(0, len(line.data), line.at or 0)] if is_wanted else []
        self._absorb(Region(line.data, 0, len(line.data), self._number), found, len(found))

    def _take_region(self, prepared: Prepared) -> None:
        region = prepared.region
        if region is None:
            return
        self._absorb(region, prepared.found, prepared.matched)
        if prepared.reached is not None and not self._findings.is_full:
            self._stop_in(region, prepared.chunk, prepared.reached)

    def _absorb(self, region: Region, found: list[Found], count: int) -> None:
        self._count += count
        if not self._query.count:
            self._findings.take(region, found)

    # --- where it ends ---

    def _behind(self, line: int) -> Cursor:
        return Cursor(line - 1 if self.backwards else line + 1)

    def _stop(self, cursor: Cursor) -> None:
        """End the search; another goes on at `cursor`, if there is anything left."""
        self.wanted = None
        self._next = cursor if 1 <= cursor.line <= self._extent.lines else None

    def _end(self) -> None:
        """End the search at the end of the capture, or its start."""
        self.wanted = None
        if self._findings.is_full:
            self._stop(self._behind(self._findings.last_number))

    def _stop_in(self, region: Region, chunk: Chunk, position: int) -> None:
        """Time ran out at a position of a region: at a line's start (backwards: its end), or inside one."""
        data = region.data
        if position < region.start:
            self._stop(Cursor(region.number - 1))
            return
        number = region.number + data.count(b"\n", region.start, position)
        if self.backwards:
            is_inside = data[position : position + 1] != b"\n"
            offset = chunk.start + len(chunk.data) - (len(data) - position)
        else:
            is_inside = position > region.start and data[position - 1 : position] != b"\n"
            offset = chunk.start + position
        self._stop(Cursor(number, offset if is_inside else None))

    def _stop_inside(self, offset: int) -> None:
        """Time ran out in the open line."""
        found = self._open.found if self._open else None
        if found is None:
            self._stop(Cursor(self._number, offset))
            return
        self._take_line(found)
        self._stop(self._behind(self._number))

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
            truncated=self._next is not None,
            approx_tokens=approx_tokens(len(content.encode())),
            next={"cursor": self._next.text(backwards=self.backwards)} if self._next else None,
            replaced=findings.replaced,
            matches=findings.matches(),
            match_count=self._count if counting else len(findings),
        )

    def _searched(self) -> tuple[int, int]:
        """The first and the last line that were searched."""
        line, offset = self._next or (0 if self.backwards else self._extent.lines + 1, None)
        if self.backwards:
            return (line if offset else line + 1), min(self._start.line, self._extent.lines)
        return self._start.line, (line if offset else line - 1)
