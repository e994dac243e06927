"""A result with several parts: its class, ids, status and short fields stay, and only what is long is cut.

A part is a text, or data that is large as a whole. Texts of blocks are cut in order: those that fit stay
where they are. Of data the largest parts are cut. A copy of the result has the notice in the place of the
first part that is cut. No object is ever changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from overspill.previews.notice_forms import MAX_NOTICE, is_notice_dict, notices_among
from overspill.reading.lock_free import cached_property
from overspill.shapes import data_view, part_cutting
from overspill.shapes.field_copies import Unchangeable
from overspill.shapes.fields import Part, is_text
from overspill.shapes.mirrors import repeats
from overspill.shapes.replacing import REMOVED, with_values
from overspill.shapes.shape import QUICK_CHARS, Shape
from overspill.shapes.writer import as_text, render
from overspill.text import measure
from overspill.text.limits import UNLIMITED, exceeds, left_beside, surely_fitting_chars_on_lines
from overspill.text.media_types import JSON_TYPE, TEXT_TYPE, media_type_of
from overspill.text.rendering import compact_json, is_plain_container, plain_stats

if TYPE_CHECKING:
    from collections.abc import Iterable

    from overspill.previews.notice_facts import Notice
    from overspill.text.body import Body
    from overspill.text.limits import Limits
    from overspill.text.rendering import PlainStats

_FEW_VALUES: Final = 2_000
_NOTICE_MARKS: Final = ("overspill", "...")
"""Each notice has one of them."""


class Envelope(Shape):
    """A result and the `parts` of it that a model reads. `cut_parts` are cut; all parts unless given.

    `remaining` is the room within some limits that the parts that stay leave for the notice.
    """

    def __init__(
        self,
        result: Any,
        parts: list[Part],
        cut_parts: list[Part] | None = None,
        remaining: Limits | None = None,
    ) -> None:
        self.remaining: Limits | None = remaining
        self.parts: list[Part] = parts
        self._result = result
        self._given = cut_parts
        self._stats: dict[int, PlainStats | None] = {}
        """By the identity of the value of a part, which `parts` keeps alive."""
        self._narrowed: tuple[tuple[Limits, int, bool], Envelope] | None = None

    @cached_property
    def body(self) -> Body:
        """The text to capture: all parts that are cut. Several texts begin lines of their own.

        If data is cut in one part only, all of the data is captured.
        """
        if len(self._cut_parts) == 1:
            return self._body_of(self._cut_parts[0])
        texts = [_decoded(value) for _, value in self._cut_parts if is_text(value)]
        texts += [as_text(self._whole(part)) for part in self._cut_parts if not is_text(part.value)]
        return joined([text for text in texts if text])

    def _body_of(self, only: Part) -> Body:
        if not is_text(only.value):
            return render(self._whole(only))
        return str.__str__(only.value) if isinstance(only.value, str) else bytes(only.value)

    def _whole(self, cut_part: Part) -> Any:
        """Return the data that a part was cut from."""
        return next(part.value for part in self.parts if part.path == cut_part.path[: len(part.path)])

    @cached_property
    def content_type(self) -> str:
        """The media type of `body`."""
        if len(self._cut_parts) != 1 or isinstance(self._cut_parts[0].value, str):
            return TEXT_TYPE
        return media_type_of(self.body) if isinstance(self.body, bytes) else JSON_TYPE

    @cached_property
    def size(self) -> int:
        """Bytes of everything that a model sees. Data counts as JSON on one line."""
        if len(self.parts) == 1:
            return self._size_of(self.parts[0].value)
        return sum(self._size_of(value) for _, value in self._own)

    def _size_of(self, value: Any) -> int:
        if isinstance(value, str):
            return measure.size(value)
        return data_view.size_of(value, self._stats_of(value))

    def _stats_of(self, value: Any) -> PlainStats | None:
        """Return the stats of a small part, found once; None for other parts."""
        key = id(value)
        if key not in self._stats:
            self._stats[key] = plain_stats(value, _FEW_VALUES) if is_plain_container(value) else None
        return self._stats[key]

    @property
    def measured_text(self) -> str:
        """Everything that a model sees, in one text."""
        return _as_one_text(value for _, value in self._own)

    def is_quick(self, limits: Limits | None = None) -> bool:  # noqa: ARG002  (it counts the parts)
        """Return whether it takes well under a millisecond to measure it."""
        if len(self.parts) == 1 and not isinstance(self.parts[0].value, str):
            return self._is_small(self.parts[0].value)
        values = [value for _, value in self.parts]
        chars = sum(len(value) for value in values if isinstance(value, str))
        return chars <= QUICK_CHARS and all(
            isinstance(value, str) or self._is_small(value) for value in values
        )

    def _is_small(self, value: Any) -> bool:
        stats = self._stats_of(value)
        return stats is not None and stats.chars <= QUICK_CHARS

    def exceeds(self, limits: Limits) -> bool:
        """Return whether the text for the model exceeds the limits."""
        if len(self.parts) == 1 and _surely_fits(self._stats_of(self.parts[0].value), limits):
            return False
        texts: list[str] = []
        for part in self._own:
            measured = measured_texts(part.value, limits.max_bytes)
            if measured is None:
                return True
            texts += measured
        return exceeds(joined([text for text in texts if text]), limits)

    def notices(self) -> list[str]:
        """Return the notices that it already has."""
        return self._notices

    @cached_property
    def _notices(self) -> list[str]:
        values = [value for _, value in self._own]
        dicts = [compact_json(value) for value in values if is_notice_dict(value)]
        return [*dicts, *notices_among(text for value in values for text in _texts_with_notices(value))]

    def within(self, limits: Limits, reserve: int, *, fills: bool = False) -> Envelope:
        """Return the same result, cut no more than the limits need with a notice of `reserve` bytes.

        With `fills`, the first part that is cut gets all the room behind it.
        """
        asked = (limits, reserve, fills)
        if self._narrowed is None or self._narrowed[0] != asked:
            self._narrowed = (asked, self._within(limits, reserve, fills=fills))
        return self._narrowed[1]

    def _within(self, limits: Limits, reserve: int, *, fills: bool) -> Envelope:
        room, chosen, remaining = part_cutting.with_reserve(limits, reserve), list[Part](), limits
        notices = set(self.notices())
        for part in self._own:
            is_notice = isinstance(part.value, str) and part.value in notices
            notices -= {part.value} if is_notice else set()
            measured = measured_texts(part.value, room.max_bytes)
            if is_notice or (measured is not None and not exceeds(joined(measured), room)):
                text = joined([*(measured_texts(part.value, UNLIMITED) or ()), ""])
                room, remaining = left_beside(room, text), left_beside(remaining, text)
                continue
            parts, rest = part_cutting.chosen_parts(part, room)
            chosen += parts
            stays, lines = "x" * rest.size, rest.lines + 1
            remaining = left_beside(remaining, stays, lines)
            room = room._replace(max_bytes=0) if fills else left_beside(room, stays, lines)
        narrowed = Envelope(self._result, self.parts, chosen, remaining)
        narrowed.sender = self.sender
        return narrowed if chosen and narrowed.is_enough(limits) else self

    def is_enough(self, limits: Limits) -> bool:
        """Return whether what stays of data keeps to the limits: a part may refer to the whole."""
        if self.parts[0].path:
            return True
        try:
            rest = with_values(
                self._result, {part.path: part_cutting.emptied(part.value) for part in self._cut_parts}
            )
        except Unchangeable:
            return True
        return not data_view.view(rest, limits.max_bytes).is_over

    def replaced(self, notice: Notice) -> Any:
        """Return a copy with `notice` in place of the cut parts. Raises `Unchangeable`."""
        new = self._replacements(notice)
        if any(isinstance(part.value, str) for part in self._cut_parts):
            new |= {part.path: part_cutting.short_mirror(part.value, notice) for part in self._mirrors}
        return with_values(self._result, new)

    def read(self, notice: Notice) -> str:
        """Return the text that a model gets instead of the cut parts, without the parts that stay."""
        return _as_one_text(value for value in self._replacements(notice).values() if value is not REMOVED)

    def _replacements(self, notice: Notice) -> dict[tuple[Any, ...], Any]:
        return {
            part.path: part_cutting.replacement(number, part, notice)
            for number, part in enumerate(self._cut_parts)
        }

    @property
    def _cut_parts(self) -> list[Part]:
        return self._own if self._given is None else self._given

    @cached_property
    def _mirrors(self) -> list[Part]:
        """Structured content for programs that says the same as the texts."""
        if len(self.parts) == 1:
            return []
        texts = [str.__str__(value) for _, value in self.parts if isinstance(value, str)]
        return [part for part in self.parts if not isinstance(part.value, str) and repeats(texts, part.value)]

    @cached_property
    def _own(self) -> list[Part]:
        """All parts but the mirrors."""
        mirrored = {part.path for part in self._mirrors}
        return [part for part in self.parts if part.path not in mirrored]


def measured_texts(value: Any, limit: int) -> list[str] | None:
    """Return what is measured of a part, a text or the texts and frame of data; None above `limit` bytes."""
    if isinstance(value, str):
        return [str.__str__(value)]
    found = data_view.view(value, limit)
    return None if found.is_over else found.measured


def _as_one_text(values: Iterable[Any]) -> str:
    """Return all that a model sees of some parts."""
    texts = [text for value in values for text in measured_texts(value, UNLIMITED) or ()]
    return joined([text for text in texts if text])


def _decoded(text: Any) -> str:
    return str.__str__(text) if isinstance(text, str) else bytes(text).decode(errors="surrogateescape")


def joined(texts: list[str]) -> str:
    """Join texts, each of which begins a line of its own."""
    if len(texts) <= 1:
        return texts[0] if texts else ""
    *others, last = texts
    return "".join([*(text if text.endswith("\n") else f"{text}\n" for text in others), last])


def _surely_fits(stats: PlainStats | None, limits: Limits) -> bool:
    """Return whether plain data with these stats is within the limits at first sight."""
    if stats is None or stats.chars > limits.max_lines:
        return False
    return stats.most_bytes() <= surely_fitting_chars_on_lines(limits)


def _texts_with_notices(value: Any) -> Iterable[str]:
    """Return the texts in which notices are looked for: none in much data, and in data without a mark."""
    if isinstance(value, str):
        return (str.__str__(value),)
    found = data_view.view(value, MAX_NOTICE)
    texts = [*found.texts, found.frame]
    if found.is_over or not any(mark in text for text in texts for mark in _NOTICE_MARKS):
        return ()
    return data_view.texts_in(value)
