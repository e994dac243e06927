"""Runs of whole lines, normalised for searching and showing, with their bounds and numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from overspill.reading.chunks import newline_position
from overspill.reading.text import decode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from overspill.reading.chunks import Chunk
    from overspill.reading.matching import MatchedLine


class Region(NamedTuple):
    r"""Whole lines: `data[start:stop]`, where `stop` has the last `\n` or is the end of `data`."""

    data: bytes
    start: int
    stop: int
    number: int
    """The number of the first line."""
    source: Chunk | None = None
    """The chunk that the lines were made from, if it is not all UTF-8."""
    is_utf8: bool = True
    """Whether no bytes of these lines were replaced, if there is no `source`."""

    def has_replaced(self, number: int) -> bool:
        """Return whether bytes of this line that are not UTF-8 were replaced."""
        if self.source is None:
            return not self.is_utf8
        data, before = self.source.data, number - 1 - self.source.newlines
        start = newline_position(data, before) + 1 if before else 0
        stop = data.find(b"\n", start)
        return decode(data[start : stop if stop >= 0 else len(data)]).replaced


def numbered(region: Region, lines: Iterable[MatchedLine]) -> Iterator[tuple[MatchedLine, int]]:
    """Each line with its number; the lines come in one direction."""
    position, number = region.start, region.number
    for line in lines:
        low, high = sorted((position, line.start))
        newlines = region.data.count(b"\n", low, high)
        number += newlines if position <= line.start else -newlines
        position = line.start
        yield line, number


def near_side(region: Region, line: int, *, backwards: bool) -> tuple[Region | None, int]:
    """Return the lines before `line` (backwards: after it), and where the lines beyond that bound begin."""
    data, start, stop, number = region[:4]
    bound = line + backwards - number
    if bound > data.count(b"\n", start, stop):
        here = stop + 1
    else:
        here = start + newline_position(data[start : stop + 1], bound) + 1 if bound > 0 else start
    if backwards:
        near = region._replace(start=here, number=max(number, number + bound))
    else:
        near = region._replace(stop=here - 1)
    return (near if near.start <= near.stop else None), here


def lines_before(region: Region, position: int, count: int) -> list[tuple[int, int]]:
    """Return the last `count` lines of a region that end before `position`, a line's start."""
    spans: list[tuple[int, int]] = []
    stop = position - 1
    while stop >= region.start and len(spans) < count:
        start = region.data.rfind(b"\n", region.start, stop) + 1 or region.start
        spans.append((start, stop))
        stop = start - 1
    return spans[::-1]


def lines_after(region: Region, position: int, count: int) -> list[tuple[int, int]]:
    """Return the first `count` lines of a region after `position`, a line's stop."""
    spans: list[tuple[int, int]] = []
    start = position + 1
    while start <= region.stop and len(spans) < count:
        stop = region.data.find(b"\n", start, region.stop)
        if stop < 0:
            stop = region.stop
        spans.append((start, stop))
        start = stop + 1
    return spans
