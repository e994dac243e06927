"""Lines with a strong word for trouble far from both ends of a long text, where not every line is read."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from overspill import measure
from overspill.previews.candidates import Candidate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from overspill.previews.excerpt import Excerpt

_WORDS: Final = (b"error", b"fail", b"exception", b"fatal", b"panic")
_REACH: Final = 4 * 1024 * 1024
"""Characters searched at either end of the part: about 4 ms a million."""
_SLICE: Final = 256 * 1024
_PER_SLICE: Final = 2
_MOST: Final = 30
"""Lines looked at from either end."""
_LONGEST: Final = 4 * 1024


def find(excerpt: Excerpt, begin: int, end: int) -> list[Candidate]:
    """Candidates in `excerpt.text[begin:end]`, in the order of the text."""
    middle = (begin + end) // 2
    first = islice(_places(excerpt.text, _forward(begin, min(middle, begin + _REACH))), _MOST)
    last = islice(_places(excerpt.text, _backward(max(middle, end - _REACH), end)), _MOST)
    return list(_candidates(excerpt, sorted({*first, *last})))


def _forward(begin: int, end: int) -> Iterator[tuple[int, int]]:
    return ((at, min(end, at + _SLICE)) for at in range(begin, end, _SLICE))


def _backward(begin: int, end: int) -> Iterator[tuple[int, int]]:
    return ((max(begin, at - _SLICE), at) for at in range(end, begin, -_SLICE))


def _places(text: str, slices: Iterator[tuple[int, int]]) -> Iterator[int]:
    """Where words are; some of each slice, which lets other threads run between."""
    for begin, end in slices:
        part = text[begin:end]
        data = part.encode("utf-8", "surrogatepass").lower()
        for word in _WORDS:
            at = -1
            for _ in range(_PER_SLICE):
                at = data.find(word, at + 1)
                if at < 0:
                    break
                yield begin + (at if part.isascii() else len(data[:at].decode("utf-8", "surrogatepass")))
                at = data.find(b"\n", at)
                if at < 0:
                    break


def _candidates(excerpt: Excerpt, places: list[int]) -> Iterator[Candidate]:
    text, number, counted, seen = excerpt.text, 0, 0, -1
    for place in places:
        begin = text.rfind("\n", max(0, place - _LONGEST), place) + 1 or max(0, place - _LONGEST)
        if begin == seen:
            continue
        number = number + measure.newlines(text, counted, begin) if number else excerpt.number_of(begin)
        end = text.find("\n", place, place + _LONGEST) + 1 or min(len(text), place + _LONGEST)
        line = text[begin:end].removesuffix("\n")
        yield Candidate(number, begin, end, line, place - begin, 1, number)
        counted = seen = begin
