"""Lines that have a word for trouble in them, found in bounded time, those that differ in digits alone once.

A text is searched in its bytes, in lower case and with all digits alike. So a flood of the same line costs
little, and the rest is a few passes of `bytes.find`, which is ten times faster than an expression.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.previews import vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from overspill.previews.excerpt import Excerpt

_REACH: Final = 256 * 1024
_MOST_LINES: Final = 12_000
"""Characters and lines searched at either end."""
_SLICE: Final = 32 * 1024
_PIECE: Final = 4 * 1024
"""Characters of a line without end that are looked at as one."""
_NEAR: Final = 48 * 1024
"""Bytes at either end, less what repeats, in which the weak words are looked for too."""
_MOST_HITS: Final = 20
"""Lines looked at for one word, from either end."""
_MOST: Final = 400
_BARE: Final = b"0abcdef .,:;-_/+"
"""What lines that are alike may differ in: numbers, also hexadecimal ones, and what stands between."""
_LEAST_FLOOD: Final = 200
_MOST_KINDS: Final = 0.1
_RARE: Final = 2
_MANY_WORDS: Final = 20
_MOST_UNLIKE: Final = 20
_MASK: Final = bytes.maketrans(
    b"123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"0" * 9 + b"abcdefghijklmnopqrstuvwxyz"
)

_BLANKED: Final = bytes.maketrans(b'/.,:;=()[]{}"<>|\\_-', b" " * 19)


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
    """In the order of the text; what is between `stop` and `start` was too far from both ends."""

    candidates: list[Candidate]
    is_all: bool
    stop: int
    start: int


class _Piece(NamedTuple):
    """Lines of the text that are looked at together, with digits and case masked."""

    begin: int
    end: int
    forms: list[bytes]


class _Lines(NamedTuple):
    """All that is searched, in the order of the text: `firsts` are the rows that the pieces begin at."""

    pieces: list[_Piece]
    forms: list[bytes]
    firsts: list[int]
    numbers: list[int]

    def number_of(self, row: int) -> int:
        piece = bisect_right(self.firsts, row) - 1
        return self.numbers[piece] + row - self.firsts[piece]


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
    first_end = min(start, stop + _REACH, max(stop, excerpt.first_stop))
    first = list(_read(text, _slices(text, stop, text.rfind("\n", stop, first_end) + 1 or first_end)))
    first_end = first[-1].end if first else stop
    floor = max(first_end, excerpt.last_start, start - _REACH)
    begin = text.find("\n", floor - 1, start) + 1 if floor > first_end else floor
    last = list(_read(text, reversed(list(_slices(text, begin or floor, start)))))[::-1]
    last_begin = last[0].begin if last else start
    is_all = excerpt.is_whole and first_end == last_begin
    return Found(_candidates(text, _numbered(excerpt, first, last)), is_all, first_end, last_begin)


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


def _read(text: str, slices: Iterable[tuple[int, int]]) -> Iterator[_Piece]:
    """The slices in the order given, until there are too many lines."""
    lines = 0
    for begin, end in slices:
        data = text[begin:end].encode("utf-8", "surrogatepass")
        forms = data.translate(_MASK).removesuffix(b"\n").split(b"\n")
        yield _Piece(begin, end, forms)
        lines += len(forms)
        if lines > _MOST_LINES:
            return


def _numbered(excerpt: Excerpt, *parts: list[_Piece]) -> _Lines:
    lines = _Lines([], [], [], [])
    for part in parts:
        number = excerpt.number_of(part[0].begin) if part else 0
        for piece in part:
            lines.pieces.append(piece)
            lines.firsts.append(len(lines.forms))
            lines.numbers.append(number)
            lines.forms.extend(piece.forms)
            number += len(piece.forms) - (excerpt.text[piece.end - 1] != "\n")
    return lines


def _candidates(text: str, lines: _Lines) -> list[Candidate]:
    counts = Counter(lines.forms)
    unlike = _unlike(lines.forms, counts)
    hits = {hit.row: hit for hit in _hits(lines.forms, counts, _matching(list(counts)), unlike)}
    for hit in _with_status(text, lines):
        if hit.row not in hits or hits[hit.row].lines > 1:
            hits[hit.row] = hit
    return _located(text, lines, [hits[row] for row in sorted(hits)])


def _hits(
    forms: list[bytes], counts: Counter[bytes], places: dict[bytes, int], unlike: set[bytes]
) -> Iterator[_Hit]:
    """The first line of each form that has a word in it, and each line that is unlike all others."""
    wanted = places.keys() | unlike
    rows = [row for row, form in enumerate(forms) if form in wanted] if wanted else []
    last = {forms[row]: row for row in rows}
    for form, row in {forms[row]: row for row in reversed(rows)}.items():
        yield _Hit(row, places.get(form, 0), counts[form], last[form], is_unlike=form not in places)


def _unlike(forms: list[bytes], counts: Counter[bytes]) -> set[bytes]:
    """The few forms that are like no other, where nearly all lines are like many."""
    most_kinds = len(forms) * _MOST_KINDS
    sample = _bare(forms[len(forms) // 2 :][:_LEAST_FLOOD])
    if len(forms) < _LEAST_FLOOD or len(set(sample)) > _LEAST_FLOOD * _MOST_KINDS:
        return set()
    kinds = Counter[bytes]()
    letters = dict(zip(counts, _bare(counts), strict=True))
    for form, kind in letters.items():
        kinds[kind] += counts[form]
    rare = {form for form, kind in letters.items() if kind and kinds[kind] <= _RARE}
    return rare if len(kinds) <= most_kinds and len(rare) <= _MOST_UNLIKE else set()


def _bare(forms: Iterable[bytes]) -> list[bytes]:
    return b"\n".join(forms).translate(None, _BARE).split(b"\n")


def _matching(distinct: list[bytes]) -> dict[bytes, int]:
    """The forms that have a word in them, and where it is."""
    found: dict[bytes, int] = {}
    for words, some in (vocabulary.STRONG, distinct), (vocabulary.WEAK, _near(distinct)):
        joined = b"\n".join([b"", *some, b""])
        for word in _present(words, joined):
            for at in _places(joined, word):
                begin = joined.rfind(b"\n", 0, at) + 1
                if len(found) < _MOST:
                    found.setdefault(joined[begin : joined.find(b"\n", at)], at - begin)
    return found


def _near(forms: list[bytes]) -> list[bytes]:
    """Those near both ends."""
    sizes = list(accumulate(map(len, forms), initial=0))
    first, last = bisect_right(sizes, _NEAR), bisect_right(sizes, sizes[-1] - _NEAR)
    return forms if first >= last else forms[:first] + forms[last:]


def _present(words: Sequence[bytes], joined: bytes) -> list[bytes]:
    """Those of `words` that may be in it: looked for where each word of the text stands once."""
    if len(words) < _MANY_WORDS:
        return list(words)
    once = b" ".join({*joined.translate(_BLANKED, b"0").split(), b""})
    return [word for word in words if _core(word) in once]


def _core(word: bytes) -> bytes:
    return max(word.translate(_BLANKED).split(), key=len)


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


def _with_status(text: str, lines: _Lines) -> Iterator[_Hit]:
    """Lines with the status of an answer that failed: digits tell it, which the forms have not."""
    for word, pattern in vocabulary.STATUS:
        matches = (
            _status_hit(text, piece, first, match.start())
            for piece, first in zip(lines.pieces, lines.firsts, strict=True)
            if word in piece.forms[0]
            for match in pattern.finditer(text, piece.begin, piece.end)
        )
        yield from islice(matches, _MOST_HITS)


def _status_hit(text: str, piece: _Piece, first: int, at: int) -> _Hit:
    begin = text.rfind("\n", piece.begin, at) + 1 or piece.begin
    row = first + text.count("\n", piece.begin, begin)
    return _Hit(row, at - begin, 1, row)


def _located(text: str, lines: _Lines, hits: list[_Hit]) -> list[Candidate]:
    """The lines of hits, which come in the order of the text."""
    found = []
    opened, begins, texts = -1, list[int](), list[str]()
    for hit in hits:
        which = bisect_right(lines.firsts, hit.row) - 1
        if which != opened:
            opened, piece = which, lines.pieces[which]
            texts = text[piece.begin : piece.end].split("\n")
            begins = list(accumulate(map(len, texts), initial=piece.begin))
        row = hit.row - lines.firsts[which]
        begin, line = begins[row] + row, texts[row]
        found.append(
            Candidate(
                number=lines.number_of(hit.row),
                begin=begin,
                end=min(begin + len(line) + 1, lines.pieces[which].end),
                line=line,
                place=_character(line, hit.place),
                lines=hit.lines,
                last_number=lines.number_of(hit.last),
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
