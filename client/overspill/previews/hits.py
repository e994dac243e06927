"""Find where the lines with a word begin, with a few passes of `bytes.find` over each slice of a text."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from overspill.previews import words
from overspill.previews.presence import Word

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable

    from overspill.previews.spans import Slice

HITS_IN_ONE_OF_MANY_SLICES: Final = 2
"""Lines that are taken for one word from the beginning of a slice, if there are many slices."""
_HITS_PER_PHRASE: Final = 3
MAX_LINE_BYTES: Final = 4 * 1024
"""A longer line is looked at in parts of this size."""


def find_hits(
    part: Slice, search_words: Iterable[Word], floods: Counter[bytes], limit: int
) -> dict[int, int]:
    """Map where lines with a word begin in the slice to where in them the word is.

    `floods` counts, for each word, the slices in which too many lines have it.
    """
    found: dict[int, int] = {}
    for word in search_words:
        if _collect(part.data, word, limit, found):
            floods[word.text] += 1
            _collect_last(part.data, word.text, limit // 3, found)
            _collect_telling(part, word.text, found, is_near=limit > HITS_IN_ONE_OF_MANY_SLICES)
    return found


def _collect_telling(part: Slice, word: bytes, found: dict[int, int], *, is_near: bool) -> None:
    """Add lines that write a word as it is written where it matters, if too many lines have that word."""
    telling = [(part.exact, words.LOUD[word])] if word in words.LOUD else []
    if is_near:
        telling += [(part.data, phrase) for phrase in words.SPECIFIC.get(word, ())]
    for data, phrase in telling:
        if _collect(data, Word(phrase), _HITS_PER_PHRASE, found):
            _collect_last(data, phrase, _HITS_PER_PHRASE, found)


def _collect(data: bytes, word: Word, limit: int, found: dict[int, int]) -> bool:
    """Add the first lines that have `word`. Return whether there may be more."""
    find = partial(word.find, data) if word.letter else partial(data.find, word.text)
    at = find(0)
    for _ in range(limit):
        if at < 0:
            return False
        begin = _begin(data, at)
        if begin not in found:
            found[begin] = at - begin
        end = data.find(b"\n", at, at + MAX_LINE_BYTES)
        at = find(end if end >= 0 else at + MAX_LINE_BYTES)
    return at >= 0


def _collect_last(data: bytes, word: bytes, limit: int, found: dict[int, int]) -> None:
    end = len(data)
    for _ in range(limit):
        at = data.rfind(word, 0, end)
        if at < 0:
            return
        begin = end = _begin(data, at)
        found.setdefault(begin, at - begin)


def _begin(data: bytes, at: int) -> int:
    """Return where the line around `at` begins, or the part of it that is looked at."""
    floor = max(0, at - MAX_LINE_BYTES)
    return data.rfind(b"\n", floor, at) + 1 or floor
