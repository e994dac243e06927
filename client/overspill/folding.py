"""Lines that say the same but for their numbers: which are alike, and one marker for many of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill import measure

if TYPE_CHECKING:
    from collections.abc import Iterator

Span = tuple[int, int]
"""Begin and end of a line in a text, its newline included."""

LONGEST: Final = 1_000
"""Characters of the longest line that is compared."""
_MOST_LINES: Final = 1_000
_REACH: Final = 64 * 1024
_LEAST_SAME: Final = 3
_LEAST_ALIKE: Final = 6
_SHOWN_ALIKE: Final = 3
_MARKER: Final = 60
"""Bytes that must be saved for a marker to be worth its place."""
_NUMBER: Final = re.compile(
    r"0[xX][0-9a-fA-F]+"
    r"|\b(?=[a-fA-F]{0,31}\d)[0-9a-fA-F]{6,}\b"
    r"|\d+(?:[.,:]\d+)*"
)


def form(line: str) -> str:
    """`line` with each number, time and hexadecimal word as one `0`: equal for lines that are alike."""
    return _NUMBER.sub("0", line).strip()


class Group(NamedTuple):
    """Consecutive lines, of which the first `shown` are to be shown; more where one stands for the others.

    `is_open` says that more of the same may follow, which nobody has counted.
    """

    spans: list[Span]
    shown: int
    is_same: bool
    is_open: bool


def groups(text: str, spans: Iterator[Span]) -> Iterator[Group]:
    """The lines at `spans`, which come in either direction, as groups of those that are alike."""
    run: list[Span] = []
    reach = 0
    for span in spans:
        reach += span[1] - span[0]
        if run and not _alike(text, run[-1], span):
            yield _group(text, run, is_open=False)
            run = []
        run.append(span)
        if len(run) > _LEAST_ALIKE and (len(run) > _MOST_LINES or reach > _REACH):
            yield _group(text, run, is_open=True)
            return
    if run:
        yield _group(text, run, is_open=False)


def _alike(text: str, one: Span, other: Span) -> bool:
    size, other_size = one[1] - one[0], other[1] - other[0]
    if max(size, other_size) > LONGEST or abs(size - other_size) > LONGEST // 2:
        return False
    first, second = text[one[0] : one[1]], text[other[0] : other[1]]
    return first == second or form(first) == form(second)


def _group(text: str, run: list[Span], *, is_open: bool) -> Group:
    first = text[run[0][0] : run[0][1]]
    is_same = all(text.startswith(first, begin) and end - begin == len(first) for begin, end in run)
    least, shown = (_LEAST_SAME, 1) if is_same else (_LEAST_ALIKE, _SHOWN_ALIKE)
    saved = sum(end - begin for begin, end in run[shown:])
    if len(run) < least or saved < 2 * _MARKER:
        return Group(run, len(run), is_same, is_open=False)
    return Group(run, shown, is_same, is_open)


def marker(count: int, last: int | None, *, is_empty: bool) -> str:
    """What stands for `count` lines: behind those shown, up to line `last`; before them where it is None."""
    to = "" if last is None else f", to line {last:,}"
    if is_empty:
        return f"… [{measure.counted(count, 'more empty line')}{to}] …\n"
    if last is None:
        return f"… [{measure.counted(count, 'line')} like the next] …\n"
    return f"… [{measure.counted(count, 'more line')} like it{to}] …\n"
