"""Cut the updates that a tool sends while it runs. They are not stored, because the result follows.

An update keeps its shape, and a small one is the same object. Its texts share the limits in order: those that
fit stay, the first that does not fit is cut in its middle, later ones become a short remark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from overspill.previews.cut import ENDS, cut
from overspill.previews.excerpt import excerpt_of_text
from overspill.shapes.envelope import Envelope
from overspill.shapes.examination import examine
from overspill.shapes.exceptions import ExceptionShape, with_message
from overspill.shapes.field_copies import with_text
from overspill.shapes.replacing import REMOVED, is_removable, with_texts, with_values
from overspill.shapes.short_copy import short_copy
from overspill.shapes.single_values import BinaryShape, PrintedShape
from overspill.shapes.writer import as_text, text_of
from overspill.text import quantities
from overspill.text.limits import UNLIMITED, Limits, exceeds, left_beside, scaled
from overspill.text.measure import extent_of
from overspill.text.media_types import TEXT_TYPE
from overspill.text.rendering import is_plain_container, plain_stats

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.reading.chunks import Extent

    Shorten = Callable[[str, Limits], str]

    from overspill.shapes.fields import Part
    from overspill.shapes.shape import Shape

_MAX_REMARKS: Final = 16
_BY_LINES: Final = ENDS._replace(spare=0.1)
_FEW_VALUES: Final = 2_000
_KEPT_TEXT_CHARS: Final = 100
"""A text in data of up to this length always stays."""
_TEXT_SHARES: Final = (0.95, 0.45)
"""Shares of the room that texts in data get, tried in turn: in JSON, a character may become two."""
_MIN_SHOWN_BYTES: Final = 200
"""With less room beside the remark, only the remark is shown."""


def clamp_partial(update: Any, limits: Limits, shorten: Shorten | None = None) -> Any:
    """Return `update` with its text, except for short remarks, within `limits`: the same object if it fits.

    `shorten` cuts a text in its own words: it gets the text and the limits that are left for it. An update of
    which no copy can be made stays as it is. Never raises.
    """
    shape = examine(update)
    if shape is None or not shape.exceeds(limits):
        return update
    try:
        return _clamped(update, shape, _Budget(limits, shorten, limits))
    except Exception:  # noqa: BLE001  (foreign methods within, or no other of its class can be made)
        return update


def clamp_text(text: str, limits: Limits, left: Limits | None = None) -> str:
    """Return head and tail of `text` around a remark, together within `limits` or what is `left` of them.

    If there is room for nothing else, return only the remark.
    """
    left = limits if left is None else left
    if not exceeds(text, left):
        return text
    extent = extent_of(text)
    room = left_beside(left, _remark(extent, limits))
    if room.max_bytes < _MIN_SHOWN_BYTES or room.max_lines < 1:
        return _remark(extent, limits).strip()
    kept = cut(excerpt_of_text(text, extent), room, _BY_LINES)
    remark = _remark(kept.omitted, limits)
    return f"{kept.head}{remark[1:] if kept.head.endswith(chr(10)) else remark}{kept.tail}"


def _remark(omitted: Extent, limits: Limits) -> str:
    cut_off = f"{quantities.plural(omitted.size, 'byte')}, {quantities.plural(omitted.lines, 'line')}"
    return f"\n... [{cut_off} cut: over {_limits(limits)}; the result follows] ...\n"


def _limits(limits: Limits) -> str:
    named = (
        (limits.max_bytes, "byte"),
        (limits.max_lines, "line"),
        (limits.max_chars, "character"),
        (limits.max_tokens, "token"),
    )
    described = [
        quantities.plural(limit, noun) for limit, noun in named if limit not in {None, UNLIMITED} and limit
    ]
    return " or ".join(described) or "the limit"


class _Budget:
    """The rest of the limits for the texts that follow. Nothing is left after one was cut."""

    def __init__(self, limits: Limits, shorten: Shorten | None, left: Limits | None) -> None:
        self._limits = limits
        self._shorten = shorten
        self._left = left

    def take(self, text: str) -> str:
        """Return `text` as far as there is room, then a remark, unless the text is no longer than that."""
        if self._left is None:
            short = self.remark(text)
            return short if len(short) < len(text) else text
        if exceeds(text, self._left):
            left, self._left = self._left, None
            return self._cut(text, left)
        self._left = left_beside(self._left, text)
        return text

    def share(self, part: float, taken: str) -> _Budget:
        """Return a budget with a part of what is left beside the text that is `taken`."""
        left = None if self._left is None else scaled(left_beside(self._left, taken), part)
        return _Budget(self._limits, self._shorten, left)

    def remark(self, text: str) -> str:
        """Return the remark that replaces all of `text`."""
        return _remark(extent_of(text), self._limits).strip()

    def within(self, text: str) -> str:
        """Return `text` cut to all the limits."""
        return self._cut(text, self._limits)

    def _cut(self, text: str, left: Limits) -> str:
        return clamp_text(text, self._limits, left) if self._shorten is None else self._shorten(text, left)

    def is_exceeded_by(self, value: Any) -> bool:
        return exceeds(as_text(value), self._limits)


def _clamped(update: Any, shape: Shape, budget: _Budget) -> Any:
    if isinstance(shape, Envelope):
        new = {place.path: _instead(at, place, budget) for at, place in enumerate(shape.parts)}
        return with_values(update, new)
    if isinstance(shape, ExceptionShape):
        return with_message(update, budget.take(shape.message), budget.remark)
    if isinstance(shape, BinaryShape) and shape.content_type != TEXT_TYPE:
        what = f"({quantities.plural(len(shape.body), 'byte')} of {shape.content_type}, not text)"
        return with_text(update, what)
    if isinstance(shape, PrintedShape):
        return shape.with_shorter(budget.take)
    return with_text(update, budget.take(text_of(shape.body)))


def _instead(at: int, place: Part, budget: _Budget) -> Any:
    if not isinstance(place.value, str):
        return _clamped_data(place.value, budget)
    kept = budget.take(str.__str__(place.value))
    if at > _MAX_REMARKS and kept == budget.remark(place.value) and is_removable(place.path):
        return REMOVED
    return with_text(place.value, kept)


def _clamped_data(value: Any, budget: _Budget) -> Any:
    """Cut the long texts in small data. Other data keeps its first parts and a remark."""
    if is_plain_container(value) and plain_stats(value, _FEW_VALUES) is not None:
        frame = as_text(_with_long_texts(value, lambda _: ""))
        for part in _TEXT_SHARES:
            kept = _with_long_texts(value, budget.share(part, frame).take)
            if not budget.is_exceeded_by(kept):
                return kept
    text = as_text(value)
    return short_copy(value, budget.within(text), budget.remark(text))


def _with_long_texts(value: Any, change: Callable[[str], str]) -> Any:
    return with_texts(value, lambda text: change(text) if len(text) > _KEPT_TEXT_CHARS else text)
