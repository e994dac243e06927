"""Choose which parts of a result are cut, and what replaces each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from overspill.previews.notice_forms import placeholder
from overspill.shapes import data_view
from overspill.shapes.data_view import Weight
from overspill.shapes.field_copies import Unchangeable, with_entries, with_items, with_text
from overspill.shapes.fields import Part, is_sequence, is_text
from overspill.shapes.heaviest_parts import heaviest_parts
from overspill.shapes.replacing import REMOVED, is_removable
from overspill.shapes.short_copy import short_copy
from overspill.text import measure
from overspill.text.limits import UNLIMITED

if TYPE_CHECKING:
    from overspill.previews.notice_facts import Notice
    from overspill.text.limits import Limits

_MAX_PLACEHOLDERS: Final = 16
_KEPT_MIRROR_BYTES: Final = 500
"""Bytes of structured content that stays beside a text that says the same and is cut."""
_BYTES_PER_TOKEN: Final = 4
_BYTES_PER_LINE: Final = 20
"""The bytes of a token, and of a line, in a notice."""
_KEPT_DATA_BYTES: Final = 8 * 1024
"""Data beside a part that is large as a whole stays up to this size. More data is large itself."""
_QUOTE_BYTES: Final = 8
"""Bytes around a text in data."""


def chosen_parts(part: Part, room: Limits) -> tuple[list[Part], Weight]:
    """Return the parts to cut of a part that is too large, and the weight of everything else in it."""
    if isinstance(part.value, str):
        return [part], Weight(0, 0)
    limit = room.max_bytes if room.max_chars is None else room.max_chars
    found = heaviest_parts(part.value, Weight(limit, room.max_lines))
    if found.rest.size > _KEPT_DATA_BYTES and not all(is_text(each.value) for each in found.parts):
        found = heaviest_parts(part.value, Weight(_KEPT_DATA_BYTES, room.max_lines))
    rest = found.rest._replace(size=found.rest.size + _QUOTE_BYTES * len(found.parts))
    return [Part((*part.path, *path), value) for path, value in found.parts], rest


def with_reserve(limits: Limits, reserve: int) -> Limits:
    """Return the limits less the room for a notice, which takes half of them at most."""

    def less(limit: Any, reserved: int) -> Any:
        return limit if limit in {None, UNLIMITED} else max(limit - reserved, limit // 2)

    return limits._replace(
        max_bytes=less(limits.max_bytes, reserve),
        max_lines=less(limits.max_lines, reserve // _BYTES_PER_LINE),
        max_chars=less(limits.max_chars, reserve),
        max_tokens=less(limits.max_tokens, reserve // _BYTES_PER_TOKEN),
    )


def emptied(value: Any) -> Any:
    """Return an empty value of the class of `value`. Raises `Unchangeable`."""
    if isinstance(value, Mapping):
        return with_entries(value, {})
    return with_items(value, []) if is_sequence(value) else with_text(value, "")


def replacement(number: int, part: Part, notice: Notice) -> Any:
    """Return the replacement for cut part `number`. The first one, 0, gets the notice."""
    if not is_text(part.value):
        return _data_replacement(number, part.value, notice)
    if number == 0:
        return with_text(part.value, str(notice))
    if (number > _MAX_PLACEHOLDERS or notice.is_alone) and is_removable(part.path):
        return REMOVED
    if notice.is_alone:
        return with_text(part.value, "")
    short = placeholder(notice, measure.size(part.value))
    return with_text(part.value, short) if len(short) < len(part.value) else part.value


def _data_replacement(number: int, value: Any, notice: Notice) -> Any:
    if number == 0:
        return short_copy(value, str(notice), str(replace(notice, preview="", text=None)))
    size = data_view.size_of(value)
    text = placeholder(notice, size)
    return value if size <= len(text) else short_copy(value, text, text)


def short_mirror(value: Any, notice: Notice) -> Any:
    """Return structured content made short and still valid; None if it cannot be made short."""
    size = data_view.size_of(value)
    if size <= _KEPT_MIRROR_BYTES:
        return value
    text = placeholder(notice, size)
    try:
        return short_copy(value, text, text)
    except Unchangeable:
        return None
