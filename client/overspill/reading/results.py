"""The results of a search so far: the lines that match, or the number of these lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from overspill.reading.findings import Findings
from overspill.reading.matching import MatchCount, MatchedLine
from overspill.reading.regions import Region, numbered
from overspill.reading.search_bounds import context_lines
from overspill.wire import Text, approx_tokens

if TYPE_CHECKING:
    from overspill.reading.chunks import Caps, ContextLines, Extent
    from overspill.reading.matching import MatchedLines
    from overspill.reading.scanning import Cursor
    from overspill.reading.search_bounds import Ending
    from overspill.reading.split_line import LineResult
    from overspill.wire import GrepQuery


class Results:
    """The results of one search, in the order in which it finds them.

    `findings` has the lines that are shown. `context` says how many lines are shown around each match. A
    query that only counts lines has their number in `count` instead.
    """

    def __init__(self, query: GrepQuery, caps: Caps, *, is_terminal: bool) -> None:
        self._query = query
        self.context: ContextLines = context_lines(query)
        self.findings: Findings = Findings(
            query.max_matches,
            self.context,
            caps,
            backwards=query.from_end,
            invert=query.invert,
            is_terminal=is_terminal and not query.ansi,
        )
        self.count: int = 0

    def take_line(self, line: LineResult, number: int, *, is_searched: bool) -> None:
        """Take a line that reached over chunks. One that was not searched may be shown around a match."""
        found = []
        if is_searched and line.at is None and not line.is_sure:
            found = [MatchedLine.unsure(0, len(line.data))]
        elif is_searched and (line.at is not None) != self._query.invert:
            found = [MatchedLine(0, len(line.data), line.at or 0, line.excerpt)]
        region = Region(line.data, 0, len(line.data), number, None, line.is_utf8)
        if not self._query.count:
            self.findings.take(region, found)
        elif found and found[0].is_sure:
            self.count += 1
        elif found:
            self.findings.doubt(number)

    def take_region(self, region: Region, found: MatchedLines | MatchCount | None) -> None:
        """Take the lines that lie wholly in a chunk, and which of them match."""
        if isinstance(found, MatchCount):
            self.count += found.lines
            for _, number in numbered(region, found.unsure):
                self.findings.doubt(number)
        elif not self._query.count:
            self.findings.take(region, found.found if found else [])

    def answer(self, extent: Extent, start: Cursor, ending: Ending) -> Text:
        """Return the answer of a search from `start` on."""
        findings, following = self.findings, ending.cursor
        content = str(self.count) if self._query.count else findings.text()
        first, last = ending.searched(start)
        return Text(
            content=content,
            start_line=first,
            end_line=last,
            total_lines=extent.lines,
            total_bytes=extent.size,
            mode="grep",
            truncated=following is not None or findings.is_cut,
            approx_tokens=approx_tokens(len(content.encode())),
            next={"cursor": following.text(backwards=self._query.from_end)} if following else None,
            replaced=findings.replaced,
            rewritten=findings.rewritten or UNSET,
            matches=findings.matches(),
            match_count=self.count if self._query.count else len(findings),
            incomplete=sorted(findings.unsure) or UNSET,
        )
