"""Collect what a grep finds: matching lines with the lines around them, within the answer's caps.

Regions of whole lines come in the order of the search. The lines around a match may be in other regions.
Those on the side that was already searched are remembered. The others are added when they come.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.reading.regions import lines_after, lines_before, numbered
from overspill.reading.text import cut_after, cut_before, decode, written_at
from overspill.wire import Match

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from overspill.reading.chunks import Caps, ContextLines
    from overspill.reading.matching import MatchedLine
    from overspill.reading.regions import Region

CUT_MARK: Final = "…"
"""The mark where a line was cut."""
_REPLACED: Final = "\ufffd"
_PREFIX_BYTES: Final = 8
"""About how many bytes a line's number and its mark take in the text of an answer."""


class _Shown(NamedTuple):
    """One line as it is shown, and whether U+FFFD stands in it for bytes that are not UTF-8."""

    text: str
    has_replaced: bool
    is_rewritten: bool
    r"""Whether more was written to it, before or after a `\r`."""

    @property
    def cost(self) -> int:
        """Bytes that it takes in an answer."""
        return len(self.text.encode()) + _PREFIX_BYTES


@dataclass
class _Hit:
    number: int
    line: _Shown
    before: list[_Shown]
    after: list[_Shown]
    lacking: int
    """Lines around it that later regions may hold."""

    @property
    def shown(self) -> list[_Shown]:
        return [*self.before, self.line, *self.after]


class Findings:
    """Collects matches until `is_full`. It `is_settled` once the lines around them are complete too."""

    def __init__(
        self,
        limit: int,
        context: ContextLines,
        caps: Caps,
        *,
        backwards: bool,
        invert: bool,
        is_terminal: bool,
    ) -> None:
        r"""`is_terminal`: for a line that `\r` has rewritten, only text that was written at once is shown."""
        self._limit, self._context, self._backwards = limit, context, backwards
        self._line_size, self._invert, self._is_terminal = caps.line_size, invert, is_terminal
        self._bytes_left, self._lines_left = caps.size, caps.lines
        self._hits: list[_Hit] = []
        self._edge: list[_Shown] = []
        self._is_spent = False
        self.is_full: bool = False
        self.has_given_up: bool = False
        """Whether matches were dropped, for the next answer to find."""
        self.is_cut: bool = False
        """Whether lines around a match are missing, because the answer has no room for them."""
        self.unsure: list[int] = []
        """Numbers of lines that may match."""

    def __len__(self) -> int:
        return len(self._hits)

    @property
    def replaced(self) -> bool:
        """Whether the shown lines have U+FFFD in place of bytes that are not UTF-8."""
        return any(line.has_replaced for hit in self._hits for line in hit.shown)

    @property
    def rewritten(self) -> bool:
        """Whether overwritten text is left out of the shown lines."""
        return any(line.is_rewritten for hit in self._hits for line in hit.shown)

    @property
    def matches_left(self) -> int:
        """The number of matches that may still be added."""
        return 0 if self.is_full else self._limit - len(self._hits)

    @property
    def is_settled(self) -> bool:
        """Return whether no later region can change the answer."""
        return self._is_spent or (self.is_full and not self.is_lacking)

    @property
    def is_lacking(self) -> bool:
        """Whether later regions may hold lines around a match."""
        return any(hit.lacking for hit in self._hits)

    @property
    def last_number(self) -> int:
        """The number of the last reported line. If the findings are full, there is one."""
        numbers = [hit.number for hit in self._hits[-1:]] + self.unsure[-1:]
        return min(numbers) if self._backwards else max(numbers)

    def take(self, region: Region, lines: Iterable[MatchedLine]) -> None:
        """Add what was found in the next region, in the order of the search."""
        self._complete(region)
        for line, number in numbered(region, lines):
            if self.is_full:
                break
            if line.is_sure:
                self._add(region, line, number)
            else:
                self.doubt(number)
        self._remember(region)

    def doubt(self, number: int) -> None:
        """Note a line that may match; it takes room for one line."""
        self.unsure.append(number)
        self._lines_left -= 1
        self.is_full = self.is_full or self._lines_left <= 0

    def _add(self, region: Region, line: MatchedLine, number: int) -> None:
        if line.excerpt is None:
            data, at = region.data[line.start : line.stop], line.at - line.start
        else:
            data, at = line.excerpt, line.at
        hit = _Hit(number, self._clip(region, data, number, None if self._invert else at), [], [], 0)
        if self._hits and not self._fits(hit.line):
            self.is_full = True
            return
        self._spend(hit.line)
        self._hits.append(hit)
        self._surround(hit, region, line)
        self.is_full = self.is_full or len(self._hits) == self._limit

    def _surround(self, hit: _Hit, region: Region, line: MatchedLine) -> None:
        """Add the lines around a match that are known, the nearest first."""
        before = self._before(region, line.start, hit.number, self._context.before)
        after = self._after(region, line.stop, hit.number, self._context.after)
        lacking_before, lacking_after = self._context.before - len(before), self._context.after - len(after)
        if self._backwards:
            after += self._edge[:lacking_after]
            hit.lacking = lacking_before
        else:
            before = self._edge[len(self._edge) - min(lacking_before, len(self._edge)) :] + before
            hit.lacking = lacking_after
        self._extend(hit, before, after)

    def _complete(self, region: Region) -> None:
        """Add lines of this region to matches at the edge of the last one."""
        for hit in [hit for hit in self._hits if hit.lacking]:
            if self._is_spent or not hit.lacking:
                break
            before = self._last_of(region, hit.lacking) if self._backwards else []
            after = [] if self._backwards else self._first_of(region, hit.lacking)
            hit.lacking -= len(before) + len(after)
            self._extend(hit, before, after)

    def _extend(self, hit: _Hit, before: list[_Shown], after: list[_Shown]) -> None:
        """Add lines around a match. If there is no room, drop the last matches; cut those of the first."""
        while not self._fits(*before, *after) and len(self._hits) > 1:
            given_up = self._give_up()
            if given_up is hit:
                return
        hit.before = self._affordable(before[::-1])[::-1] + hit.before
        hit.after = hit.after + self._affordable(after)

    def _give_up(self) -> _Hit:
        """Drop the last match, for the next answer to find."""
        hit = self._hits.pop()
        self._spend(*hit.shown, by=-1)
        hit.lacking, self.is_full, self.has_given_up = 0, True, True
        last = self._hits[-1].number
        self.unsure = [number for number in self.unsure if (number > last) == self._backwards]
        return hit

    def _remember(self, region: Region) -> None:
        if self._backwards and self._context.after:
            lines = self._first_of(region, self._context.after)
            self._edge = (lines + self._edge)[: self._context.after]
        elif not self._backwards and self._context.before:
            lines = self._last_of(region, self._context.before)
            self._edge = (self._edge + lines)[-self._context.before :]

    def _first_of(self, region: Region, count: int) -> list[_Shown]:
        return self._after(region, region.start - 1, region.number - 1, count)

    def _last_of(self, region: Region, count: int) -> list[_Shown]:
        number = region.number + region.data.count(b"\n", region.start, region.stop) + 1
        return self._before(region, region.stop + 1, number, count)

    def _before(self, region: Region, position: int, number: int, count: int) -> list[_Shown]:
        """Return up to `count` lines before the line that begins at `position` and has this number."""
        spans = lines_before(region, position, count)
        return self._clipped(region, spans, number - len(spans))

    def _after(self, region: Region, position: int, number: int, count: int) -> list[_Shown]:
        """Return up to `count` lines behind the line that stops at `position` and has this number."""
        return self._clipped(region, lines_after(region, position, count), number + 1)

    def _clipped(self, region: Region, spans: list[tuple[int, int]], first: int) -> list[_Shown]:
        """Return these lines of a region, of which the first has the number `first`."""
        lines = (region.data[start:stop] for start, stop in spans)
        return [self._clip(region, line, number, None) for number, line in enumerate(lines, first)]

    def _affordable(self, lines: list[_Shown]) -> list[_Shown]:
        """Return the first of these lines that the answer has room for. If one has none, end the search."""
        taken = []
        for line in lines:
            if not self._fits(line):
                self.is_full = self._is_spent = self.is_cut = True
                break
            self._spend(line)
            taken.append(line)
        return taken

    def _fits(self, *lines: _Shown) -> bool:
        return self._lines_left >= len(lines) and self._bytes_left >= sum(line.cost for line in lines)

    def _spend(self, *lines: _Shown, by: int = 1) -> None:
        self._lines_left -= by * len(lines)
        self._bytes_left -= by * sum(line.cost for line in lines)

    def _clip(self, region: Region, line: bytes, number: int, at: int | None) -> _Shown:
        """Return a line as text. A long line is cut to the part around `at`, with `CUT_MARK` at its cuts."""
        low, high = written_at(line, at) if self._is_terminal else (0, len(line))
        start, stop = low, high
        if high - low > self._line_size:
            start = min(max(low, (at or low) - self._line_size // 2), high - self._line_size)
            start, stop = cut_after(line, start), cut_before(line, start + self._line_size)
        text = decode(line[start:stop], ansi=True).text
        return _Shown(
            CUT_MARK * (start > low) + text + CUT_MARK * (stop < high),
            has_replaced=_REPLACED in text and region.has_replaced(number),
            is_rewritten=self._is_terminal and len(line.strip(b"\r")) > high - low,
        )

    def matches(self) -> list[Match]:
        """Return the matches in the form of the answer, in the order of the lines."""
        return [
            Match(
                line_number=hit.number,
                line=hit.line.text,
                before=[line.text for line in hit.before],
                after=[line.text for line in hit.after],
            )
            for hit in self._hits
        ]

    def text(self) -> str:
        """Return the matches as `grep -n` shows them: `12:match`, `11-around`, `--` between groups.

        Backwards, the last group comes first, and the lines of a group stay in their order.
        """
        groups = list(_groups(dict(self._marked())))
        separator = "--\n" if any(self._context) else ""
        return separator.join("".join(group) for group in (groups[::-1] if self._backwards else groups))

    def _marked(self) -> Iterator[tuple[int, str]]:
        for hit in self._hits:
            for number, line in enumerate(hit.before, hit.number - len(hit.before)):
                yield number, f"{number}-{line.text}\n"
            for number, line in enumerate(hit.after, hit.number + 1):
                yield number, f"{number}-{line.text}\n"
        for hit in self._hits:
            yield hit.number, f"{hit.number}:{hit.line.text}\n"


def _groups(lines: dict[int, str]) -> Iterator[list[str]]:
    """Yield runs of consecutive lines."""
    group: list[str] = []
    for number in sorted(lines):
        if group and number - 1 not in lines:
            yield group
            group = []
        group.append(lines[number])
    if group:
        yield group
