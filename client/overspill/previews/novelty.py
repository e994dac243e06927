"""Lines that are like no other, where nearly all lines are like many. They may matter without saying so."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from overspill.previews.candidates import Candidate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from overspill.previews.excerpt import Excerpt

_REACH: Final = 256 * 1024
"""Characters looked at from either end."""
_BARE: Final = b"0123456789abcdefABCDEF .,:;-_/+"
"""What lines that are alike may differ in: numbers, also hexadecimal ones, and what stands between."""
_LEAST_FLOOD: Final = 200
_MOST_KINDS: Final = 0.1
_FEW_KINDS: Final = 3
_SAMPLE: Final = 16 * 1024
"""Characters of either part in which the kinds of lines are counted before all of it is looked at."""
_RARE: Final = 2
_MOST_UNLIKE: Final = 20


def find_unlike(excerpt: Excerpt, stop: int, start: int) -> list[Candidate]:
    """The few lines of `excerpt.text[stop:start]` that are like no other, in their order."""
    text = excerpt.text
    first_end = min(start, excerpt.first_stop, stop + _REACH)
    last_begin = max(first_end, excerpt.last_start, start - _REACH)
    parts = (text[stop:first_end], text[last_begin:start])
    if not any(_is_flood(_kinds(part[len(part) // 2 :][:_SAMPLE])[1:-1]) for part in parts if part):
        return []
    kinds = [_kinds(part) for part in parts]
    rare = _rare([*kinds[0], *kinds[1]])
    begins = (stop, last_begin)
    return [
        candidate
        for part, kind, begin in zip(parts, kinds, begins, strict=True)
        for candidate in _located(part, kind, rare, begin)
    ]


def _kinds(part: str) -> list[bytes]:
    """Each line without what lines that are alike may differ in."""
    data = part.removesuffix("\n").encode("utf-8", "surrogatepass")
    return data.translate(None, _BARE).split(b"\n")


def _is_flood(kinds: list[bytes]) -> bool:
    """Whether so few kinds of lines are among so many that one alone would stand out."""
    sample = kinds[len(kinds) // 2 :][:_LEAST_FLOOD]
    return len(set(sample)) <= max(_FEW_KINDS, len(sample) * _MOST_KINDS)


def _rare(kinds: list[bytes]) -> set[bytes]:
    if len(kinds) < _LEAST_FLOOD or not _is_flood(kinds):
        return set()
    counts = Counter(kinds)
    rare = {kind for kind, count in counts.items() if kind and count <= _RARE}
    return rare if len(counts) <= len(kinds) * _MOST_KINDS and len(rare) <= _MOST_UNLIKE else set()


def _located(part: str, kinds: Iterable[bytes], rare: set[bytes], begin: int) -> Iterator[Candidate]:
    if not rare:
        return
    for line, kind in zip(part.split("\n"), kinds, strict=False):
        if kind in rare:
            yield Candidate(begin, begin + len(line) + 1, line, 0, 1, begin, is_unlike=True)
        begin += len(line) + 1
