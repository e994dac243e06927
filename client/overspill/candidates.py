"""Lines that have a word for trouble in them, found in bounded time, those that differ in digits alone once.

A text is searched in its bytes, in lower case and with all digits alike. So a flood of the same line costs
little, and the rest is a few passes of `bytes.find`, which is ten times faster than an expression.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill import measure, vocabulary
from overspill.excerpt import REACH

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from overspill.excerpt import Excerpt

_MOST_LINES: Final = 40_000
"""Lines searched at either end, as `REACH` for characters."""
_SLICE: Final = 64 * 1024
_PIECE: Final = 2 * 1024
"""Characters of a line without end that are looked at as one."""
_NEAR: Final = 256 * 1024
"""Bytes at either end of what is searched in which all words are looked for."""
_MOST_HITS: Final = 100
"""Lines looked at for one word, from either end."""
_MOST: Final = 800
_MASK: Final = bytes.maketrans(
    b"123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"0" * 9 + b"abcdefghijklmnopqrstuvwxyz"
)


class Candidate(NamedTuple):
    """The first of `count` lines, at `begin` of the text; `place` is where in it the word is."""

    number: int
    begin: int
    end: int
    line: str
    place: int
    count: int
    last_number: int


class Found(NamedTuple):
    """In the order of the text; `is_all` unless a part was too long to be searched."""

    candidates: list[Candidate]
    is_all: bool


class _Piece(NamedTuple):
    """Lines of the text that are looked at together: `index` counts lines over all pieces."""

    begin: int
    end: int
    index: int
    number: int


def find(excerpt: Excerpt, stop: int, start: int) -> Found:
    """Candidates in `excerpt.text[stop:start]`."""
    text = excerpt.text
    first_end = _forward(text, stop, min(start, stop + REACH, max(stop, excerpt.first_stop)))
    last_begin = _backward(text, max(first_end, excerpt.last_start, start - REACH), start)
    pieces, forms = _read(excerpt, ((stop, first_end), (last_begin, start)))
    is_all = excerpt.is_whole and first_end == last_begin
    return Found(_located(text, pieces, forms, _matching(forms)), is_all)


def _forward(text: str, begin: int, end: int) -> int:
    """Where the first `_MOST_LINES` of `text[begin:end]` end, about."""
    lines = 0
    for at in range(begin, end, _SLICE):
        lines += text.count("\n", at, min(end, at + _SLICE))
        if lines > _MOST_LINES:
            return _line_end(text, min(end, at + _SLICE), end)
    return end if end == len(text) or not begin < end else _line_start(text, begin, end)


def _line_start(text: str, begin: int, end: int) -> int:
    return text.rfind("\n", begin, end) + 1 or end


def _line_end(text: str, at: int, end: int) -> int:
    return text.find("\n", at - 1, end) + 1 or end


def _backward(text: str, begin: int, end: int) -> int:
    """Where the last `_MOST_LINES` of `text[begin:end]` begin, about."""
    lines = 0
    for at in range(end, begin, -_SLICE):
        floor = max(begin, at - _SLICE)
        lines += text.count("\n", floor, at)
        if lines > _MOST_LINES:
            return _line_end(text, floor + 1, end)
    return begin if not begin or text[begin - 1 : begin] == "\n" else begin


def _read(excerpt: Excerpt, regions: Sequence[tuple[int, int]]) -> tuple[list[_Piece], list[bytes]]:
    text, pieces, forms = excerpt.text, list[_Piece](), list[bytes]()
    for begin, end in regions:
        if begin >= end:
            continue
        number = excerpt.number_of(begin)
        for at, stop in _slices(text, begin, end):
            pieces.append(_Piece(at, stop, len(forms), number))
            lines = text[at:stop].encode("utf-8", "surrogatepass").translate(_MASK).split(b"\n")
            number += len(lines) - 1
            if not lines[-1]:
                lines.pop()
            forms += lines
    return pieces, forms


def _slices(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Parts of whole lines, which let other threads run between; small ones of a line without end."""
    while begin < end:
        stop = end
        if end - begin > _SLICE:
            stop = text.rfind("\n", begin, begin + _SLICE) + 1 or _word_end(text, begin, begin + _PIECE)
        yield begin, stop
        begin = stop


def _word_end(text: str, begin: int, end: int) -> int:
    return max(text.rfind(" ", begin + 1, end), text.rfind(",", begin + 1, end)) + 1 or end


def _matching(forms: list[bytes]) -> dict[bytes, tuple[int, int]]:
    """The forms that have a word in them: how many lines have each, and where in it the word is."""
    counts = Counter(forms)
    counts.pop(b"", None)
    distinct = list(counts)
    hits: dict[int, int] = {}
    for words, searched in _rounds(distinct):
        joined = b"\n".join(distinct[i] for i in searched)
        starts = list(accumulate((len(distinct[i]) + 1 for i in searched), initial=0))
        for word in words:
            for at in _places(joined, word):
                row = bisect_right(starts, at) - 1
                hits.setdefault(searched[row], at - starts[row])
    chosen = list(hits.items())
    if len(chosen) > _MOST:
        chosen = chosen[:_MOST]
    return {distinct[i]: (counts[distinct[i]], place) for i, place in chosen}


def _rounds(distinct: list[bytes]) -> Iterator[tuple[Sequence[bytes], Sequence[int]]]:
    """Which words are looked for in which forms: the strong ones in all, the weak ones near both ends."""
    everything = range(len(distinct))
    yield vocabulary.STRONG, everything
    sizes = list(accumulate(map(len, distinct)))
    if not sizes or sizes[-1] <= 2 * _NEAR:
        yield vocabulary.WEAK, everything
        return
    near = bisect_right(sizes, _NEAR), bisect_right(sizes, sizes[-1] - _NEAR)
    yield vocabulary.WEAK, [*range(near[0]), *range(near[1], len(distinct))]


def _places(joined: bytes, word: bytes) -> Iterator[int]:
    """Where `word` is, once a line: the first places, and the last ones."""
    at = 0
    for _ in range(_MOST_HITS):
        at = joined.find(word, at)
        if at < 0:
            return
        yield at
        at = joined.find(b"\n", at)
        if at < 0:
            return
    floor, end = at, len(joined)
    for _ in range(_MOST_HITS):
        at = joined.rfind(word, floor, end)
        if at < 0:
            return
        yield at
        end = max(floor, joined.rfind(b"\n", floor, at))


def _located(
    text: str, pieces: list[_Piece], forms: list[bytes], matching: dict[bytes, tuple[int, int]]
) -> list[Candidate]:
    last = dict(zip(forms, range(len(forms)), strict=True))
    first = dict(zip(reversed(forms), range(len(forms) - 1, -1, -1), strict=True))
    starts = [piece.index for piece in pieces]
    found = []
    lines: list[str] = []
    opened = -1
    for form in sorted(matching, key=first.__getitem__):
        which = bisect_right(starts, first[form]) - 1
        piece = pieces[which]
        if which != opened:
            opened = which
            lines = text[piece.begin : piece.end].split("\n")
            begins = list(accumulate((len(line) + 1 for line in lines), initial=piece.begin))
        row = first[form] - piece.index
        count, place = matching[form]
        end_piece = pieces[bisect_right(starts, last[form]) - 1]
        found.append(
            Candidate(
                number=piece.number + row,
                begin=begins[row],
                end=min(begins[row + 1], piece.end),
                line=lines[row],
                place=place if lines[row].isascii() else len(form[:place].decode("utf-8", "ignore")),
                count=count,
                last_number=end_piece.number + last[form] - end_piece.index,
            )
        )
    return found
