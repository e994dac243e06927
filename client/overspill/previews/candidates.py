"""Find lines with a word that means trouble, in bounded time. Lines that differ only in digits count as one.

The search runs over lower-case bytes with a few passes of `bytes.find`, which is ten times as fast as regular
expressions. The strongest words are searched for everywhere, the others near both ends only.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from overspill.previews import hits, spans, words
from overspill.previews.presence import Word, present_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from overspill.previews.excerpt import Excerpt
    from overspill.previews.spans import Slice, Span

T = TypeVar("T")

# Lines that are taken for one word from the beginning of one slice; a third as many come from its end.
_HITS_PER_WORD: Final = 160
_HITS_WHEN_MANY_KINDS: Final = 16
_MANY_SLICES: Final = 12
_MANY_KINDS: Final = 32
# Lines that are judged, since each costs some regular expressions: of all, of those with a loud word, and of
# those with a strong one.
_MAX_JUDGED: Final = 24
_MAX_LOUD_JUDGED: Final = 24
_MAX_STRONG_JUDGED: Final = 12
_MAX_JUDGED_PER_KIND: Final = 8
_KIND_BYTES: Final = 32
"""Lines are of one kind if this many of their first bytes are equal, digits left out."""
_FORM_BYTES: Final = 300
"""Bytes of a line that are compared with other lines."""
_CHARACTER_STARTS: Final = bytes([*range(0x80), *range(0xC0, 0x100)])
"""Bytes with which a character of UTF-8 begins."""
_SAMPLES: Final = 16
_SAMPLE_CHARS: Final = 2 * 1024
"""How many samples letters are counted in, and how many characters each has."""
_DIGITS: Final = b"0123456789"


class Candidate(NamedTuple):
    """The first of `lines` lines that are alike. It lies at `begin` of the text, with the word at `word_at`.

    The last of them begins at `last`. A line that `is_unlike` has no word, but hardly any line is like it.
    """

    begin: int
    end: int
    line: str
    word_at: int
    lines: int
    last: int
    is_unlike: bool = False


_Line = tuple[int, int, int]
"""Where a line with a word begins and ends, and where in it the word is."""


@dataclass(slots=True)
class _Alike:
    """Lines that are alike: the first of them, where the last one begins, and how many there are."""

    first: _Line
    last: int
    lines: int = 1

    def add(self, line: _Line) -> None:
        self.lines += 1
        self.first = min(self.first, line)
        self.last = max(self.last, line[0])

    def first_line(self, text: str) -> str:
        begin, end, _ = self.first
        return text[begin:end]

    def candidate(self, text: str) -> Candidate:
        begin, end, word_at = self.first
        after = end + text.startswith("\n", end)
        return Candidate(begin, after, text[begin:end], word_at, self.lines, self.last)


class FoundCandidates(NamedTuple):
    """Candidates in the order of the text. Unless it `is_all`, there may be more lines like them."""

    candidates: list[Candidate]
    is_all: bool


class CandidateSearch:
    """Searches `excerpt.text[stop:start]` for candidates: as usual, then further on request."""

    def __init__(self, excerpt: Excerpt, stop: int, start: int) -> None:
        self._excerpt, self._stop, self._start = excerpt, stop, start
        self._seen: dict[object, _Alike] = {}
        self._begins: set[int] = set()
        """The beginnings of the lines that were seen."""
        self._floods: Counter[bytes] = Counter()
        self._is_all = False

    def usual(self) -> FoundCandidates:
        """Search for every word near the ends, and for a few words in the middle."""
        parts = list(spans.spans(self._excerpt, self._stop, self._start))
        covered = sum(part.end - part.begin for part in parts)
        self._is_all = self._excerpt.is_whole and covered == self._start - self._stop
        self._look(parts)
        return self._candidates()

    def further(self) -> FoundCandidates:
        """Search for more words in the parts that were searched for a few words only."""
        self._look(list(spans.further(self._excerpt, self._stop, self._start)))
        return self._candidates()

    def _look(self, parts: list[Span]) -> None:
        text = self._excerpt.text
        words_of = _by_letters(text, parts)
        for part in parts:
            slice_ = spans.slice_of(text, part)
            is_one_of_many = part.depth == spans.MIDDLE and len(parts) > _MANY_SLICES
            limit = _HITS_PER_WORD if len(self._seen) < _MANY_KINDS else _HITS_WHEN_MANY_KINDS
            limit = hits.HITS_IN_ONE_OF_MANY_SLICES if is_one_of_many else limit
            search_words = words_of.get(part.depth) or map(Word, present_words(slice_.data))
            self._add(_located(slice_, hits.find_hits(slice_, search_words, self._floods, limit)))

    def _add(self, lines: Iterable[tuple[_Line, object]]) -> None:
        begins, seen = self._begins, self._seen
        for line, form in lines:
            begin = line[0]
            if begin in begins:
                continue
            begins.add(begin)
            known = seen.get(form)
            if known is None:
                seen[form] = _Alike(line, begin)
            else:
                known.add(line)

    def _candidates(self) -> FoundCandidates:
        return FoundCandidates(_thinned(self._seen, self._excerpt.text), self._is_all and not self._floods)


def _by_letters(text: str, parts: list[Span]) -> dict[int, list[Word]]:
    """Return the words for parts far from the ends, each with a letter that is rare there if it has one."""
    found = {}
    for depth, search_words in (
        (spans.FURTHER, (*words.STRONG, *words.USUAL)),
        (spans.MIDDLE, words.DISTANT),
    ):
        if some := [part for part in parts if part.depth == depth]:
            some = some[:: max(1, len(some) // _SAMPLES)]
            sample = "".join(text[part.begin : part.begin + _SAMPLE_CHARS] for part in some)
            data = (sample if depth == spans.MIDDLE else sample.lower()).encode(errors="replace")
            found[depth] = [Word.of(word, data) for word in search_words]
    return found


def _forms(lines: Sequence[bytes]) -> Sequence[object]:
    """Return a value for each line that is equal for lines that are alike: the line without its digits.

    Lines whose exit codes or statuses say different things are not alike: `exit 0` and `exit 1`.
    """
    if not lines:
        return ()
    begins = [line[:_FORM_BYTES] for line in lines]
    joined = b"\n".join(begins).translate(None, _DIGITS)
    numbered = [name for name in words.NUMBERED if name in joined]
    forms = joined.split(b"\n")
    if not numbered:
        return forms
    return [
        (form, tuple(map(_class_of, words.TELLING_NUMBER.findall(begin))))
        if any(map(form.__contains__, numbered))
        else form
        for begin, form in zip(begins, forms, strict=True)
    ]


def _class_of(number: bytes) -> bytes:
    """Return the first digit of an HTTP status; of another number, whether it is zero."""
    return number[:1] if len(number) == len("500") else b"1" if number.strip(b"0") else b"0"


def _thinned(seen: dict[object, _Alike], text: str) -> list[Candidate]:
    """Return as many candidates as can be judged: the first, the last and some between."""
    kinds: dict[bytes, list[_Alike]] = {}
    for form, alike in seen.items():
        data = form if isinstance(form, bytes) else form[0]  # type: ignore[index]  # the bytes of a form
        kinds.setdefault(data[:_KIND_BYTES], []).append(alike)
    found = [each for kind in kinds.values() for each in _some(kind, _MAX_JUDGED_PER_KIND)]
    chosen = _some(found, _MAX_JUDGED)
    if len(chosen) < len(found):
        strong = [each for each in found if words.STRONG_WORD.match(text, each.first[0] + each.first[2])]
        chosen += _some(_loud(found, text), _MAX_LOUD_JUDGED) + _some(strong, _MAX_STRONG_JUDGED)
    by_place = {each.first: each for each in chosen}
    return [by_place[first].candidate(text) for first in sorted(by_place)]


def _loud(found: list[_Alike], text: str) -> list[_Alike]:
    """Return those whose first line has a word as it is written where it matters."""
    lines = [each.first_line(text) for each in found]
    joined = "\n".join(lines)
    marks = [mark for mark in words.LOUD_MARKS if mark in joined]
    return [each for each, line in zip(found, lines, strict=True) if any(map(line.__contains__, marks))]


def _some(found: list[T], limit: int) -> list[T]:
    if len(found) <= limit:
        return found
    part = limit // 4
    first, middle, last = found[:part], found[part : -2 * part], found[-2 * part :]
    return first + middle[:: len(middle) // part + 1] + last


def _located(part: Slice, word_places: dict[int, int]) -> Iterable[tuple[_Line, object]]:
    """Return the lines of the hits in the order of the text, each with a form that is equal for lines alike.

    Their positions are in characters.
    """
    found = [(begin, _line_at(part.data, begin), word_places[begin]) for begin in sorted(word_places)]
    lines = _lines_of_ascii if part.is_ascii else _lines_of_utf_8
    return zip(lines(part, found), _forms([line for _, line, _ in found]), strict=True)


def _lines_of_ascii(part: Slice, found: list[tuple[int, bytes, int]]) -> list[_Line]:
    at = part.begin
    return [(at + begin, at + begin + len(line), word_at) for begin, line, word_at in found]


def _lines_of_utf_8(part: Slice, found: list[tuple[int, bytes, int]]) -> Iterator[_Line]:
    at, byte = part.begin, 0
    for begin, line, word_at in found:
        at += _characters(part.data[byte:begin])
        byte = begin
        yield at, at + _characters(line), _characters(line[:word_at])


def _line_at(data: bytes, begin: int) -> bytes:
    end = data.find(b"\n", begin, begin + 2 * hits.MAX_LINE_BYTES)
    return data[begin : end if end >= 0 else begin + 2 * hits.MAX_LINE_BYTES]


def _characters(data: bytes) -> int:
    """Count the characters that begin in these bytes."""
    return len(data) - len(data.translate(None, _CHARACTER_STARTS)) if data else 0
