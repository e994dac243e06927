"""Preview a long text: its head, its tail, and the lines between that say what matters.

Deterministic: the same text and budget give the same preview. A budget in bytes or lines is never exceeded.
Cuts fall on line ends, or inside a line if that alone outgrows the budget.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.previews import head_tail, json_outline
from overspill.previews.excerpt import excerpt_of_text
from overspill.previews.highlights import highlights
from overspill.previews.rule import MARKED
from overspill.reading.chunks import Extent
from overspill.text import measure, quantities
from overspill.text.measure import MAX_BYTES_PER_CHARACTER
from overspill.text.sanitize import WINDOW, sanitize

if TYPE_CHECKING:
    from overspill.previews.excerpt import Excerpt
    from overspill.previews.head_tail import CutEnd, HeadAndTail
    from overspill.previews.highlights import Highlight

_HEAD_SHARE: Final = 0.5
_HEAD_OF_FAILED_SHARE: Final = 0.2
_HIGHLIGHT_SHARE: Final = 0.6
_HEAD_BESIDE_SHARE: Final = 0.3
"""If something went wrong, the head gets this share of what the lines that say so leave."""
_JSON_HEAD_SHARE: Final = 0.8
_OUTLINE_SHARE: Final = 0.4
_MIN_FOR_HIGHLIGHTS: Final = 512
_MIN_ROWS: Final = 2
_EXCEPT_HIGHLIGHTS: Final = " but for lines that stand out:"
_END_OF_HIGHLIGHTS: Final = "…\n"


def preview(text: str, max_bytes: int, max_lines: int = 100, *, has_failed: bool = False) -> str:
    """Return `text` if it fits into both budgets, else its head, highlights and tail. It is safe to show.

    If the call `has_failed`, more of the end is shown.
    """
    return preview_of(excerpt_of_text(text), max_bytes, max_lines, has_failed=has_failed)


def preview_of(found: Excerpt, max_bytes: int, max_lines: int, *, has_failed: bool = False) -> str:
    """Do the same as `preview`, for an excerpt with twice `max_bytes` of either end."""
    if found.is_whole and _fits(found.text, max_bytes, max_lines):
        return sanitize(found.text)
    return _shortened(found, max_bytes, max_lines, _HEAD_OF_FAILED_SHARE if has_failed else _HEAD_SHARE)


class _Budget(NamedTuple):
    """Bytes and lines."""

    size: int
    rows: int

    def without(self, size: int, rows: int) -> _Budget:
        return _Budget(self.size - size, self.rows - rows)

    def share(self, share: float) -> _Budget:
        return _Budget(int(self.size * share), int(self.rows * share))


def _fits(text: str, max_bytes: int, max_lines: int) -> bool:
    if len(text) > max_bytes * WINDOW + MAX_BYTES_PER_CHARACTER:
        return False
    return measure.size(sanitize(text)) <= max_bytes and measure.count_lines(text) <= max_lines


def _shortened(found: Excerpt, max_bytes: int, max_lines: int, head_share: float) -> str:
    whole = found.whole
    gap = max(measure.size(_gap(whole, within_line=inside)) for inside in (True, False))
    room = _Budget(max_bytes - gap - len("\n") - len("\n"), max_lines - 1)
    if room.size <= 0 or room.rows < _MIN_ROWS:
        return ""
    both = head_tail.HeadAndTail(found.text, found.first_stop, found.last_start)
    if room.size < _MIN_FOR_HIGHLIGHTS:
        return _assembled(found, "", _both_ends(both, found, room, head_share), [])
    shape = json_outline.json_outline(found)
    outline = shape.within(*room.share(_OUTLINE_SHARE)) if shape else ""
    room = room.without(measure.size(outline), outline.count("\n"))
    share = _JSON_HEAD_SHARE if shape else head_share
    if shape is not None and shape.is_whole and not (shape.errors and whole.lines > 1):
        return _assembled(found, outline, _both_ends(both, found, room, share), [])
    head, tail, items = _filled(both, found, room, share)
    return _assembled(found, outline, (head, tail), items)


def _filled(
    both: HeadAndTail, found: Excerpt, room: _Budget, head_share: float
) -> tuple[CutEnd, CutEnd, list[Highlight]]:
    """Return head, tail and highlights. What highlights leave unused goes to head and tail.

    Highlights that head and tail show anyway leave their room too.
    """
    most = room.share(_HIGHLIGHT_SHARE)
    head, tail = _both_ends(both, found, room.without(*most), head_share)
    inside = most.without(len((_EXCEPT_HIGHLIGHTS + _END_OF_HIGHLIGHTS).encode()), 1)
    items = highlights(found, head.edge, tail.edge, max_bytes=inside.size, max_lines=inside.rows)
    if any(item.weight >= MARKED for item in items):
        head_share = min(head_share, _HEAD_BESIDE_SHARE)
    while True:
        used = _Budget(sum(item.cost for item in items), len(items))
        rest = room.without(*used).without(most.size - inside.size, 1) if items else room
        head, tail = _both_ends(both, found, rest, head_share)
        hidden = [item for item in items if item.is_between(head.edge, tail.edge)]
        if len(hidden) == len(items):
            return head, tail, items
        items = hidden


def _both_ends(both: HeadAndTail, found: Excerpt, room: _Budget, head_share: float) -> tuple[CutEnd, CutEnd]:
    """Return head and tail. What the head leaves unused goes to the tail."""
    share = room.share(head_share)
    head = both.head(share.size, max(1, share.rows))
    start = max(head.edge, found.last_start)
    return head, both.tail(start, room.size - head.cost, max(1, room.rows - head.rows))


def _assembled(found: Excerpt, outline: str, both: tuple[CutEnd, CutEnd], items: list[Highlight]) -> str:
    head, tail = both
    if head.edge == tail.edge and found.is_whole:
        return outline + head.text + tail.text
    text, before, after = found.text, found.text[: head.edge], found.text[tail.edge :]
    newlines = found.newlines_between(head.edge, tail.edge)
    size = found.whole.size - measure.size(before) - measure.size(after)
    omitted = Extent(size, newlines + (text[tail.edge - 1] != "\n"))
    parts = [outline, head.text, "\n" if before and not before.endswith("\n") else ""]
    parts += [_gap(omitted, within_line=not newlines, highlighted=bool(items)), "\n"]
    parts += [f"{item.text}\n" for item in items]
    parts += [_END_OF_HIGHLIGHTS if items else "", tail.text]
    return "".join(parts)


def _gap(omitted: Extent, *, within_line: bool, highlighted: bool = False) -> str:
    size = f"{omitted.size:,} bytes"
    what = f"{size} of this line" if within_line else f"{quantities.plural(omitted.lines, 'line')}, {size}"
    return f"… [{what} not shown{_EXCEPT_HIGHLIGHTS if highlighted else ''}] …"
