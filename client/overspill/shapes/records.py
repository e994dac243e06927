"""Records of a stream, as dicts that come one by one: they pass while they fit, and are kept as JSON Lines.

Records pass as they come until only the room for a notice is left. The next ones wait. If the whole stream
fits, they pass at its end; otherwise one record like them, with a notice in it, stands in their place.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from overspill.shapes.data_view import size_within, view
from overspill.shapes.field_copies import with_fields, with_text
from overspill.shapes.fields import get, is_a, is_text
from overspill.shapes.short_copy import short_copy
from overspill.shapes.writer import as_text
from overspill.text.limits import UNLIMITED, exceeds, surely_fitting_chars
from overspill.text.rendering import (
    MAX_INDENTED_DEPTH,
    compact_json,
    is_opaque,
    is_plain_container,
    plain_stats,
)

if TYPE_CHECKING:
    from overspill.previews.notice_facts import Notice
    from overspill.text.buffer import Buffer
    from overspill.text.limits import Limits

NDJSON_TYPE: Final = "application/x-ndjson"
MAX_HELD_BYTES: Final = 8 * 1024 * 1024
"""The most bytes that are held back. No conversation has room for more, whatever the limits say."""
_FEW_VALUES: Final = 4_000
_SMALL_CHARS: Final = 64 * 1024
_HEAVY_BYTES: Final = 16 * 1024
_SHORT_RECORD_BYTES: Final = 1_000
_REMARK_KEY: Final = "overspill"
_TEXT_FIELDS: Final = ("content", "text", "output", "delta", "message", "data", "result", "value", "line")
"""Fields in which records keep what people read, the likeliest first."""


class Reserve(NamedTuple):
    """The bytes to hold back: `notice` for a notice; None means that a notice takes all the room.

    Streams of up to `small` bytes are held back whole, since a notice might be no shorter.
    """

    notice: int | None = None
    small: int = 0


class Records:
    """The records of one stream. `size` counts the bytes of all, `passed` those that have passed already."""

    def __init__(self, limits: Limits, buffer: Buffer, reserve: Reserve) -> None:
        self.size: int = 0
        self.passed: int = 0
        self.first: Any = None
        self.waiting: list[Any] | None = []
        """The records that have not passed; None once they are too many to pass."""
        self.buffer = buffer
        self._limits = limits._replace(max_bytes=min(limits.max_bytes, MAX_HELD_BYTES))
        self._room = _open_room(self._limits, reserve.notice)
        self._small = reserve.small
        self._chars = self._newlines = 0
        self._is_ended = False
        self._texts: list[str] = []

    def take(self, record: Any) -> list[Any]:
        """Take a record. Return the records that pass now. Raises `CannotBuffer`."""
        if is_opaque_record(record):
            return self._passing(record)
        line = line_of(record)
        self.buffer.write(f"{line}\n")
        self._count(record, line)
        passing = self._passing(record)
        if passing:
            self.passed = self.size
        if self.waiting is not None and self.size > self._small and not self._may_fit():
            passing += [each for each in self.waiting if is_opaque_record(each)]
            self.waiting = None
            self._texts.clear()
        return passing

    def fits(self) -> bool:
        """Return whether all records are within all limits."""
        if self._is_ended or not self._may_fit():
            return False
        if self._limits.max_tokens is None:
            return True
        return not exceeds("\n".join(self._texts), self._limits._replace(max_lines=UNLIMITED))

    def add_remark(self, reason: str, *, is_end: bool = False) -> None:
        """Add a line that says why there are no more. With `is_end`, the stream does not fit."""
        self._is_ended = self._is_ended or is_end
        self.buffer.add_line(compact_json({_REMARK_KEY: reason}))

    def remaining(self) -> Limits:
        """Return what the records that passed leave of the limits for a notice."""
        chars = self._limits.max_chars
        return self._limits._replace(
            max_bytes=max(0, self._limits.max_bytes - self.passed),
            max_chars=None if chars is None else max(0, chars - self.passed),
        )

    def _passing(self, record: Any) -> list[Any]:
        if self.waiting is None:
            return [record] if is_opaque_record(record) else []
        if self.waiting or self.size > self._room or not self._may_fit():
            self.first = self.first if self.waiting else record
            self.waiting.append(record)
            return []
        return [record]

    def _count(self, record: Any, line: str) -> None:
        if self.waiting is None:
            self.size += len(line)
            return
        seen = view(record, self._limits.max_bytes)
        self.size += seen.size
        self._chars += sum(map(len, seen.texts)) + len(seen.frame)
        self._newlines += sum(text.count("\n") for text in seen.texts)
        if self._limits.max_tokens is not None:
            self._texts += seen.measured

    def _may_fit(self) -> bool:
        limits = self._limits
        return (
            self.size <= limits.max_bytes
            and self._newlines <= limits.max_lines
            and (limits.max_chars is None or self._chars <= limits.max_chars)
        )


def _open_room(limits: Limits, reserve: int | None) -> int:
    """Return how many bytes of records pass before it is known whether all fit; 0 for small limits."""
    if reserve is None:
        return 0
    is_of_bytes = limits.max_chars is None and limits.max_tokens is None
    sure = surely_fitting_chars(limits._replace(max_lines=UNLIMITED))
    room = limits.max_bytes if is_of_bytes else sure
    return room - reserve if room >= 2 * reserve else 0


def line_of(record: Any) -> str:
    """Return `record` as JSON on one line, whatever it is."""
    found = plain_stats(record, _FEW_VALUES) if is_plain_container(record) else None
    if found is not None and found.chars <= _SMALL_CHARS and found.depth <= MAX_INDENTED_DEPTH:
        try:
            return compact_json(record)
        except (ValueError, TypeError, RuntimeError):  # a number too long to print; changed meanwhile
            pass
    return _LINE_BREAK.sub(lambda found: ", " if found[1] else "", as_text(record))


_LINE_BREAK: Final = re.compile(r"(,?)\n *")


def record_size(record: Any) -> int:
    """Estimate the bytes of `record` quickly. A record of `_HEAVY_BYTES` takes time to measure."""
    if is_a(record, (str, bytes)):
        return len(record)
    if record is None or is_a(record, (int, float)):
        return 0
    found = plain_stats(record, _FEW_VALUES) if is_plain_container(record) else None
    return _HEAVY_BYTES if found is None else found.chars


def short_record(record: Any, notice: Notice) -> Any:
    """Return a record like `record` with the notice in it; the notice itself if there can be none."""
    text = str(notice)
    try:
        field = next((name for name in _TEXT_FIELDS if is_text(get(record, name))), "")
        if field and size_within(record, _SHORT_RECORD_BYTES) <= _SHORT_RECORD_BYTES:
            return with_fields(record, {field: with_text(get(record, field), text)})
        return short_copy(record, text, str(replace(notice, preview="", text=None)), is_item=True)
    except Exception:  # noqa: BLE001  (it cannot be copied, or a foreign method: whatever it raises)
        return text


def is_opaque_record(record: Any) -> bool:
    """Return whether `record` has nothing to show or to keep."""
    try:
        return is_opaque(record)
    except Exception:  # noqa: BLE001  (a foreign metaclass: whatever it raises)
        return True
