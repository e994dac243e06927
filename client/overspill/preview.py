"""The part of a long text that is shown: its head, its tail, and the lines between that look like errors.

Pure and deterministic: the same text and budget give the same preview, and a budget in bytes or lines
is never exceeded. Cuts fall on line ends; inside a line only where one line outgrows the budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from overspill import measure
from overspill.highlights import Highlight, highlights
from overspill.measure import Extent
from overspill.plain import clean, cut_after, cut_before

if TYPE_CHECKING:
    from collections.abc import Callable

CEILING: Final = 128 * 1024
_HEAD_SHARE: Final = 0.6
_HIGHLIGHT_SHARE: Final = 0.25
_MIN_FOR_HIGHLIGHTS: Final = 512
_HEAD_LINES: Final = 0.5
_WINDOW: Final = 2
"""Characters looked at for each byte of budget: text in colour has more of them than it shows."""
_MIN_ROWS: Final = 2
_BUT: Final = " but for what looks like an error:"
_END: Final = "…\n"


@dataclass(frozen=True, slots=True)
class Preview:
    """`text` is safe to show. What is left out, lines wholly or in part, is counted in the original."""

    text: str
    omitted_lines: int
    omitted_bytes: int


@dataclass(frozen=True, slots=True)
class Clip:
    """`text` within the ceiling; `size` is that of the original, `omitted_bytes` what the cut took."""

    text: str
    size: int
    omitted_bytes: int


def preview(text: str, max_bytes: int, max_lines: int = 100, extent: Extent | None = None) -> Preview:
    """`text` whole where it fits into both budgets, else its head, highlights and tail.

    `extent` is that of `text`, where the caller has measured it already.
    """
    if _fits(text, max_bytes, max_lines):
        return Preview(clean(text), 0, 0)
    whole = Extent.of(text) if extent is None else extent
    plan = _plan(whole, max_bytes, max_lines)
    if plan is None:
        return Preview("", whole.lines, whole.size)
    stop, start = _ends(text, plan.room - plan.highlight_room, plan.rows - plan.highlight_rows)
    room, rows = plan.highlight_room - len((_BUT + _END).encode()), plan.highlight_rows - 1
    found = highlights(text, stop, start, max_bytes=room, max_lines=rows) if room > 0 and rows > 0 else []
    if not found:
        stop, start = _ends(text, plan.room, plan.rows)
    return _assemble(text, whole.size, stop, start, found)


def describe(data: bytes, media_type: str) -> str:
    """What stands for a preview where there is no text."""
    return f"({measure.counted(len(data), 'byte')} of {media_type}, not text)"


@dataclass(frozen=True, slots=True)
class _Plan:
    """Bytes and lines for all that is shown of the text, and the part of them that highlights may take."""

    room: int
    rows: int
    highlight_room: int
    highlight_rows: int


def _plan(whole: Extent, max_bytes: int, max_lines: int) -> _Plan | None:
    gap = max(measure.size(_gap(whole, within_line=inside)) for inside in (True, False))
    room, rows = max_bytes - gap - len("\n") - len("\n"), max_lines - 1
    if room <= 0 or rows < _MIN_ROWS:
        return None
    if room < _MIN_FOR_HIGHLIGHTS:
        return _Plan(room, rows, 0, 0)
    return _Plan(room, rows, int(room * _HIGHLIGHT_SHARE), rows // 4)


def _fits(text: str, max_bytes: int, max_lines: int) -> bool:
    if len(text) > max_bytes * _WINDOW + measure.MAX_BYTES_PER_CHARACTER:
        return False
    return measure.size(clean(text)) <= max_bytes and measure.lines(text) <= max_lines


def _ends(text: str, room: int, rows: int) -> tuple[int, int]:
    """Where the head stops and the tail starts; what the head leaves unused goes to the tail."""
    head_rows = max(1, int(rows * _HEAD_LINES))
    stop = _head(text, int(room * _HEAD_SHARE), head_rows)
    used = _cost(text[:stop])
    start = _tail(text, stop, room - used, max(1, rows - head_rows))
    return stop, start


def _assemble(text: str, size: int, stop: int, start: int, found: list[Highlight]) -> Preview:
    head, tail = text[:stop], text[start:]
    newlines = measure.newlines(text, stop, start)
    omitted = Extent(size - measure.size(head) - measure.size(tail), newlines + (text[start - 1] != "\n"))
    parts = [clean(head), "\n" if head and not head.endswith("\n") else ""]
    parts += [_gap(omitted, within_line=not newlines, highlighted=bool(found)), "\n"]
    parts += [f"{item.text}\n" for item in found]
    parts += [_END if found else "", clean(tail)]
    return Preview("".join(parts), omitted.lines, omitted.size)


def _gap(omitted: Extent, *, within_line: bool, highlighted: bool = False) -> str:
    size = f"{omitted.size:,} bytes"
    what = f"{size} of this line" if within_line else f"{measure.counted(omitted.lines, 'line')}, {size}"
    return f"… [{what} not shown{_BUT if highlighted else ''}] …"


def _cost(text: str) -> int:
    """Bytes that `text` takes once it is safe to show."""
    return measure.size(clean(text))


def _head(text: str, budget: int, rows: int) -> int:
    """Where a head of `budget` bytes and `rows` lines stops: inside a line if that has most of it."""
    window = text[: budget * _WINDOW]
    stop = used = 0
    for _ in range(rows):
        end = window.find("\n", stop) + 1
        cost = _cost(window[stop : end or len(window)])
        if not end or used + cost > budget:
            return stop if used * 2 > budget else stop + _prefix(window[stop:], budget - used, _cost)
        stop, used = end, used + cost
    return stop


def _tail(text: str, floor: int, budget: int, rows: int) -> int:
    """Where a tail of at most `budget` bytes and `rows` lines starts, at `floor` or later; as `_head`."""
    floor = max(floor, len(text) - budget * _WINDOW)
    start, used = len(text), 0
    for _ in range(rows):
        begin = text.rfind("\n", floor, max(floor, start - 1)) + 1
        cost = _cost(text[begin or floor : start])
        if not begin or used + cost > budget:
            return start if used * 2 > budget else start - _suffix(text[floor:start], budget - used, _cost)
        start, used = begin, used + cost
    return start


def _prefix(text: str, budget: int, cost: Callable[[str], int]) -> int:
    """Characters in the longest prefix that costs at most `budget` and breaks no character."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if cost(text[:middle]) <= budget else (low, middle - 1)
    stop = cut_before(text, low)
    return stop if cost(text[:stop]) <= budget else 0


def _suffix(text: str, budget: int, cost: Callable[[str], int]) -> int:
    """Characters in the longest suffix that costs at most `budget` and breaks no character."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if cost(text[middle:]) <= budget else (middle + 1, high)
    start = cut_after(text, low)
    return len(text) - start if cost(text[start:]) <= budget else 0


def clip(text: str, max_bytes: int = CEILING) -> Clip:
    """`text` under a hard ceiling in bytes, the marker included: head and tail kept around a count.

    Nothing is neutralised: this is for text that goes on to a program. Never longer than `text`.
    """
    size = measure.size(text)
    if size <= max_bytes:
        return Clip(text, size, 0)
    room = max_bytes - len(_clip_marker(size))
    if room <= 0:
        stop = _prefix(text[:max_bytes], max_bytes, measure.size)
        return Clip(text[:stop], size, size - measure.size(text[:stop]))
    stop = _prefix(text[:room], (room + 1) // 2, measure.size)
    tail = text[max(stop, len(text) - room) :]
    tail = tail[len(tail) - _suffix(tail, room // 2, measure.size) :]
    omitted = size - measure.size(text[:stop]) - measure.size(tail)
    return Clip(text[:stop] + _clip_marker(omitted) + tail, size, omitted)


def _clip_marker(omitted: int) -> str:
    return f"\n... [{omitted} bytes truncated; head + tail kept] ...\n"
