"""Data as a model sees it: JSON on one line, with long texts apart.

Data may be hostile: of any depth, with cycles, shared parts, or methods that raise. So nothing here recurses,
and a walk ends as soon as the answer is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from overspill.shapes.fields import is_a, parts_of
from overspill.shapes.json_pieces import LONG_TEXT_CHARS, json_pieces
from overspill.text import measure
from overspill.text.limits import UNLIMITED
from overspill.text.rendering import PlainStats, is_plain_container, plain_stats

if TYPE_CHECKING:
    from collections.abc import Iterator

_UNCOUNTED_FRAME_BYTES: Final = 1_000
"""The bytes around long texts up to which they do not count."""
MAX_PARTS: Final = 10_000
MAX_VALUES: Final = 300_000
_MAX_ENCODED_CHARS: Final = 1024 * 1024
ENCODING_ERRORS: Final = (UnicodeEncodeError, RecursionError, OverflowError)
"""The errors that msgspec raises for lone surrogates, great depth and large numbers."""


class DataView(NamedTuple):
    """Data as a model sees it: its long texts, and everything else as JSON on one line, the `frame`.

    `is_over` says that there is more than the requested amount.
    """

    texts: list[str]
    frame: str
    is_over: bool

    @property
    def size(self) -> int:
        """Bytes of texts and frame."""
        return sum(map(measure.size, self.texts)) + measure.size(self.frame)

    @property
    def measured(self) -> list[str]:
        """The texts that count: a small frame around long texts does not."""
        if self.texts and len(self.frame) <= _UNCOUNTED_FRAME_BYTES:
            return self.texts
        return [*self.texts, self.frame]


def size_of(value: Any, found: PlainStats | None = None) -> int:
    """Return the bytes of `value` as a model sees it; if it has millions of values, of the first ones.

    `found` is what `plain_stats` said of it, if that is known.
    """
    if found is None and is_plain_container(value):
        found = plain_stats(value, MAX_PARTS)
    if found is not None and found.chars <= _MAX_ENCODED_CHARS:
        try:
            return len(msgspec.json.encode(value))
        except ENCODING_ERRORS:
            pass
    return view(value).size


def view(value: Any, limit: int = UNLIMITED) -> DataView:
    """Return the view of `value` that a model gets, up to a little more than `limit` bytes."""
    frame = _plain_frame(value, limit)
    if frame is not None:
        return DataView([], frame, is_over=len(frame) > limit + _UNCOUNTED_FRAME_BYTES)
    texts: list[str] = []
    pieces: list[str] = []
    room, values = limit + _UNCOUNTED_FRAME_BYTES, MAX_VALUES
    for piece in json_pieces(value):
        (texts if len(piece) >= LONG_TEXT_CHARS else pieces).append(piece)
        room -= len(piece)
        values -= 1
        if room < 0 or not values:
            return DataView(texts, "".join(pieces), is_over=True)
    return DataView(texts, "".join(pieces), is_over=False)


def _plain_frame(value: Any, limit: int) -> str | None:
    """Return the JSON of plain data without long texts, which msgspec encodes at once; None for other data.

    Each value has a byte at least, so data with too many values is not looked at to its end.
    """
    max_values = min(limit + _UNCOUNTED_FRAME_BYTES, MAX_VALUES)
    if not is_plain_container(value) or plain_stats_without_long_texts(value, max_values) is None:
        return None
    try:
        return msgspec.json.encode(value).decode()
    except ENCODING_ERRORS:
        return None


def plain_stats_without_long_texts(value: Any, limit: int) -> PlainStats | None:
    """Return the stats of plain data of up to `limit` values without long texts; None for other data."""
    found = plain_stats(value, limit)
    if found is None or found.longest >= LONG_TEXT_CHARS or found.chars > _MAX_ENCODED_CHARS:
        return None
    return found


def texts_in(value: Any) -> Iterator[str]:
    """Yield the texts in `value` and the names of its entries, of 10,000 parts at most."""
    level, parts_left = [value], MAX_PARTS
    while level and parts_left > 0:
        below: list[Any] = []
        for each in level:
            if is_a(each, str):
                yield each
                continue
            parts_left -= 1
            for step, part in parts_to_cut(each) or ():
                if is_a(step, str):
                    yield step
                below.append(part)
        level = below


class Weight(NamedTuple):
    """The size of a part of data: its bytes, and the lines of its long texts."""

    size: int
    lines: int


def weight_within(value: Any, limit: int) -> Weight:
    """Return the weight of `value`. Above `limit` bytes, return a size above that, and the lines so far."""
    if type(value) is str and len(value) >= LONG_TEXT_CHARS and value.isascii():
        return Weight(len(value) + 2, measure.count_lines(value))
    found = view(value, limit)
    size = max(limit + 1, found.size) if found.is_over else found.size
    return Weight(size, sum(map(measure.count_lines, found.texts)))


def size_within(value: Any, limit: int) -> int:
    """Return the bytes of `value`, or a number above `limit`."""
    return weight_within(value, limit).size


def parts_to_cut(value: Any) -> list[tuple[Any, Any]] | None:
    """Return the parts of a value that can be cut one by one, each behind its step; None if it has none."""
    try:
        return None if is_a(value, (set, frozenset)) else parts_of(value, MAX_PARTS)
    except Exception:  # noqa: BLE001  (foreign methods: whatever they raise)
        return None
