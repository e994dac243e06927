"""Lines that say the same but for their numbers: which are alike, and one marker for many of them."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.text import measure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LineSpan = tuple[int, int]
"""Begin and end of a line in a text, its newline included."""
KeyedLine = tuple[int, int, bytes]
"""The same with what the line is without its digits."""

LONGEST: Final = 1_000
"""Characters of the longest line that is compared."""
_MOST_LINES: Final = 1_000
_REACH: Final = 64 * 1024
"""Lines and characters of one run that are compared before it is left open."""
_LEAST_SAME: Final = 3
_LEAST_ALIKE: Final = 6
_SHOWN_ALIKE: Final = 3
_MARKER: Final = 60
"""Bytes that must be saved for a marker to be worth its place."""
_DIGITS: Final = b"0123456789"
_NUMERIC: Final = b"0123456789abcdefABCDEFxX.,: \t\r\n"
"""All that a number or the blanks around a line are made of."""
_NUMBER: Final = re.compile(
    r"0[xX][0-9a-fA-F]+"
    r"|\b(?=[a-fA-F]{0,31}\d)[0-9a-fA-F]{6,}\b"
    r"|\d+(?:[.,:]\d+)*"
)


def masked(line: str) -> str:
    """`line` with each number, time and hexadecimal word as one `0`: equal for lines that are alike."""
    return _NUMBER.sub("0", line).strip()


class Group(NamedTuple):
    """Consecutive lines, of which the first `shown` are to be shown; more where one stands for the others.

    `is_open` says that more of the same may follow, which nobody has counted.
    """

    spans: list[LineSpan]
    shown: int
    is_open: bool = False


def keyed_lines(text: str, begin: int, end: int) -> list[KeyedLine]:
    """The lines of `text[begin:end]`, which are whole."""
    block = text[begin:end]
    edges = list(accumulate([len(line) + 1 for line in block.split("\n")], initial=begin))
    if block.endswith("\n"):
        edges.pop()
    edges[-1] = end
    return list(zip(edges, edges[1:], _without(_DIGITS, block).split(b"\n"), strict=False))


def groups(text: str, lines: Iterable[KeyedLine]) -> Iterator[Group]:
    """The lines, which come in either direction, as groups of those that are alike."""
    run: list[LineSpan] = []
    last, reach = b"", 0
    for begin, end, key in lines:
        if run and key != last and not _are_alike(text, run[-1], (begin, end)):
            yield _closed(text, run)
            run, reach = [], 0
        run.append((begin, end))
        last, reach = key, reach + end - begin
        if len(run) > _LEAST_ALIKE and (len(run) > _MOST_LINES or reach > _REACH):
            is_same = _is_same(text, run)
            yield Group(run, 1 if is_same else len(run), is_open=is_same)
            run, reach = [], 0
    if run:
        yield unfollowed(text, run)


def unfollowed(text: str, run: list[LineSpan]) -> Group:
    """The group of a run that nothing follows: its lines stand for no others, unless they are the same."""
    return _closed(text, run) if _is_same(text, run) else Group(run, len(run))


def _are_alike(text: str, one: LineSpan, other: LineSpan) -> bool:
    """Whether the forms are equal; an expression is asked only where the letters do not tell."""
    if max(one[1] - one[0], other[1] - other[0]) > LONGEST:
        return False
    first, second = text[one[0] : one[1]], text[other[0] : other[1]]
    return _without(_NUMERIC, first) == _without(_NUMERIC, second) and masked(first) == masked(second)


def _without(characters: bytes, text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass").translate(None, characters)


def _is_same(text: str, run: list[LineSpan]) -> bool:
    first = text[run[0][0] : run[0][1]]
    return all(text.startswith(first, begin) and end - begin == len(first) for begin, end in run)


def _closed(text: str, run: list[LineSpan]) -> Group:
    """`run`, which another line ends: folded where that saves enough."""
    if len(run) < _LEAST_SAME:
        return Group(run, len(run))
    least, shown = (_LEAST_SAME, 1) if _is_same(text, run) else (_LEAST_ALIKE, _SHOWN_ALIKE)
    saved = sum(end - begin for begin, end in run[shown:])
    return Group(run, len(run) if len(run) < least or saved < 2 * _MARKER else shown)


def marker(count: int, last: int | None, *, is_empty: bool) -> str:
    """What stands for `count` lines: behind those shown, up to line `last`; before them where it is None."""
    to = "" if last is None else f", to line {last:,}"
    if is_empty:
        return f"… [{measure.plural(count, 'more empty line')}{to}] …\n"
    if last is None:
        return f"… [{measure.plural(count, 'line')} like the next] …\n"
    return f"… [{measure.plural(count, 'more line')} like it{to}] …\n"
