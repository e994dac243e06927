"""Lines that have a word for trouble in them, found in bounded time, those that differ in digits alone once.

A text is searched in its bytes, in lower case, with a few passes of `bytes.find`: ten times as fast as an
expression. The strongest words are looked for everywhere, also in the middle of a long text; the others
near both ends.
"""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.previews import spans, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from overspill.previews.excerpt import Excerpt
    from overspill.previews.spans import Slice, Span

_PER_SLICE: Final = 160
_LESS: Final = 16
"""Lines looked at for one word in one slice: so many of the first, and a third as many of the last."""
_MANY: Final = 12
_PER_PHRASE: Final = 3
_FEW: Final = 2
"""The same where the slice is one of many."""
_MOST: Final = 32
_MOST_LOUD: Final = 40
"""Lines that are judged."""
_MOST_OF_A_KIND: Final = 12
_BEGINNING: Final = 32
"""Lines of one kind that are judged: those with so many equal bytes at their beginning, without digits."""
_FORM: Final = 300
"""Bytes of a line that are compared."""
_LONGEST: Final = 4 * 1024
"""Bytes of a line without end that are looked at as one."""
_STARTING: Final = bytes([*range(0x80), *range(0xC0, 0x100)])
"""Bytes that characters of UTF-8 begin with."""
_SAMPLES: Final = 16
_SAMPLE: Final = 2 * 1024
"""Parts of the middle in which letters are counted, and characters of each."""
_RARE: Final = 1_000
"""Bytes among which a letter stands at most once on average, so that looking for it is faster."""
_MOST_LETTERS: Final = 100
"""Letters that are looked at before the word itself is looked for: a sample may lie."""
_DIGITS: Final = b"0123456789"
_BLANKED: Final = bytes.maketrans(b'/.,:;=()[]{}"<>|\\_-', b" " * 19)
_HEAD: Final = 3
_HEADS: Final = {
    word: max(word.translate(_BLANKED, _DIGITS).split(), key=len, default=b"")[:_HEAD] for word in words.WEAK
}
"""How the longest word of each phrase begins."""


class Word(NamedTuple):
    """A word to look for, by one `letter` of it, at `offset`, where that is rare.

    One byte is found at the speed of memory, ten times as fast as several.
    """

    text: bytes
    letter: bytes = b""
    offset: int = 0

    @classmethod
    def of(cls, text: bytes, sample: bytes) -> Word:
        """Return the word with its rarest letter in the `sample`, if that is rare enough."""
        letters = [text[at : at + 1] for at in range(len(text))]
        letter = min(letters, key=sample.count)
        is_rare = sample.count(letter) * _RARE <= len(sample)
        return cls(text, letter, letters.index(letter)) if is_rare else cls(text)

    def find(self, data: bytes, begin: int) -> int:
        """Return where the word is in `data[begin:]`, or a negative number."""
        if not self.letter:
            return data.find(self.text, begin)
        at = begin + self.offset
        for _ in range(_MOST_LETTERS):
            at = data.find(self.letter, at)
            if at < 0 or data.startswith(self.text, at - self.offset):
                return at - self.offset
            at += 1
        return data.find(self.text, at - self.offset)


class Candidate(NamedTuple):
    """The first of `lines` lines that are alike, at `begin` of the text; `place` is where in it the word is.

    The last of them begins at `last`. One that `is_unlike` has no such word: hardly a line around it has its
    letters.
    """

    begin: int
    end: int
    line: str
    place: int
    lines: int
    last: int
    is_unlike: bool = False


class _Line(NamedTuple):
    """A line with a word, where it is in the text, and what it has in common with those that are alike."""

    begin: int
    length: int
    place: int
    form: object


class FoundCandidates(NamedTuple):
    """In the order of the text; not `is_all` where there may be more lines like them."""

    candidates: list[Candidate]
    is_all: bool


class CandidateSearch:
    """Looks for candidates in `excerpt.text[stop:start]`: as usual, then further if it is asked to."""

    def __init__(self, excerpt: Excerpt, stop: int, start: int) -> None:
        self._excerpt, self._stop, self._start = excerpt, stop, start
        self._seen: dict[object, dict[int, _Line]] = {}
        self._floods: Counter[bytes] = Counter()
        self._is_all = False

    def usual(self) -> FoundCandidates:
        """Return what is found with every word near the ends, and with few words in the middle."""
        parts = list(spans.spans(self._excerpt, self._stop, self._start))
        covered = sum(part.end - part.begin for part in parts)
        self._is_all = self._excerpt.is_whole and covered == self._start - self._stop
        self._look(parts)
        return self._found()

    def further(self) -> FoundCandidates:
        """Return what is found, also with more words in parts that only few words were looked for in."""
        self._look(list(spans.further(self._excerpt, self._stop, self._start)))
        return self._found()

    def _look(self, parts: list[Span]) -> None:
        text = self._excerpt.text
        words_of = _by_letters(text, parts)
        for part in parts:
            slice_ = spans.slice_of(text, part)
            is_few = part.depth == spans.MIDDLE and len(parts) > _MANY
            most = _FEW if is_few else _PER_SLICE if len(self._seen) < _MOST else _LESS
            wanted = words_of.get(part.depth) or map(
                Word, (*words.STRONG, *words.USUAL, *_present(slice_.data))
            )
            for line in _located(slice_, _hits(slice_, wanted, self._floods, most)):
                self._seen.setdefault(line.form, {}).setdefault(line.begin, line)

    def _found(self) -> FoundCandidates:
        candidates = {form: _candidate(self._excerpt.text, lines) for form, lines in self._seen.items()}
        return FoundCandidates(_thinned(candidates), self._is_all and not self._floods)


def _candidate(text: str, lines: dict[int, _Line]) -> Candidate:
    """The first of the lines, which are alike."""
    line = lines[min(lines)]
    end = line.begin + line.length
    return Candidate(
        line.begin,
        end + text.startswith("\n", end),
        text[line.begin : end],
        line.place,
        len(lines),
        max(lines),
    )


def _by_letters(text: str, parts: list[Span]) -> dict[int, list[Word]]:
    """The words for parts that are not near an end, each with a letter that is rare there if it has one."""
    found = {}
    for depth, wanted in ((spans.FURTHER, (*words.STRONG, *words.USUAL)), (spans.MIDDLE, words.DISTANT)):
        if some := [part for part in parts if part.depth == depth]:
            some = some[:: max(1, len(some) // _SAMPLES)]
            sample = "".join(text[part.begin : part.begin + _SAMPLE] for part in some)
            data = (sample if depth == spans.MIDDLE else sample.lower()).encode(errors="replace")
            found[depth] = [Word.of(word, data) for word in wanted]
    return found


def _form(line: bytes) -> object:
    """Equal for lines that are alike: without digits, but for whether the numbers that tell are none."""
    form = line[:_FORM].translate(None, _DIGITS)
    if not any(map(form.__contains__, words.NUMBERED)):
        return form
    numbers = words.TELLING_NUMBER.findall(line, 0, _FORM)
    return form, tuple(map(_class_of, numbers))


def _class_of(number: bytes) -> bytes:
    """Of a status the first digit, of another number whether it is nothing."""
    return number[:1] if len(number) == len("500") else b"1" if number.strip(b"0") else b"0"


def _thinned(seen: dict[object, Candidate]) -> list[Candidate]:
    """At most as many as can be judged, of those that begin alike and of all: first, last, some between."""
    kinds: dict[bytes, list[Candidate]] = {}
    for form, candidate in seen.items():
        text = form if isinstance(form, bytes) else form[0]  # type: ignore[index]  # the bytes of a form
        kinds.setdefault(text[:_BEGINNING], []).append(candidate)
    found = [each for kind in kinds.values() for each in _some(kind, _MOST_OF_A_KIND)]
    loud = [each for each in found if any(map(each.line.__contains__, words.LOUD_MARKS))]
    chosen = {each.begin: each for each in (*_some(found, _MOST), *_some(loud, _MOST_LOUD))}
    return sorted(chosen.values(), key=attrgetter("begin"))


def _some(found: list[Candidate], most: int) -> list[Candidate]:
    if len(found) <= most:
        return found
    part = most // 4
    first, middle, last = found[:part], found[part : -2 * part], found[-2 * part :]
    return first + middle[:: len(middle) // part + 1] + last


def _hits(part: Slice, wanted: Iterable[Word], floods: Counter[bytes], most: int) -> dict[int, int]:
    """Where lines with a word begin in the slice, and its place; `floods` counts slices with too many."""
    found: dict[int, int] = {}
    for word in wanted:
        if _collect(part.data, word, most, found):
            floods[word.text] += 1
            _collect_last(part.data, word.text, most // 3, found)
            _collect_telling(part, word.text, found, is_near=most > _FEW)
    return found


def _collect_telling(part: Slice, word: bytes, found: dict[int, int], *, is_near: bool) -> None:
    """Add lines in which a word that many lines have is written as where it matters."""
    telling = [(part.exact, words.LOUD[word])] if word in words.LOUD else []
    if is_near:
        telling += [(part.data, phrase) for phrase in words.SPECIFIC.get(word, ())]
    for data, phrase in telling:
        if _collect(data, Word(phrase), _PER_PHRASE, found):
            _collect_last(data, phrase, _PER_PHRASE, found)


def _present(data: bytes) -> Iterator[bytes]:
    """The weak words that may be in it: those that begin as a word of the text does."""
    heads = {token[:_HEAD] for token in {*data.translate(_BLANKED, _DIGITS).split()}}
    return (word for word, head in _HEADS.items() if len(head) < _HEAD or head in heads)


def _collect(data: bytes, word: Word, most: int, found: dict[int, int]) -> bool:
    """Add the first lines that have `word`; whether there may be more."""
    at = word.find(data, 0)
    for _ in range(most):
        if at < 0:
            return False
        begin = _begin(data, at)
        found.setdefault(begin, at - begin)
        end = data.find(b"\n", at, at + _LONGEST)
        at = word.find(data, end if end >= 0 else at + _LONGEST)
    return at >= 0


def _collect_last(data: bytes, word: bytes, most: int, found: dict[int, int]) -> None:
    end = len(data)
    for _ in range(most):
        at = data.rfind(word, 0, end)
        if at < 0:
            return
        begin = end = _begin(data, at)
        found.setdefault(begin, at - begin)


def _begin(data: bytes, at: int) -> int:
    """Where the line begins that has the byte at `at`, or the part of it that is looked at."""
    floor = max(0, at - _LONGEST)
    return data.rfind(b"\n", floor, at) + 1 or floor


def _located(part: Slice, hits: dict[int, int]) -> Iterator[_Line]:
    """The lines of hits, in the order of the text."""
    data, at, byte = part.data, part.begin, 0
    for begin in sorted(hits):
        at += begin - byte if part.is_ascii else _characters(data[byte:begin])
        byte = begin
        end = data.find(b"\n", begin, begin + 2 * _LONGEST)
        line = data[begin : end if end >= 0 else begin + 2 * _LONGEST]
        if part.is_ascii:
            yield _Line(at, len(line), hits[begin], _form(line))
        else:
            yield _Line(at, _characters(line), _characters(line[: hits[begin]]), _form(line))


def _characters(data: bytes) -> int:
    """How many characters of the text are in these bytes; one that is cut counts with its beginning."""
    return len(data) - len(data.translate(None, _STARTING)) if data else 0
