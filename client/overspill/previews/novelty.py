"""Find lines that are like no other, in a text where nearly all lines are alike.

They may matter without a word.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from overspill.previews.candidates import Candidate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from overspill.previews.excerpt import Excerpt

_SEARCHED_CHARS: Final = 256 * 1024
"""Characters searched from either end."""
_IGNORED: Final = b"0123456789abcdefABCDEF .,:;-_/+"
"""Lines that are alike may differ in these: numbers, also hexadecimal ones, and what stands between them."""
_MIN_FLOOD_LINES: Final = 200
_MAX_KINDS_SHARE: Final = 0.1
_FEW_KINDS: Final = 3
_SAMPLE_CHARS: Final = 16 * 1024
"""The kinds of lines are counted in a sample of this size before all is searched."""
_RARE_COUNT: Final = 2
_MAX_UNLIKE: Final = 20


def find_unlike(excerpt: Excerpt, stop: int, start: int) -> list[Candidate]:
    """Return the few lines of `excerpt.text[stop:start]` that are like no other, in their order."""
    text = excerpt.text
    first_end = min(start, excerpt.first_stop)
    if first_end - stop > _SEARCHED_CHARS:
        first_end = text.rfind("\n", stop, stop + _SEARCHED_CHARS) + 1 or stop
    last_begin = max(first_end, excerpt.last_start)
    if start - last_begin > _SEARCHED_CHARS:
        last_begin = text.find("\n", start - _SEARCHED_CHARS, start) + 1 or start
    parts = (text[stop:first_end], text[last_begin:start])
    if not any(_is_flood(_kinds(part[len(part) // 2 :][:_SAMPLE_CHARS])[1:-1]) for part in parts if part):
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
    """Return each line without what lines that are alike may differ in."""
    data = part.removesuffix("\n").encode("utf-8", "surrogatepass")
    return data.translate(None, _IGNORED).split(b"\n")


def _is_flood(kinds: list[bytes]) -> bool:
    """Return whether many lines are of so few kinds that a single line stands out."""
    sample = kinds[len(kinds) // 2 :][:_MIN_FLOOD_LINES]
    return len(set(sample)) <= max(_FEW_KINDS, len(sample) * _MAX_KINDS_SHARE)


def _rare(kinds: list[bytes]) -> set[bytes]:
    if len(kinds) < _MIN_FLOOD_LINES or not _is_flood(kinds):
        return set()
    counts = Counter(kinds)
    rare = {kind for kind, count in counts.items() if kind and count <= _RARE_COUNT}
    return rare if len(counts) <= len(kinds) * _MAX_KINDS_SHARE and len(rare) <= _MAX_UNLIKE else set()


def _located(part: str, kinds: Iterable[bytes], rare: set[bytes], begin: int) -> Iterator[Candidate]:
    if not rare:
        return
    for line, kind in zip(part.split("\n"), kinds, strict=False):
        if kind in rare:
            yield Candidate(begin, begin + len(line) + 1, line, 0, 1, begin, is_unlike=True)
        begin += len(line) + 1
