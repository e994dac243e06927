"""Finds the lines of an output that a preview shows whole, by comparing the two.

It never names too many: each line that it names is in the preview exactly as in the output. It does not name
a line that was cut, or lines that a fold stands for.
"""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from overspill.text.sanitize import WINDOW, sanitize

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from overspill.previews.excerpt import Excerpt

_MIN_WINDOW: Final = 4 * 1024
_MAX_MISSES: Final = 16
"""Lines between both ends that may be looked for in vain: each takes a look at the whole output."""
_MAX_RANGES: Final = 40
_PLACE: Final = re.compile(r"line [\d,]+: ")
_LIKE_IT: Final = re.compile(r" \(and [^()]* like it, to line [\d,]+\)\Z")
"""What the preview says before and after a line that stands out."""
_GAP: Final = "… ["
"""The beginning of a line of the preview's own."""


def seen_lines(preview: str, found: Excerpt) -> str:
    """Return the lines as `1-18,433,990-1002`, numbered from 1; empty if there are none."""
    if not preview:
        return ""
    shown = preview.removesuffix("\n").split("\n")
    reach = max(_MIN_WINDOW, WINDOW * len(preview))
    first = _equal(shown, _beginning(found, reach))
    last = _equal(shown[first:][::-1], _end(found, reach)[::-1])
    numbers = [*range(1, first + 1)]
    numbers += _between(shown[first : len(shown) - last], found)
    numbers += range(found.whole.lines - last + 1, found.whole.lines + 1)
    return _ranges(dict.fromkeys(numbers))


def _equal(shown: Sequence[str], lines: Sequence[str]) -> int:
    """Return how many lines are the same at the beginning of both."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(shown, lines, strict=False)))


def _beginning(found: Excerpt, reach: int) -> list[str]:
    """Return the first whole lines, as they are shown."""
    return sanitize(found.text[: min(found.first_stop, reach)]).split("\n")[:-1]


def _end(found: Excerpt, reach: int) -> list[str]:
    """Return the last whole lines, as they are shown."""
    start = max(found.last_start, len(found.text) - reach)
    lines = sanitize(found.text[start:]).removesuffix("\n").split("\n")
    return lines if start == 0 else lines[1:]


def _between(shown: Iterable[str], found: Excerpt) -> Iterator[int]:
    """Yield the numbers of these lines, in the order of the output. Of equal ones it is the next."""
    number, position, misses = found.numbering(), 0, 0
    for each in shown:
        line = _said(each)
        if not line.strip() or line.startswith(_GAP):
            continue
        at = found.text.find(f"\n{line}\n", position)
        if at >= 0:
            yield number(at + 1)
            position = at + len(line) + 1
        elif (misses := misses + 1) == _MAX_MISSES:
            return


def _said(shown: str) -> str:
    place = _PLACE.match(shown)
    return shown if place is None else _LIKE_IT.sub("", shown[place.end() :])


def _ranges(numbers: Iterable[int]) -> str:
    ends: list[list[int]] = []
    for number in sorted(numbers):
        if ends and number == ends[-1][1] + 1:
            ends[-1][1] = number
        else:
            ends.append([number, number])
    if len(ends) > _MAX_RANGES:
        ends = [*ends[: _MAX_RANGES - 1], ends[-1]]
    return ",".join(f"{first}-{last}" if first < last else str(first) for first, last in ends)
