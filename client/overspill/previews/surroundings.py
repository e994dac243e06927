"""Find the lines around a line that matters: what belongs to it, what led up to it, what it announces."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from overspill.previews.prefixes import message
from overspill.previews.rule import Role

if TYPE_CHECKING:
    from collections.abc import Iterator

    from overspill.previews.candidates import Candidate

_FEW: Final = 2
"""Lines on either side of a line that says the reason itself."""
_PARAGRAPH: Final = 5
"""Lines after a heading, and before the end of a step."""
_MAX_BLANK: Final = 3
_LONGEST: Final = 880
"""Characters of the longest line that is shown."""
_DRAWN: Final = "=-*#_~. \t"

NearbyLine = tuple[int, int, int]
"""How many lines after the one that matters, where it begins, where it ends."""


def surrounding_lines(
    text: str, item: Candidate, role: Role, within: tuple[int, int]
) -> Iterator[NearbyLine]:
    """Yield the lines to show with `item`, the most telling first."""
    if role is Role.OPENS:
        yield from islice(_not_blank(text, _after(text, item, within[1])), _PARAGRAPH)
    elif role is Role.CLOSES:
        yield from islice(_not_blank(text, _before(text, item, within[0])), _PARAGRAPH)
    else:
        yield from _belonging(text, item, within)


def _belonging(text: str, item: Candidate, within: tuple[int, int]) -> Iterator[NearbyLine]:
    """Yield lines after and before that are indented deeper: they say where or what."""
    depth = _depth(message(item.line))
    for line in islice(_after(text, item, within[1]), _FEW):
        content = _content(text, line)
        if _is_blank(content) or _depth(content) < max(depth, 1):
            break
        yield line
    for line in islice(_before(text, item, within[0]), _FEW):
        content = _content(text, line)
        if _is_blank(content) or _depth(content) <= depth:
            break
        yield line


def _not_blank(text: str, lines: Iterator[NearbyLine]) -> Iterator[NearbyLine]:
    """Yield the lines that are not blank, until there is a long gap."""
    blanks = 0
    for line in lines:
        if _is_blank(_content(text, line)):
            blanks += 1
            if blanks > _MAX_BLANK:
                return
        else:
            yield line


def _content(text: str, line: NearbyLine) -> str:
    return message(text[line[1] : line[2]])


def _is_blank(content: str) -> bool:
    """Return whether a message says nothing. A drawn rule says nothing."""
    return not content.strip(_DRAWN)


def _after(text: str, item: Candidate, ceiling: int) -> Iterator[NearbyLine]:
    begin, offset = item.end, 0
    while True:
        end = text.find("\n", begin, min(ceiling, begin + _LONGEST)) + 1
        if not end:
            return
        offset += 1
        yield offset, begin, end
        begin = end


def _before(text: str, item: Candidate, floor: int) -> Iterator[NearbyLine]:
    end, offset = item.begin, 0
    while end > floor:
        begin = text.rfind("\n", max(floor, end - _LONGEST), end - 1) + 1
        if begin < floor or (not begin and end > _LONGEST):
            return
        offset -= 1
        yield offset, begin, end
        end = begin


def _depth(content: str) -> int:
    """Return how far a message is indented. Marks of test runners and compilers before it count as blanks."""
    return len(content) - len(content.lstrip(" \t|>E"))
