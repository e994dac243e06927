"""Choose the parts of a text that are searched for lines that matter.

    end (every word) | further (usual words) | middle (few words) | samples | middle | further | end

A short text is one end.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from overspill.previews.excerpt import Excerpt

_NEAR: Final = 32 * 1024
_SHORT: Final = 384 * 1024
"""Characters at either end of a long text that are searched for every word; a short one is throughout."""
_USUAL: Final = 96 * 1024
_THOROUGH: Final = 1024 * 1024
"""Characters at either end that are searched for all but the weak words; how many if nothing was found."""
FURTHER: Final = 1
MIDDLE: Final = 2
"""How deep a part is that is not near an end, and that is far from both."""
_REACH: Final = 4 * 1024 * 1024
"""Characters at either end that are searched without a gap."""
_BEYOND: Final = 3
_SAMPLES: Final = 24
_SAMPLE: Final = 64 * 1024
_SLICE: Final = 64 * 1024
"""Characters that are searched in one go, which lets other threads run between."""
_PIECE: Final = 4 * 1024


class Span(NamedTuple):
    """A part of whole lines, unless one is huge; `depth` is 0 near an end, else `FURTHER` or `MIDDLE`."""

    begin: int
    end: int
    depth: int


class Slice(NamedTuple):
    """A part of the text from `begin` on, in UTF-8: `data` as it is searched, `exact` as it is written."""

    begin: int
    data: bytes
    exact: bytes
    is_ascii: bool


def spans(excerpt: Excerpt, stop: int, start: int) -> Iterator[Span]:
    """Yield the parts of `excerpt.text[stop:start]` to search, in their order."""
    return _sliced(excerpt.text, start, _plan(excerpt, stop, start))


def further(excerpt: Excerpt, stop: int, start: int) -> Iterator[Span]:
    """Yield the parts to search for more words if nothing was found."""
    return _sliced(excerpt.text, start, _further(excerpt, stop, start))


def _sliced(text: str, start: int, plan: Iterable[tuple[int, int, int]]) -> Iterator[Span]:
    """Yield parts of whole lines that make up the plan for `text[:start]`."""
    at = last = -1
    for begin, end, depth in plan:
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
    """Return whether a text of this length is searched for every word."""
    return start - stop <= _SHORT


def slice_of(text: str, span: Span) -> Slice:
    """Return the part of `text` as it is searched: in lower case, but not in the middle."""
    part = text[span.begin : span.end]
    data = part.encode("utf-8", "surrogatepass")
    return Slice(span.begin, data if span.depth == MIDDLE else data.lower(), data, part.isascii())


def _further(excerpt: Excerpt, stop: int, start: int) -> Iterator[tuple[int, int, int]]:
    """Yield the edges of the parts behind those that are searched for the usual words."""
    first_stop, last_start = max(stop, min(start, excerpt.first_stop)), max(stop, excerpt.last_start)
    middle = (stop + start) // 2
    first = _line_begin(excerpt.text, stop + _USUAL), min(middle, first_stop, stop + _THOROUGH)
    last = _line_begin(excerpt.text, max(middle, last_start, start - _THOROUGH)), start - _USUAL
    return ((begin, end, FURTHER) for begin, end in (first, last) if begin < end)


def _plan(excerpt: Excerpt, stop: int, start: int) -> Iterator[tuple[int, int, int]]:
    """Yield the edges of the parts near the ends, further in, and in the middle.

    Leaves out what was not read.
    """
    first_stop, last_start = max(stop, min(start, excerpt.first_stop)), max(stop, excerpt.last_start)
    middle = (stop + start) // 2
    near = _SHORT if is_short(stop, start) else _NEAR
    usual = max(near, _USUAL)
    edges = [stop, *(min(middle, stop + reach) for reach in (near, usual, _REACH))]
    edges += [max(middle, start - reach) for reach in (_REACH, usual, near)] + [start]
    for depth, (begin, end) in zip(
        (0, FURTHER, MIDDLE, _BEYOND, MIDDLE, FURTHER, 0), pairwise(edges), strict=True
    ):
        if depth == _BEYOND:
            yield from ((at, at + _SAMPLE, MIDDLE) for at in _samples(begin, end))
            continue
        for low, high in sorted({(begin, min(end, first_stop)), (max(begin, last_start), end)}):
            if low < high:
                yield low, high, depth


def _line_begin(text: str, at: int) -> int:
    """Return where the next line begins; `at` itself if that is far."""
    return text.find("\n", at, at + _PIECE) + 1 or at


def _samples(begin: int, end: int) -> range:
    step = max(_SAMPLE, (end - begin) // _SAMPLES)
    return range(begin, end - _SAMPLE, step) if end - begin > _SAMPLE else range(0)


def _word_end(text: str, begin: int, end: int) -> int:
    floor = max(begin + 1, end - _PIECE)
    return max(text.rfind(" ", floor, end), text.rfind(",", floor, end)) + 1 or end
