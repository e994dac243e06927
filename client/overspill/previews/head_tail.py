"""The head and the tail of a text, each within a budget. Lines that repeat are folded, long lines are cut."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import tee
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.previews import folding, rewritten
from overspill.text import measure
from overspill.text.measure import MAX_BYTES_PER_CHARACTER
from overspill.text.sanitize import WINDOW, cut_after, cut_before, longest_fitting, sanitize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from overspill.previews.folding import Group, KeyedLine

HUGE_LINE_CHARS: Final = 8 * 1024
"""A longer line is not cut in its middle: the head ends inside it, or the tail begins there."""
_KEYED_AT_ONCE: Final = 1024
"""Characters of lines that are split in one go, as few as most previews show."""
_MIN_LINE_BYTES: Final = 40


class CutEnd(NamedTuple):
    """One end as it is shown. The head stops at `edge`, or the tail starts there."""

    edge: int
    text: str
    rows: int

    @property
    def cost(self) -> int:
        """Return the bytes of the text."""
        return measure.size(self.text)


class HeadAndTail:
    """The beginning of `text[:stop]` and the end of `text[start:]`, for one budget after another.

    Lines are cleaned and compared once.
    """

    def __init__(self, text: str, stop: int, start: int) -> None:
        if stop == len(text):  # the last line of all is left to the tail
            stop = text.rfind("\n", 0, stop - 1) + 1 or stop
        self._text, self._stop = text, stop
        self._head = folding.groups(text, _forward(text, stop))
        self._tail = folding.groups(text, _backward(text, start))
        self._cleaned: dict[int, str] = {}

    def head(self, budget: int, rows: int) -> CutEnd:
        """Return the beginning in at most `budget` bytes and `rows` lines."""
        side = _Side(self._text, budget, rows, self._cleaned, is_tail=False)
        self._head, groups = tee(self._head)
        return _filled(side, groups, 0, self._stop)

    def tail(self, start: int, budget: int, rows: int) -> CutEnd:
        """Return the end, not before `start`, in at most `budget` bytes and `rows` lines."""
        side = _Side(self._text, budget, rows, self._cleaned, is_tail=True)
        self._tail, whole = tee(self._tail)
        groups = (group for each in whole for group in _from(self._text, each, start))
        return _filled(side, groups, len(self._text), start)


def _from(text: str, group: Group, start: int) -> Iterator[Group]:
    """Yield the lines of a group, from the last on, that do not begin before `start`."""
    spans = [span for span in group.spans if span[0] >= start]
    if not spans:
        return
    is_last = text.find("\n", start, max(start, spans[-1][0] - 1)) < 0
    is_whole = len(spans) == len(group.spans) and (group.is_open or not is_last)
    yield group if is_whole else folding.unfollowed(text, spans)


class _Row(NamedTuple):
    edge: int
    text: str


@dataclass(frozen=True, slots=True)
class _Side:
    """One end and its budget. `cleaned` maps where lines begin to how they are shown."""

    text: str
    budget: int
    max_rows: int
    cleaned: dict[int, str]
    is_tail: bool

    def rows(self, groups: Iterator[Group]) -> Iterator[_Row]:
        for group in groups:
            for begin, end in group.spans[: group.shown]:
                yield self._line(begin, end)
            if group.is_open:
                return
            if group.shown < len(group.spans):
                yield self._fold(group)

    def _line(self, begin: int, end: int) -> _Row:
        far = begin if self.is_tail else end
        shown = self.cleaned.get(begin)
        if shown is None:
            shown = self.cleaned[begin] = rewritten.shown(self.text[begin:end])
        limit = max(self.budget // 2, _MIN_LINE_BYTES)
        if measure.size(shown) <= limit:
            return _Row(far, shown)
        line = self.text[begin:end]
        first, last = _parted(line, limit)
        hidden = measure.size(line) - measure.size(first) - measure.size(last)
        return _Row(far, f"{sanitize(first)}… [{hidden:,} bytes of this line] …{sanitize(last)}")

    def _fold(self, group: Group) -> _Row:
        hidden = group.spans[group.shown :]
        begin, end = min(hidden)[0], max(hidden)[1]
        is_empty = not self.text[begin:end].strip()
        last = None if self.is_tail else measure.count_newlines(self.text, 0, end)
        return _Row(begin if self.is_tail else end, folding.marker(len(hidden), last, is_empty=is_empty))

    def part(self, edge: int, limit: int, room: int) -> tuple[int, str]:
        """Return as much of the huge line at `edge` as there is room for, behind where that ends."""
        if self.is_tail:
            begin = self.text.rfind("\n", limit, max(limit, edge - 1)) + 1 or limit
            part = self.text[max(begin, edge - room * WINDOW) : edge]
            part = part[len(part) - suffix(part, room) :]
            part = part[rewritten.begin_of_last(part) :]
            return edge - len(part), sanitize(part)
        end = self.text.find("\n", edge, limit) + 1 or limit
        part = self.text[edge : min(end, edge + room * WINDOW)]
        part = part[: prefix(part, room)]
        part = part[: rewritten.end_of_first(part)]
        return edge + len(part), sanitize(part)


def _filled(side: _Side, groups: Iterator[Group], edge: int, limit: int) -> CutEnd:
    texts: list[str] = []
    used = 0
    for row in side.rows(groups):
        cost = measure.size(row.text)
        if len(texts) == side.max_rows or used + cost > side.budget:
            break
        texts.append(row.text)
        edge, used = row.edge, used + cost
    if len(texts) < side.max_rows and used * 2 <= side.budget and _is_huge(side, edge, limit):
        edge, part = side.part(edge, limit, side.budget - used)
        texts.append(part)
    return CutEnd(edge, "".join(reversed(texts) if side.is_tail else texts), len(texts))


def _is_huge(side: _Side, edge: int, limit: int) -> bool:
    """Return whether the line beyond `edge` is too long for a row."""
    if side.is_tail:
        begin = side.text.rfind("\n", max(limit, edge - HUGE_LINE_CHARS), edge - 1) + 1
        return (
            edge > limit
            and not begin
            and (edge - limit > HUGE_LINE_CHARS or not _begins_line(side.text, limit))
        )
    return edge < limit and side.text.find("\n", edge, min(limit, edge + HUGE_LINE_CHARS)) < 0


def _begins_line(text: str, at: int) -> bool:
    return not at or text[at - 1] == "\n"


def _forward(text: str, stop: int) -> Iterator[KeyedLine]:
    """Yield lines from the first on, until one is huge or has no end."""
    begin = 0
    while end := (
        text.rfind("\n", begin, min(stop, begin + _KEYED_AT_ONCE)) + 1
        or text.rfind("\n", begin, min(stop, begin + HUGE_LINE_CHARS)) + 1
    ):
        yield from folding.keyed_lines(text, begin, end)
        begin = end


def _backward(text: str, start: int) -> Iterator[KeyedLine]:
    """Yield lines from the last on, until one is huge or begins before `start`."""
    end = len(text)
    while end > start:
        begin = _line_begin(text, start, end, _KEYED_AT_ONCE)
        if begin == end:
            begin = _line_begin(text, start, end, HUGE_LINE_CHARS)
        if begin == end:
            return
        yield from reversed(folding.keyed_lines(text, begin, end))
        end = begin


def _line_begin(text: str, start: int, end: int, reach: int) -> int:
    """Return where the first line begins of those within `reach` before `end`; `end` if there is none."""
    floor = start if end - start <= reach else end - reach + 1
    return floor if _begins_line(text, floor) else text.find("\n", floor, end - 1) + 1 or end


def _parted(line: str, limit: int) -> tuple[str, str]:
    """Return the two ends of a line that fit into `limit` bytes with the marker between them."""
    room = limit - len(f"… [{len(line) * MAX_BYTES_PER_CHARACTER:,} bytes of this line] …".encode())
    first = line[: prefix(line, max(0, room * 2 // 3))]
    rest = line[len(first) :]
    return first, rest[len(rest) - suffix(rest, max(1, room // 3)) :]


def _cost(text: str) -> int:
    """Return the bytes of `text` once it is safe to show."""
    return measure.size(sanitize(text))


def prefix(text: str, budget: int) -> int:
    """Return the characters of the longest prefix that costs at most `budget` and breaks no character."""
    stop = cut_before(text, longest_fitting(len(text), lambda length: _cost(text[:length]) <= budget))
    return stop if _cost(text[:stop]) <= budget else 0


def suffix(text: str, budget: int) -> int:
    """Return the characters of the longest suffix that costs at most `budget` and breaks no character."""
    size = len(text)
    longest = longest_fitting(size, lambda length: _cost(text[size - length :]) <= budget)
    start = cut_after(text, size - longest)
    return size - start if _cost(text[start:]) <= budget else 0
