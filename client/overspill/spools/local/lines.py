"""Lines by number: the first, the last, and any between, bounded in lines and bytes.

Content is given exactly as it was captured, line ends included, so consecutive answers join without a seam.
An answer ends at a line end where one fits; only a line longer than the cap is cut inside, at a character,
and `next` then says the offset in it to go on at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.spools.local.places import newline_position
from overspill.spools.local.text import Decoded, cut_after, cut_before, decode
from overspill.wire import Text, approx_tokens

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.spools.local.places import Bytes

MAX_LINES: Final = 1_000
"""What one answer may hold: the service's own caps."""
MAX_BYTES: Final = 64 * 1024
_MARGIN: Final = 4
"""Bytes held beyond the cap, to see whether it falls on a line end or inside a character."""


class Whole(NamedTuple):
    """A capture: its bytes, and how many lines they are."""

    data: Bytes
    lines: int


class Beyond(Exception):
    """Where reading is to begin lies behind the end of its line."""


class Span(NamedTuple):
    """Lines `first` to `last` (None: to the end), the first of them from byte `offset` on."""

    first: int
    last: int | None = None
    offset: int = 0


def between(
    whole: Whole, span: Span, *, mode: str = "lines", ansi: bool = False, max_bytes: int | None = None
) -> Text:
    """Raises `Beyond` where line `first` ends before `offset`."""
    end = min(whole.lines, whole.lines if span.last is None else span.last)
    if span.first > whole.lines:
        return _text(mode, Decoded("", replaced=False), (span.first, span.first - 1), whole, None)
    start, origin = _origin(whole, span)
    wanted = min(end, span.first + MAX_LINES - 1) - span.first + 1
    size = MAX_BYTES if max_bytes is None else max_bytes
    data = whole.data.at(origin, origin + size + _MARGIN)
    raw, decoded = _fit(size, ansi, lambda cap: data[: _cut(data, wanted, cap)])
    last = span.first + _count_lines(raw) - 1
    is_whole = raw.endswith(b"\n") or origin + len(raw) == whole.data.size
    offset = None if is_whole else origin + len(raw) - start
    following = None if is_whole and last >= end else _following(span, last, offset)
    return _text(mode, decoded, (span.first, last), whole, following)


def _origin(whole: Whole, span: Span) -> tuple[int, int]:
    """Where line `first` starts, and where reading begins: there, or at a character near the offset."""
    start = whole.data.start_of_line(span.first)
    if not span.offset:
        return start, start
    origin = start + span.offset
    if origin >= whole.data.size or whole.data.line_end(start) < origin:
        raise Beyond
    return start, _behind_character(whole.data, origin)


def _behind_character(data: Bytes, origin: int) -> int:
    """`origin`, or the end of the UTF-8 character that it lies in."""
    begin = max(0, origin - _MARGIN + 1)
    near = data.at(begin, origin + _MARGIN)
    for start in range(origin - begin):
        for size in (2, 3, 4):
            if start + size > origin - begin and _is_character(near[start : start + size]):
                return begin + start + size
    return origin


def _is_character(data: bytes) -> bool:
    try:
        return len(data.decode()) == 1
    except UnicodeDecodeError:
        return False


def _cut(data: bytes, lines: int, cap: int) -> int:
    """Where the answer ends in `data`: behind the last line wanted that fits, else inside the first."""
    if data.count(b"\n", 0, cap) >= lines:
        return newline_position(data, lines) + 1
    if len(data) <= cap:
        return len(data)
    return data.rfind(b"\n", 0, cap) + 1 or cut_before(data, cap)


def _following(span: Span, last: int, offset: int | None) -> dict[str, str] | None:
    """The query that goes on behind line `last`, or at `offset` inside it."""
    if last < span.first:
        return None
    query = {"start": str(last + 1 if offset is None else last)}
    if offset is not None:
        query["offset"] = str(offset)
    if span.last is not None:
        query["end"] = str(span.last)
    return query


def tail(whole: Whole, lines: int, *, ansi: bool = False, max_bytes: int | None = None) -> Text:
    """The last `lines` lines; of a last line longer than the cap, its end."""
    asked = min(lines, whole.lines)
    wanted = min(asked, MAX_LINES)
    size = whole.data.size
    most = MAX_BYTES if max_bytes is None else max_bytes
    data = whole.data.at(max(0, size - most - _MARGIN), size)
    raw, decoded = _fit(most, ansi, lambda cap: data[_tail_cut(data, wanted, cap) :])
    start = whole.lines - _count_lines(raw) + 1
    first, cut = whole.lines - asked + 1, len(data) - len(raw)
    is_inside = len(raw) < size and cut > 0 and data[cut - 1 : cut] != b"\n"
    following = None
    if start > first or is_inside:
        following = {"start": str(first), "end": str(start if is_inside else start - 1)}
    return _text("tail", decoded, (start, whole.lines), whole, following)


def _tail_cut(data: bytes, lines: int, cap: int) -> int:
    """Where the answer begins in `data`: at a line's start where one fits, else inside the last."""
    surplus = _count_lines(data) - lines
    start = newline_position(data, surplus) + 1 if surplus > 0 else 0
    if len(data) - start <= cap:
        return start
    start = len(data) - cap
    line_start = data.find(b"\n", start - 1, len(data) - 1) + 1
    return line_start or cut_after(data, start)


def _count_lines(data: bytes) -> int:
    return data.count(b"\n") + (1 if data and not data.endswith(b"\n") else 0)


def _fit(size: int, ansi: bool, choose: Callable[[int], bytes]) -> tuple[bytes, Decoded]:  # noqa: FBT001
    """What `choose` gives for the largest cap whose text is within `size`: replacing bad bytes lengthens."""
    cap = size
    while True:
        raw = choose(cap)
        decoded = decode(raw, ansi=ansi)
        taken = len(decoded.text.encode()) if decoded.replaced else 0
        if taken <= size or cap == 1:
            return raw, decoded
        cap = max(1, min(cap - 1, cap * size // taken))


def _text(
    mode: str, decoded: Decoded, span: tuple[int, int], whole: Whole, following: dict[str, str] | None
) -> Text:
    return Text(
        content=decoded.text,
        start_line=span[0],
        end_line=span[1],
        total_lines=whole.lines,
        total_bytes=whole.data.size,
        mode=mode,
        truncated=following is not None,
        approx_tokens=approx_tokens(len(decoded.text.encode())),
        next=following,
        replaced=decoded.replaced,
    )
