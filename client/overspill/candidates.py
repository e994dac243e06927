"""Lines that have a word for trouble in them, found in bounded time, those that differ in digits alone once.

A text is searched in its bytes, in lower case and with all digits alike. So a flood of the same line costs
little, and the rest is a few passes of `bytes.find`, which is ten times faster than an expression.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill import vocabulary
from overspill.excerpt import REACH

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from overspill.excerpt import Excerpt

_MOST_LINES: Final = 15_000
"""Lines searched at either end, as `REACH` for characters."""
_SLICE: Final = 64 * 1024
_STEP: Final = 8 * 1024
_PIECE: Final = 4 * 1024
"""Characters of a line without end that are looked at as one."""
_ALL: Final = 512 * 1024
"""Bytes, less what repeats, in which all words are looked for."""
_FAR: Final = 512 * 1024
_NEAR: Final = 64 * 1024
"""Where there are more: bytes at either end in which the strong words are looked for, and the weak ones."""
_MOST_HITS: Final = 60
"""Lines looked at for one word, from either end."""
_MOST: Final = 400
_BARE: Final = b"0abcdef .,:;-_/+"
"""What lines that are alike may differ in: numbers, also hexadecimal ones, and what stands between."""
_LEAST_FLOOD: Final = 200
_MOST_KINDS: Final = 0.1
_RARE: Final = 2
_MOST_UNLIKE: Final = 20
_MASK: Final = bytes.maketrans(
    b"123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"0" * 9 + b"abcdefghijklmnopqrstuvwxyz"
)


class Candidate(NamedTuple):
    """The first of `count` lines, at `begin` of the text; `place` is where in it the word is.

    One that `is_unlike` has no such word: hardly a line around it has its letters.
    """

    number: int
    begin: int
    end: int
    line: str
    place: int
    lines: int
    last_number: int
    is_unlike: bool = False


class Found(NamedTuple):
    """In the order of the text; `is_all` unless a part was too long to be searched."""

    candidates: list[Candidate]
    is_all: bool


class _Piece(NamedTuple):
    """Lines of the text that are looked at together: `first` counts lines over all pieces."""

    begin: int
    end: int
    first: int
    number: int


class _Hit(NamedTuple):
    """One of all lines searched, and where in it a word is; `lines` have its form, the last is `last`."""

    row: int
    place: int
    lines: int
    last: int
    is_unlike: bool = False


def find(excerpt: Excerpt, stop: int, start: int) -> Found:
    """Candidates in `excerpt.text[stop:start]`."""
    text = excerpt.text
    first_end = _forward(text, stop, min(start, stop + REACH, max(stop, excerpt.first_stop)))
    last_begin = _backward(text, max(first_end, excerpt.last_start, start - REACH), start)
    pieces, forms = _read(excerpt, ((stop, first_end), (last_begin, start)))
    hits = {hit.row: hit for hit in (*_unlike(forms), *_with_words(forms))}
    for hit in _with_status(text, pieces, forms):
        if hit.row not in hits or hits[hit.row].lines > 1:
            hits[hit.row] = hit
    is_all = excerpt.is_whole and first_end == last_begin
    return Found(_located(text, pieces, [hits[row] for row in sorted(hits)]), is_all)


def _forward(text: str, begin: int, end: int) -> int:
    """Where the first `_MOST_LINES` of `text[begin:end]` end, about."""
    lines = 0
    for at in range(begin, end, _STEP):
        lines += text.count("\n", at, min(end, at + _STEP))
        if lines > _MOST_LINES:
            return _line_end(text, min(end, at + _STEP), end)
    return text.rfind("\n", begin, end) + 1 or end


def _backward(text: str, begin: int, end: int) -> int:
    """Where the last `_MOST_LINES` of `text[begin:end]` begin, about."""
    lines = 0
    for at in range(end, begin, -_STEP):
        floor = max(begin, at - _STEP)
        lines += text.count("\n", floor, at)
        if lines > _MOST_LINES:
            return _line_end(text, floor + 1, end)
    return begin


def _line_end(text: str, at: int, end: int) -> int:
    return text.find("\n", at - 1, end) + 1 or end


def _read(excerpt: Excerpt, regions: Sequence[tuple[int, int]]) -> tuple[list[_Piece], list[bytes]]:
    """The lines of the regions in pieces, and all of them with digits and case masked."""
    pieces, forms = list[_Piece](), list[bytes]()
    for begin, end in regions:
        number = excerpt.number_of(begin) if begin < end else 0
        for at, stop in _slices(excerpt.text, begin, end):
            pieces.append(_Piece(at, stop, len(forms), number))
            data = excerpt.text[at:stop].encode("utf-8", "surrogatepass")
            lines = data.translate(_MASK).split(b"\n")
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


def _unlike(forms: list[bytes]) -> list[_Hit]:
    """The few lines that are like no other, where nearly all others are like many."""
    count = len(forms)
    if (
        count < _LEAST_FLOOD
        or len(set(_bare(forms[count // 2 :][:_LEAST_FLOOD]))) > _LEAST_FLOOD * _MOST_KINDS
    ):
        return []
    letters = _bare(forms)
    kinds = Counter(letters)
    rare = {kind for kind, lines in kinds.items() if lines <= _RARE and kind}
    if len(kinds) > count * _MOST_KINDS or not 0 < len(rare) <= _MOST_UNLIKE:
        return []
    return [_Hit(row, 0, 1, row, is_unlike=True) for row, letter in enumerate(letters) if letter in rare]


def _bare(forms: list[bytes]) -> list[bytes]:
    return b"\n".join(forms).translate(None, _BARE).split(b"\n")


def _with_words(forms: list[bytes]) -> list[_Hit]:
    """The first line of each form that has a word in it."""
    last = dict(zip(forms, range(len(forms)), strict=True))
    matching = _matching(list(last))
    rows = [row for row, form in enumerate(forms) if form in matching]
    counts = Counter([forms[row] for row in rows])
    first = {forms[row]: row for row in reversed(rows)}
    return [_Hit(row, matching[form], counts[form], last[form]) for form, row in first.items()]


def _matching(distinct: list[bytes]) -> dict[bytes, int]:
    """The forms that have a word in them, and where it is."""
    found: dict[bytes, int] = {}
    for words, some in _rounds(distinct):
        joined = b"\n".join(some) + b"\n"
        starts = list(accumulate(map(len, some), lambda end, size: end + size + 1, initial=0))
        for word in words:
            for at in _places(joined, word):
                row = bisect_right(starts, at) - 1
                if len(found) < _MOST:
                    found.setdefault(some[row], at - starts[row])
    return found


def _rounds(distinct: list[bytes]) -> Iterator[tuple[Sequence[bytes], list[bytes]]]:
    """Which words are looked for in which forms: the more there are, the fewer words far from both ends."""
    sizes = list(accumulate(map(len, distinct)))
    if not sizes or sizes[-1] <= _ALL:
        yield (*vocabulary.STRONG, *vocabulary.WEAK), distinct
        return
    for words, reach in (vocabulary.STRONG, _FAR), (vocabulary.WEAK, _NEAR):
        first, last = bisect_right(sizes, reach), bisect_right(sizes, sizes[-1] - reach)
        yield words, distinct[:first] + distinct[max(first, last) :]


def _places(joined: bytes, word: bytes) -> Iterator[int]:
    """Where `word` is, once a line: the first places and the last; where there are more, the telling ones."""
    at = 0
    for _ in range(_MOST_HITS):
        at = joined.find(word, at)
        if at < 0:
            return
        yield at
        at = joined.find(b"\n", at)
    floor, end = at, len(joined)
    for _ in range(_MOST_HITS):
        at = joined.rfind(word, floor, end)
        if at < 0:
            return
        yield at
        end = max(floor, joined.rfind(b"\n", floor, at) + 1)
    for phrase in vocabulary.SPECIFIC.get(word, ()):
        yield from _places(joined, phrase)


def _with_status(text: str, pieces: list[_Piece], forms: list[bytes]) -> Iterator[_Hit]:
    """Lines with the status of an answer that failed: digits tell it, which the forms have not."""
    for word, pattern in vocabulary.STATUS:
        left = _MOST_HITS
        for piece in pieces:
            if word not in forms[piece.first]:
                continue
            for match in pattern.finditer(text, piece.begin, piece.end):
                begin = text.rfind("\n", piece.begin, match.start()) + 1 or piece.begin
                row = piece.first + text.count("\n", piece.begin, begin)
                yield _Hit(row, match.start() - begin, 1, row)
                left -= 1
                if not left:
                    break
            if not left:
                break


def _located(text: str, pieces: list[_Piece], hits: list[_Hit]) -> list[Candidate]:
    """The lines of hits, which come in the order of the text."""
    starts = [piece.first for piece in pieces]
    found = []
    opened = -1
    lines: list[str] = []
    begins: list[int] = []
    for hit in hits:
        which = bisect_right(starts, hit.row) - 1
        piece, end = pieces[which], pieces[bisect_right(starts, hit.last) - 1]
        if which != opened:
            opened, lines = which, text[piece.begin : piece.end].split("\n")
            begins = list(accumulate((len(line) + 1 for line in lines), initial=piece.begin))
        row = hit.row - piece.first
        found.append(
            Candidate(
                number=piece.number + row,
                begin=begins[row],
                end=min(begins[row + 1], piece.end),
                line=lines[row],
                place=_character(lines[row], hit.place),
                lines=hit.lines,
                last_number=end.number + hit.last - end.first,
                is_unlike=hit.is_unlike,
            )
        )
    return found


def _character(line: str, byte: int) -> int:
    """The character of `line` that the byte at `byte` is of."""
    return (
        byte
        if line.isascii()
        else len(line.encode("utf-8", "surrogatepass")[:byte].decode("utf-8", "ignore"))
    )
