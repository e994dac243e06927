"""A result as an envelope: its class, ids, status and short fields stay, and only what is long in it is cut.

What is long is a text, or data that is large as a whole. Texts of blocks are cut in order: those that fit
stay where they are. Of data the largest parts are cut. A copy of the result has the notice in the place of
the first part that is cut; no object is ever changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec

from overspill.previews import cut
from overspill.previews.notice import MAX_NOTICE, is_notice, placeholder
from overspill.shapes import data
from overspill.shapes.fields import Unchangeable, is_sequence, with_entries, with_items, with_text
from overspill.shapes.parts import REMOVED, Part, is_removable, with_values
from overspill.shapes.standin import stand_in
from overspill.shapes.writer import as_text, render
from overspill.text import measure
from overspill.text.limits import UNLIMITED, exceeds, surely_fitting_chars_on_lines
from overspill.text.rendering import JSON_TYPE, TEXT_TYPE, is_plain_container, plain_stats

if TYPE_CHECKING:
    from overspill.previews.notice import Notice
    from overspill.text.body import Body
    from overspill.text.limits import Limits
    from overspill.text.rendering import PlainStats

_MOST_PLACEHOLDERS: Final = 16
_FEW_VALUES: Final = 2_000
_LIGHT: Final = 64 * 1024
_NOTICE_FIELDS: Final = frozenset({"notice", "status", "capture", "total_bytes", "total_lines", "preview"})
_MORE_FIELDS: Final = frozenset({"read_more", "isError"})
_NOTICE_MARKS: Final = ("[overspill", "...", '"capture"')
"""One of them is in each notice."""
_SHORT_MIRROR: Final = 500
"""Bytes of structured content that stays beside a text that says the same and is cut."""
_BYTES_A_TOKEN: Final = 4
_BESIDE: Final = 8 * 1024
"""Bytes of data that stay beside a part that is large as a whole: what has more is large itself."""
_QUOTES: Final = 8
"""Bytes around a text in data."""


class Envelope:
    """A result and the `places` in it that a model reads; `cut` are those that go, all unless given.

    `left` is what of some limits the places that stay leave for the notice.
    """

    def __init__(
        self, result: Any, found: list[Part], cut: list[Part] | None = None, left: Limits | None = None
    ) -> None:
        self.left = left
        self._result = result
        self.places = found
        self._given = cut
        self._outlines: dict[int, PlainStats | None] = {}
        """By the identity of the value in a place, which `places` holds."""
        self._narrowed: tuple[tuple[Limits, int, bool], Envelope] | None = None

    @cached_property
    def body(self) -> Body:
        """All that is cut, as it is captured: one text as it is, several each on lines of its own.

        Of data that is cut in one part, the whole of it is captured.
        """
        if len(self._cut) == 1:
            value = self._cut[0].value
            return str.__str__(value) if isinstance(value, str) else render(self._whole(self._cut[0]))
        texts = [str.__str__(value) for _, value in self._cut if isinstance(value, str)]
        texts += [as_text(self._whole(place)) for place in self._cut if not isinstance(place.value, str)]
        return joined([text for text in texts if text])

    def _whole(self, part: Part) -> Any:
        """The data that `part` is of."""
        return next(place.value for place in self.places if place.path == part.path[: len(place.path)])

    @property
    def content_type(self) -> str:
        is_data = len(self._cut) == 1 and not isinstance(self._cut[0].value, str)
        return JSON_TYPE if is_data else TEXT_TYPE

    @cached_property
    def size(self) -> int:
        """Bytes of all that a model sees of it: of data, on one line."""
        if len(self.places) == 1:
            return self._size_of(self.places[0].value)
        return sum(self._size_of(value) for _, value in self._own)

    def _size_of(self, value: Any) -> int:
        return measure.size(value) if isinstance(value, str) else data.size_of(value, self._outline(value))

    def _outline(self, value: Any) -> PlainStats | None:
        """The outline of a small part, which is found once."""
        key = id(value)
        if key not in self._outlines:
            self._outlines[key] = _small(value)
        return self._outlines[key]

    @property
    def seen(self) -> str:
        """All that a model sees of it, in one text."""
        texts = [text for _, value in self._own for text in _seen(value, UNLIMITED) or ()]
        return joined([text for text in texts if text])

    def is_light(self) -> bool:
        """Whether it takes well under a millisecond to look at it."""
        if len(self.places) == 1 and not isinstance(self.places[0].value, str):
            return self._is_small(self.places[0].value)
        values = [value for _, value in self.places]
        texts = sum(len(value) for value in values if isinstance(value, str))
        return texts <= _LIGHT and all(isinstance(value, str) or self._is_small(value) for value in values)

    def _is_small(self, value: Any) -> bool:
        found = self._outline(value)
        return found is not None and found.chars <= _LIGHT

    def exceeds(self, limits: Limits) -> bool:
        """Whether what a model sees of it is strictly more than the limits allow."""
        if len(self.places) == 1 and _surely_fits(self._outline(self.places[0].value), limits):
            return False
        texts: list[str] = []
        for place in self._own:
            seen = _seen(place.value, limits.max_bytes)
            if seen is None:
                return True
            texts += seen
        return exceeds(joined([text for text in texts if text]), limits)

    def is_guarded(self) -> bool:
        """Whether a notice stands in it already: only a short one is believed, for any tool can print one."""
        values = [value for _, value in self.places]
        found = any(map(is_notice_dict, values)) or any(map(_holds_notice, values))
        return found and measure.size(self.seen) <= MAX_NOTICE

    def within(self, limits: Limits, reserve: int, *, fills: bool = False) -> Envelope:
        """The same, cut no more than it has to be to keep to the limits with a notice of `reserve` bytes.

        With `fills` all the room behind the first part that is cut is for that part.
        """
        asked = (limits, reserve, fills)
        if self._narrowed is None or self._narrowed[0] != asked:
            self._narrowed = (asked, self._within(limits, reserve, fills=fills))
        return self._narrowed[1]

    def _within(self, limits: Limits, reserve: int, *, fills: bool) -> Envelope:
        room, chosen = _with_reserve(limits, reserve), list[Part]()
        left = limits
        for place in self._own:
            found = _chosen(place, room)
            if found is None:
                text = joined([*(_seen(place.value, UNLIMITED) or ()), ""])
                room, left = cut.less(room, text), cut.less(left, text)
                continue
            places, rest = found
            chosen += places
            left = _without(left, rest)
            room = room._replace(max_bytes=0) if fills else _without(room, rest)
        made = Envelope(self._result, self.places, chosen, left)
        return made if chosen and made.is_enough(limits) else self

    def is_enough(self, limits: Limits) -> bool:
        """Whether what stays of data keeps to the limits: parts may refer to the whole."""
        if self.places[0].path:
            return True
        try:
            made = with_values(self._result, {place.path: _blank(place.value) for place in self._cut})
        except Unchangeable:
            return True
        return not data.view(made, limits.max_bytes).is_over

    def replaced(self, notice: Notice) -> Any:
        """A copy with `notice` for what is cut. Raises `Unchangeable`."""
        new = {place.path: _instead(at, place, notice) for at, place in enumerate(self._cut)}
        if any(isinstance(place.value, str) for place in self._cut):
            new |= {place.path: _short_mirror(place.value, notice) for place in self._mirrors}
        return with_values(self._result, new)

    def read(self, notice: Notice) -> str:
        """The text that a model gets with `notice` for what is cut, without that of the parts that stay."""
        new = [_instead(at, place, notice) for at, place in enumerate(self._cut)]
        texts = [text for value in new if value is not REMOVED for text in _seen(value, UNLIMITED) or ()]
        return joined([text for text in texts if text])

    @property
    def _cut(self) -> list[Part]:
        return self._own if self._given is None else self._given

    @cached_property
    def _mirrors(self) -> list[Part]:
        """Structured content that says what the texts do, for programs."""
        if len(self.places) == 1:
            return []
        texts = [str.__str__(value) for _, value in self.places if isinstance(value, str)]
        return [place for place in self.places if not isinstance(place.value, str) and _repeats(texts, place)]

    @cached_property
    def _own(self) -> list[Part]:
        mirrored = {place.path for place in self._mirrors}
        return [place for place in self.places if place.path not in mirrored]


# --- looking ------------------------------------------------------------------------------------


def _seen(value: Any, most: int) -> list[str] | None:
    """What is measured of a place: its text, or the texts and the frame of data; None above `most` bytes."""
    if isinstance(value, str):
        return [str.__str__(value)]
    found = data.view(value, most)
    return None if found.is_over else found.seen


def _surely_fits(found: PlainStats | None, limits: Limits) -> bool:
    """Whether plain data of this outline is within the limits at a first look."""
    if found is None or found.chars > limits.max_lines:
        return False
    return found.most_bytes() <= surely_fitting_chars_on_lines(limits)


def _small(value: Any) -> PlainStats | None:
    return plain_stats(value, _FEW_VALUES) if is_plain_container(value) else None


def _holds_notice(value: Any) -> bool:
    """Whether `value` is a notice, or data with one in it: looked for only where a mark of one is seen."""
    if not isinstance(value, str):
        found = data.view(value, MAX_NOTICE)
        texts = [*found.texts, found.frame]
        if found.is_over or not any(mark in text for text in texts for mark in _NOTICE_MARKS):
            return False
    return any(map(is_notice, data.texts_in(value)))


def is_notice_dict(value: Any) -> bool:
    """Whether `value` has the fields of a notice as a dict, and no others."""
    if type(value) is not dict or not value.keys() >= _NOTICE_FIELDS >= value.keys() - _MORE_FIELDS:
        return False
    capture = value["capture"]
    return capture is None or (isinstance(capture, str) and capture.startswith("cap_"))


def joined(texts: list[str]) -> str:
    """Texts one after the other, each beginning a line of its own."""
    if len(texts) <= 1:
        return texts[0] if texts else ""
    *most, last = texts
    return "".join([*(text if text.endswith("\n") else f"{text}\n" for text in most), last])


def _repeats(texts: list[str], place: Part) -> bool:
    """Whether `texts` say what `place` does, as MCP servers send it for clients that read text only.

    What a function returned that is no object is the only field, `result`; a list has a text for each item.
    """
    value = place.value
    wrapped = value["result"] if type(value) is dict and value.keys() == {"result"} else value
    if len(texts) == 1 and (_says(texts[0], wrapped) or _says(texts[0], value)):
        return True
    is_list = type(wrapped) is list and len(wrapped) == len(texts)
    return is_list and all(map(_says, texts, wrapped))


def _says(text: str, value: Any) -> bool:
    """Whether `text` is `value`, or its JSON."""
    if isinstance(value, str) and value == text:
        return True
    try:
        return bool(msgspec.json.decode(text) == value)
    except Exception:  # noqa: BLE001  (no JSON, or a foreign comparison: whatever it raises)
        return False


# --- cutting ------------------------------------------------------------------------------------


def _chosen(place: Part, room: Limits) -> tuple[list[Part], int] | None:
    """The parts of a place that are too much for `room`, and bytes of the others; None if it fits."""
    seen = _seen(place.value, room.max_bytes)
    if seen is not None and not exceeds(joined(seen), room):
        return None
    if isinstance(place.value, str):
        return [place], 0
    most = room.max_bytes if room.max_chars is None else room.max_chars
    found = data.heaviest_parts(place.value, most)
    if found.rest > _BESIDE and not all(isinstance(part, str) for _, part in found.parts):
        found = data.heaviest_parts(place.value, _BESIDE)
    rest = found.rest + _QUOTES * len(found.parts)
    return [Part((*place.path, *path), part) for path, part in found.parts], rest


def _blank(value: Any) -> Any:
    """Nothing, in the class of `value`."""
    if isinstance(value, Mapping):
        return with_entries(value, {})
    return with_items(value, []) if is_sequence(value) else with_text(value, "")


def _with_reserve(limits: Limits, reserve: int) -> Limits:
    """The limits less the room for a notice: half of them at most."""

    def less(limit: int, held: int) -> int:
        return limit if limit == UNLIMITED else max(limit - held, limit // 2)

    return limits._replace(
        max_bytes=less(limits.max_bytes, reserve),
        max_lines=less(limits.max_lines, reserve // 20),
        max_chars=None if limits.max_chars is None else less(limits.max_chars, reserve),
        max_tokens=None if limits.max_tokens is None else less(limits.max_tokens, reserve // _BYTES_A_TOKEN),
    )


def _without(limits: Limits, size: int) -> Limits:
    """What of the limits is left beside so many bytes of data."""
    return cut.less(limits, "x" * size, lines=1)


def _instead(at: int, place: Part, notice: Notice) -> Any:
    """What stands in for the cut part number `at`."""
    if not isinstance(place.value, str):
        return _data_instead(at, place.value, notice)
    if at == 0:
        return with_text(place.value, str(notice))
    if (at > _MOST_PLACEHOLDERS or notice.is_alone) and is_removable(place.path):
        return REMOVED
    if notice.is_alone:
        return with_text(place.value, "")
    short = placeholder(notice, measure.size(place.value))
    return with_text(place.value, short) if len(short) < len(place.value) else place.value


def _data_instead(at: int, value: Any, notice: Notice) -> Any:
    if at == 0:
        return stand_in(value, str(notice), str(replace(notice, preview="", text=None)))
    size = data.size_of(value)
    text = placeholder(notice, size)
    return value if size <= len(text) else stand_in(value, text, text)


def _short_mirror(value: Any, notice: Notice) -> Any:
    """Structured content, short and still valid; None where it cannot be made so."""
    size = data.size_of(value)
    if size <= _SHORT_MIRROR:
        return value
    text = placeholder(notice, size)
    try:
        return stand_in(value, text, text)
    except Unchangeable:
        return None
