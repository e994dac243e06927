"""Updates that a tool sends while it runs: cut to the limits, and not stored, for the result follows.

The update keeps its shape; a small one is the same object. Its texts share the limits in order: those that
fit stay, the first that does not is cut in its middle, later ones become a short remark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from overspill.previews.cut import ENDS, cut, less, scaled
from overspill.previews.excerpt import excerpt_of_text
from overspill.shapes.content import BinaryShape, PrintedShape, examine
from overspill.shapes.envelope import Envelope
from overspill.shapes.exceptions import ExceptionShape
from overspill.shapes.fields import with_text
from overspill.shapes.parts import REMOVED, is_removable, with_values
from overspill.shapes.standin import stand_in
from overspill.shapes.writer import as_text, text_of
from overspill.text import measure
from overspill.text.limits import UNLIMITED, Limits, exceeds
from overspill.text.measure import extent_of
from overspill.text.rendering import TEXT_TYPE, is_plain_container, plain_stats

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.reading.chunks import Extent

    Shorten = Callable[[str, Limits], str]

    from overspill.shapes.content import Shape
    from overspill.shapes.fields import Part

_MOST_REMARKS: Final = 16
_BY_LINES: Final = ENDS._replace(spare=0.1)
_FEW_VALUES: Final = 2_000
_SHORT: Final = 100
"""Characters of a text in data that stays whatever comes before it."""
_PARTS: Final = (0.95, 0.45)
"""Of what is left for the texts in data: in JSON, each of their characters may become two."""
_LEAST: Final = 200
"""Bytes beside a remark for which it is worth to show any."""


def clamp_partial(update: Any, limits: Limits, shorten: Shorten | None = None) -> Any:
    """`update` with its text within `limits`, but for short remarks; the same object where it is.

    `shorten` cuts a text in its own words: it gets the text and the limits that are left for it. An update
    of whose class no other can be made stays as it is. Never raises.
    """
    content = examine(update)
    if content is None or not content.exceeds(limits):
        return update
    try:
        return _clamped(update, content, _Budget(limits, shorten))
    except Exception:  # noqa: BLE001  (foreign methods within, or no other of its class can be made)
        return update


def clamp_text(text: str, limits: Limits, left: Limits | None = None) -> str:
    """Head and tail of `text` within `limits`, or what is `left` of them, around a remark that counts too.

    Only the remark where there is room for nothing else.
    """
    left = limits if left is None else left
    if not exceeds(text, left):
        return text
    extent = extent_of(text)
    room = less(left, _remark(extent, limits))
    if room.max_bytes < _LEAST or room.max_lines < 1:
        return _remark(extent, limits).strip()
    kept = cut(excerpt_of_text(text, extent), room, _BY_LINES)
    remark = _remark(kept.omitted, limits)
    return f"{kept.head}{remark[1:] if kept.head.endswith(chr(10)) else remark}{kept.tail}"


def _remark(omitted: Extent, limits: Limits) -> str:
    cut_off = f"{measure.plural(omitted.size, 'byte')}, {measure.plural(omitted.lines, 'line')}"
    return f"\n... [{cut_off} cut: over {_limits(limits)}; the result follows] ...\n"


def _limits(limits: Limits) -> str:
    named = (
        (limits.max_bytes, "byte"),
        (limits.max_lines, "line"),
        (limits.max_chars, "character"),
        (limits.max_tokens, "token"),
    )
    told = [measure.plural(limit, noun) for limit, noun in named if limit not in {None, UNLIMITED} and limit]
    return " or ".join(told) or "the limit"


class _Budget:
    """What of the limits is left for the texts that follow."""

    def __init__(self, limits: Limits, shorten: Shorten | None = None) -> None:
        self._limits = limits
        self._shorten = shorten
        self._left: Limits | None = limits

    def take(self, text: str) -> str:
        """`text` as far as there is room; behind that a remark, unless the text is no longer than one."""
        if self._left is None:
            short = self.remark(text)
            return short if len(short) < len(text) else text
        if exceeds(text, self._left):
            left, self._left = self._left, None
            return self._cut(text, left)
        self._left = less(self._left, text)
        return text

    def share(self, part: float, taken: str) -> _Budget:
        """A part of what is left of this one beside the text that is `taken`."""
        budget = _Budget(self._limits, self._shorten)
        budget._left = None if self._left is None else scaled(less(self._left, taken), part)
        return budget

    def remark(self, text: str) -> str:
        return _remark(extent_of(text), self._limits).strip()

    def within(self, text: str) -> str:
        """`text` alone within all the limits."""
        return self._cut(text, self._limits)

    def _cut(self, text: str, left: Limits) -> str:
        return clamp_text(text, self._limits, left) if self._shorten is None else self._shorten(text, left)

    def is_exceeded_by(self, value: Any) -> bool:
        return exceeds(as_text(value), self._limits)


def _clamped(update: Any, content: Shape, budget: _Budget) -> Any:
    if isinstance(content, Envelope):
        new = {place.path: _instead(at, place, budget) for at, place in enumerate(content.parts)}
        return with_values(update, new)
    if isinstance(content, ExceptionShape):
        return content.with_message(budget.take(content.message), budget.remark)
    if isinstance(content, BinaryShape) and content.content_type != TEXT_TYPE:
        what = f"({measure.plural(len(content.body), 'byte')} of {content.content_type}, not text)"
        return with_text(update, what)
    if isinstance(content, PrintedShape):
        return content.with_shorter(budget.take)
    return with_text(update, budget.take(text_of(content.body)))


def _instead(at: int, place: Part, budget: _Budget) -> Any:
    if not isinstance(place.value, str):
        return _clamped_data(place.value, budget)
    kept = budget.take(str.__str__(place.value))
    if at > _MOST_REMARKS and kept == budget.remark(place.value) and is_removable(place.path):
        return REMOVED
    return with_text(place.value, kept)


def _clamped_data(value: Any, budget: _Budget) -> Any:
    """Small data with long texts in it keeps its shape; any other keeps its first parts and a remark."""
    if is_plain_container(value) and plain_stats(value, _FEW_VALUES) is not None:
        frame = as_text(_with_texts(value, lambda text: text if len(text) <= _SHORT else ""))
        for part in _PARTS:
            kept = _with_texts(value, budget.share(part, frame).take)
            if not budget.is_exceeded_by(kept):
                return kept
    text = as_text(value)
    return stand_in(value, budget.within(text), budget.remark(text))


def _with_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value) if len(value) > _SHORT else value
    if isinstance(value, dict):
        return {key: _with_texts(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_with_texts(item, change) for item in value)
    return value
