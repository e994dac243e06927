"""What a grep has found: lines with those around them, within the answer's caps.

Regions of whole lines come in the order of the search. The lines around a match may lie in other
regions: those on the side that has been searched are remembered, the others are added as they come.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.wire import Match

from overspill_service.text import cut_after, cut_before, decode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from overspill_service.chunks import Caps
    from overspill_service.matching import Found

CUT: Final = "…"
"""Stands where a line was cut."""
_PREFIX: Final = 8
"""Bytes that a line's number and its mark take in the text of an answer, about."""


class Region(NamedTuple):
    r"""Whole lines: `data[start:stop]`, where `stop` has the last `\n` or is the end of `data`."""

    data: bytes
    start: int
    stop: int
    number: int
    """Of the first line."""


class Around(NamedTuple):
    """How many lines before and after each match are to be given."""

    before: int
    after: int


@dataclass
class _Hit:
    number: int
    line: str
    before: list[str]
    after: list[str]
    lacking: int
    """Lines around it that regions still to come may hold."""


class Findings:
    """Collects matches until `is_full`; `is_settled` once the lines around them are complete too."""

    def __init__(self, limit: int, around: Around, caps: Caps, *, backwards: bool, ansi: bool) -> None:
        self._limit, self._around, self._backwards = limit, around, backwards
        self._line_size, self._ansi = caps.line_size, ansi
        self._room, self._lines_left = caps.size, caps.lines
        self._hits: list[_Hit] = []
        self._edge: list[str] = []
        self._is_spent = False
        self.is_full = False
        self.replaced = False

    def __len__(self) -> int:
        return len(self._hits)

    @property
    def room(self) -> int:
        """How many more matches may be added."""
        return 0 if self.is_full else self._limit - len(self._hits)

    @property
    def is_settled(self) -> bool:
        return self._is_spent or (self.is_full and not any(hit.lacking for hit in self._hits))

    @property
    def last_number(self) -> int:
        """The line number of the match found last."""
        return self._hits[-1].number

    def take(self, region: Region, lines: Iterable[Found]) -> None:
        """Add what was found in the next region, in the order of the search."""
        self._complete(region)
        position, number = region.start, region.number
        for line in lines:
            if self.is_full:
                break
            low, high = sorted((position, line.start))
            newlines = region.data.count(b"\n", low, high)
            number += newlines if position <= line.start else -newlines
            position = line.start
            self._add(region, line, number)
        self._remember(region)

    def _add(self, region: Region, line: Found, number: int) -> None:
        text = self._clip(region.data[line.start : line.stop], line.at - line.start)
        if self._hits and not self._fits(text):
            self.is_full = True
            return
        self._spend(text)
        hit = _Hit(number, text, [], [], 0)
        self._hits.append(hit)
        self._surround(hit, region, line)
        self.is_full = self.is_full or len(self._hits) == self._limit

    def _surround(self, hit: _Hit, region: Region, line: Found) -> None:
        before = self._texts(region, _before(region, line.start, self._around.before))
        after = self._texts(region, _after(region, line.stop, self._around.after))
        lacking_before, lacking_after = self._around.before - len(before), self._around.after - len(after)
        if self._backwards:
            after += self._edge[:lacking_after]
            hit.lacking = lacking_before
        else:
            before = self._edge[len(self._edge) - min(lacking_before, len(self._edge)) :] + before
            hit.lacking = lacking_after
        hit.before = self._affordable(before[::-1])[::-1]
        hit.after = self._affordable(after)

    def _complete(self, region: Region) -> None:
        """Add lines of this region to matches at the edge of the last one."""
        for hit in self._hits:
            if not hit.lacking:
                continue
            if self._backwards:
                texts = self._texts(region, _before(region, region.stop + 1, hit.lacking))
                hit.before = self._affordable(texts[::-1])[::-1] + hit.before
            else:
                texts = self._texts(region, _after(region, region.start - 1, hit.lacking))
                hit.after += self._affordable(texts)
            hit.lacking -= len(texts)

    def _remember(self, region: Region) -> None:
        if self._backwards and self._around.after:
            texts = self._texts(region, _after(region, region.start - 1, self._around.after))
            self._edge = (texts + self._edge)[: self._around.after]
        elif not self._backwards and self._around.before:
            texts = self._texts(region, _before(region, region.stop + 1, self._around.before))
            self._edge = (self._edge + texts)[-self._around.before :]

    def _texts(self, region: Region, spans: Iterable[tuple[int, int]]) -> list[str]:
        return [self._clip(region.data[start:stop], 0) for start, stop in spans]

    def _affordable(self, texts: list[str]) -> list[str]:
        """The first of these that the answer has room for; where it has not, the search ends."""
        taken = []
        for text in texts:
            if not self._fits(text):
                self.is_full = self._is_spent = True
                break
            self._spend(text)
            taken.append(text)
        return taken

    def _fits(self, text: str) -> bool:
        return self._lines_left > 0 and self._room >= len(text.encode()) + _PREFIX

    def _spend(self, text: str) -> None:
        self._lines_left -= 1
        self._room -= len(text.encode()) + _PREFIX

    def _clip(self, line: bytes, at: int) -> str:
        """A line without its end as text; of a long one the part around `at`, with `CUT` at its cuts."""
        line = line.removesuffix(b"\r")
        start, stop = 0, len(line)
        if stop > self._line_size:
            start = min(max(0, at - self._line_size // 2), stop - self._line_size)
            start, stop = cut_after(line, start), cut_before(line, start + self._line_size)
        decoded = decode(line[start:stop], ansi=self._ansi)
        self.replaced = self.replaced or decoded.replaced
        return CUT * (start > 0) + decoded.text + CUT * (stop < len(line))

    def matches(self) -> list[Match]:
        return [
            Match(line_number=hit.number, line=hit.line, before=hit.before, after=hit.after)
            for hit in self._hits
        ]

    def text(self) -> str:
        """The matches as `grep -n` shows them: `12:match`, `11-around`, `--` between groups.

        Backwards the groups come last first; the lines of one stay in their order.
        """
        groups = list(_groups(dict(self._marked())))
        separator = "--\n" if any(self._around) else ""
        return separator.join("".join(group) for group in (groups[::-1] if self._backwards else groups))

    def _marked(self) -> Iterator[tuple[int, str]]:
        for hit in self._hits:
            for number, text in enumerate(hit.before, hit.number - len(hit.before)):
                yield number, f"{number}-{text}\n"
            for number, text in enumerate(hit.after, hit.number + 1):
                yield number, f"{number}-{text}\n"
        for hit in self._hits:
            yield hit.number, f"{hit.number}:{hit.line}\n"


def _groups(lines: dict[int, str]) -> Iterator[list[str]]:
    """Runs of consecutive lines."""
    group: list[str] = []
    for number in sorted(lines):
        if group and number - 1 not in lines:
            yield group
            group = []
        group.append(lines[number])
    if group:
        yield group


def _before(region: Region, position: int, count: int) -> list[tuple[int, int]]:
    """The last `count` lines of a region that end before `position`, a line's start."""
    spans: list[tuple[int, int]] = []
    stop = position - 1
    while stop >= region.start and len(spans) < count:
        start = region.data.rfind(b"\n", region.start, stop) + 1 or region.start
        spans.append((start, stop))
        stop = start - 1
    return spans[::-1]


def _after(region: Region, position: int, count: int) -> list[tuple[int, int]]:
    """The first `count` lines of a region behind `position`, a line's stop."""
    spans: list[tuple[int, int]] = []
    start = position + 1
    while start <= region.stop and len(spans) < count:
        stop = region.data.find(b"\n", start, region.stop)
        if stop < 0:
            stop = region.stop
        spans.append((start, stop))
        start = stop + 1
    return spans
