"""Which parts of a text are searched: all of it, or its ends and samples of the rest if it is long."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from overspill.previews.excerpt import Excerpt

_NEAR: Final = 32 * 1024
_SHORT: Final = 384 * 1024
"""Characters at either end of a long text that are searched for every word; a short one is throughout."""
_USUAL: Final = 96 * 1024
_THOROUGH: Final = 1024 * 1024
"""Characters at either end that are searched for all but the weak words; how many if nothing was found."""
MIDDLE: Final = 2
"""How deep a part is that is far from both ends."""
_REACH: Final = 4 * 1024 * 1024
"""Characters at either end that are searched without a gap."""
_BEYOND: Final = 3
_SAMPLES: Final = 24
_SAMPLE: Final = 64 * 1024
_SLICE: Final = 64 * 1024
"""Characters that are searched in one go, which lets other threads run between."""
_PIECE: Final = 4 * 1024


class Span(NamedTuple):
    """A part of whole lines, unless one is huge; `depth` is 0 near an end, 1 further in, `MIDDLE` beyond."""

    begin: int
    end: int
    depth: int


class Slice(NamedTuple):
    """A part of the text that begins at `begin`, in UTF-8: as it is searched, and as it is."""

    begin: int
    data: bytes
    exact: bytes
    is_ascii: bool


def spans(excerpt: Excerpt, stop: int, start: int, *, is_thorough: bool = False) -> Iterator[Span]:
    """The parts of `excerpt.text[stop:start]` to search, in their order; for more words if `is_thorough`."""
    text, at, last = excerpt.text, stop, stop
    for begin, end, depth in _plan(excerpt, stop, start, _THOROUGH if is_thorough else _USUAL):
        at = at if begin == last else begin
        last = end
        while at < end:
            until = min(end, at + _SLICE)
            line_end = until if until == start else text.rfind("\n", at, until) + 1
            if not line_end and until == end < start and end - at < _PIECE:
                break
            line_end = line_end or _word_end(text, at, until)
            yield Span(at, line_end, depth)
            at = line_end


def is_short(stop: int, start: int) -> bool:
    """Whether so much is searched for every word."""
    return start - stop <= _SHORT


def of(text: str, span: Span) -> Slice:
    part = text[span.begin : span.end]
    data = part.encode("utf-8", "surrogatepass")
    return Slice(span.begin, data if span.depth == MIDDLE else data.lower(), data, part.isascii())


def _plan(excerpt: Excerpt, stop: int, start: int, usual: int) -> Iterator[tuple[int, int, int]]:
    """The edges of what is near the ends, further in, and in the middle, without what nobody has read."""
    first_stop, last_start = max(stop, min(start, excerpt.first_stop)), max(stop, excerpt.last_start)
    middle = (stop + start) // 2
    near = _SHORT if is_short(stop, start) else _NEAR
    usual = max(near, usual)
    edges = [stop, *(min(middle, stop + reach) for reach in (near, usual, _REACH))]
    edges += [max(middle, start - reach) for reach in (_REACH, usual, near)] + [start]
    for depth, (begin, end) in zip((0, 1, MIDDLE, _BEYOND, MIDDLE, 1, 0), pairwise(edges), strict=True):
        if depth == _BEYOND:
            yield from ((at, at + _SAMPLE, MIDDLE) for at in _samples(begin, end))
            continue
        for low, high in sorted({(begin, min(end, first_stop)), (max(begin, last_start), end)}):
            if low < high:
                yield low, high, depth


def _samples(begin: int, end: int) -> range:
    step = max(_SAMPLE, (end - begin) // _SAMPLES)
    return range(begin, end - _SAMPLE, step) if end - begin > _SAMPLE else range(0)


def _word_end(text: str, begin: int, end: int) -> int:
    floor = max(begin + 1, end - _PIECE)
    return max(text.rfind(" ", floor, end), text.rfind(",", floor, end)) + 1 or end
