"""Fold lines that differ only in their numbers: find which are alike, and mark how many there are."""

from __future__ import annotations

import re
from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.text import quantities

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

LineSpan = tuple[int, int]
"""Begin and end of a line in a text, its newline included."""
KeyedLine = tuple[int, int, bytes]
"""The same with what the line is without its digits."""

MAX_COMPARED_CHARS: Final = 1_000
"""Longer lines are not compared."""
_MAX_RUN_LINES: Final = 1_000
_MAX_RUN_CHARS: Final = 64 * 1024
"""A longer run of lines that are alike is left open: its end is not searched for."""
_MIN_SAME: Final = 3
_MIN_ALIKE: Final = 6
_SHOWN_ALIKE: Final = 3
_MARKER_BYTES: Final = 60
"""Bytes of a marker. Folding has to save twice as many."""
_DIGITS: Final = b"0123456789"
_NUMERIC: Final = b"0123456789abcdefABCDEFxX.,: \t\r\n"
"""All bytes of which numbers and the blanks around a line are made."""
_UNCOMPARED: Final = _NUMERIC + bytes([*range(0x0B, 0x0D), *range(0x1C, 0x20)])
"""The same with every blank that `str.strip` takes off."""
_NUMBER: Final = re.compile(
    r"0[xX][0-9a-fA-F]+"
    r"|\b(?=[a-fA-F]{0,31}\d)[0-9a-fA-F]{6,}\b"
    r"|\d+(?:[.,:]\d+)*"
)


def masked(line: str) -> str:
    """Return `line` with each number, time and hexadecimal word as one `0`, to compare lines."""
    return _NUMBER.sub("0", line).strip()


def comparable(lines: Sequence[str]) -> list[str]:
    """Return a text for each line that is equal for lines whose `masked` is equal.

    Where no other line can be like it, that is the line itself: to mask one takes most of the time.
    """
    if not all(map(str.isascii, lines)):
        return list(map(masked, lines))
    letters = [line.encode().translate(None, _UNCOMPARED) for line in lines]
    counts = Counter(letters)
    return [masked(line) if counts[key] > 1 else line for line, key in zip(lines, letters, strict=True)]


class Group(NamedTuple):
    """Consecutive lines that are alike. The first `shown` are shown, a marker stands for the others.

    `is_open` says that more of the same may follow, uncounted.
    """

    spans: list[LineSpan]
    shown: int
    is_open: bool = False


def keyed_lines(text: str, begin: int, end: int) -> list[KeyedLine]:
    """Return the lines of `text[begin:end]`, which are whole, each with what it is without its digits."""
    block = text[begin:end]
    edges = list(accumulate([len(line) + 1 for line in block.split("\n")], initial=begin))
    if block.endswith("\n"):
        edges.pop()
    edges[-1] = end
    return list(zip(edges, edges[1:], _without(_DIGITS, block).split(b"\n"), strict=False))


def groups(text: str, lines: Iterable[KeyedLine]) -> Iterator[Group]:
    """Yield groups of lines that are alike. The lines may come forwards or backwards."""
    run: list[LineSpan] = []
    last, reach = b"", 0
    for begin, end, key in lines:
        if run and key != last and not _are_alike(text, run[-1], (begin, end)):
            yield _group_of(text, run)
            run, reach = [], 0
        run.append((begin, end))
        last, reach = key, reach + end - begin
        if len(run) > _MIN_ALIKE and (len(run) > _MAX_RUN_LINES or reach > _MAX_RUN_CHARS):
            is_same = _is_same(text, run)
            yield Group(run, 1 if is_same else len(run), is_open=is_same)
            run, reach = [], 0
    if run:
        yield unfollowed(text, run)


def unfollowed(text: str, run: list[LineSpan]) -> Group:
    """Return the group of a run that nothing follows. All its lines are shown, unless they are the same."""
    return _group_of(text, run) if _is_same(text, run) else Group(run, len(run))


def _are_alike(text: str, one: LineSpan, other: LineSpan) -> bool:
    """Return whether two lines are alike. The pattern runs only if their letters are equal."""
    if max(one[1] - one[0], other[1] - other[0]) > MAX_COMPARED_CHARS:
        return False
    first, second = text[one[0] : one[1]], text[other[0] : other[1]]
    return _without(_NUMERIC, first) == _without(_NUMERIC, second) and masked(first) == masked(second)


def _without(characters: bytes, text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass").translate(None, characters)


def _is_same(text: str, run: list[LineSpan]) -> bool:
    first = text[run[0][0] : run[0][1]]
    return all(text.startswith(first, begin) and end - begin == len(first) for begin, end in run)


def _group_of(text: str, run: list[LineSpan]) -> Group:
    """Return the group of a run that another line ended, folded if that saves enough."""
    if len(run) < _MIN_SAME:
        return Group(run, len(run))
    least, shown = (_MIN_SAME, 1) if _is_same(text, run) else (_MIN_ALIKE, _SHOWN_ALIKE)
    saved = sum(end - begin for begin, end in run[shown:])
    return Group(run, len(run) if len(run) < least or saved < 2 * _MARKER_BYTES else shown)


def marker(count: int, last: int | None, *, is_empty: bool) -> str:
    """Return the marker for `count` lines behind the shown ones, up to line `last`; None: before them."""
    to = "" if last is None else f", to line {last:,}"
    if is_empty:
        return f"… [{quantities.plural(count, 'more empty line')}{to}] …\n"
    if last is None:
        return f"… [{quantities.plural(count, 'line')} like the next] …\n"
    return f"… [{quantities.plural(count, 'more line')} like it{to}] …\n"
