"""What stands in for data that is too much: data of the same class, short, with a notice in it.

A list keeps its first items, a mapping its first entries, a record all its fields, long ones made short. The
notice is where a text may be: in an item or entry like the others, or as the name of an entry where all the
values are numbers. So data that a schema describes stays valid, where the schema has room for a text.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Any, Final

from overspill.shapes.data_view import size_within
from overspill.shapes.fields import (
    Unchangeable,
    is_a,
    is_sequence,
    names_of,
    parts_of,
    with_entries,
    with_fields,
    with_items,
    with_text,
)
from overspill.shapes.heaviest_parts import ID_FIELDS

ENTRY_NAME: Final = "overspill"
"""The name of an entry that a notice is in."""
_KEPT_BYTES: Final = 400
"""Bytes of first items and entries that are kept."""
_FEW: Final = 64
"""A dict with more entries is a mapping of many things, and none of them has to stay."""
_TUPLE: Final = 8
"""A list in a list, or a tuple, of no more items has a meaning for each of them."""
_LONG: Final = 200
_OMITTED: Final = "[not shown]"
_DEEPEST: Final = 6
_TEXT_FIRST: Final = 4
"""A text is the place for a notice, unless another part is so many times larger."""
_SIZED: Final = 20_000
"""Bytes up to which the parts of a record are compared."""


def stand_in(value: Any, text: str, name: str) -> Any:
    """`value` made short with the notice `text` in it, or `name` for the name of an entry.

    Raises `Unchangeable` where no short one of its class can be made.
    """
    return _Shortener(text, name).short(value, 0)


class _Shortener:
    def __init__(self, text: str, name: str) -> None:
        self._text = text
        self._name = name

    def short(self, value: Any, depth: int, kept: int = _KEPT_BYTES) -> Any:
        """A short one with the notice in it."""
        if is_a(value, (str, bytes, bytearray, memoryview)):
            return with_text(value, self._text)
        if depth > _DEEPEST:
            return self._emptied(value)
        if is_a(value, Mapping):
            if len(value) > _FEW:
                return self._short_mapping(value, depth, kept)
            return (
                self._short_record(value, depth) if value else with_entries(value, {ENTRY_NAME: self._text})
            )
        if is_sequence(value):
            return self._short_list(value, depth, kept)
        if names_of(value) is not None:
            return self._short_record(value, depth)
        raise Unchangeable(type(value).__name__)

    def _emptied(self, value: Any) -> Any:
        """Nothing of what is too deep; a notice has its place further up."""
        if self._text == _OMITTED and is_a(value, Mapping):
            return with_entries(value, {})
        if self._text == _OMITTED and is_sequence(value):
            return with_items(value, [])
        raise Unchangeable(type(value).__name__)

    def _short_list(self, value: Any, depth: int, kept: int) -> Any:
        if hasattr(type(value), "_fields") or (depth and len(value) <= _TUPLE):
            return self._short_items(value, depth)
        first, following = _first(value, kept)
        item = self._text if is_a(value, AbstractSet) else self._like(following, depth + 1)
        return with_items(value, [*first, item])

    def _short_items(self, value: Any, depth: int) -> Any:
        """A tuple, of which each item has a meaning: the longest one that may be has the notice."""
        items = list(value)
        chosen = _longest(dict(enumerate(items)))
        if chosen is None:
            return with_items(value, [*items, self._text])
        return with_items(
            value, [self._part(items[at], depth, is_notice=at == chosen) for at in range(len(items))]
        )

    def _short_mapping(self, value: Mapping[Any, Any], depth: int, kept: int) -> Any:
        entries: dict[Any, Any] = {}
        for key in value:
            kept -= size_within(value[key], kept) + len(str(key))
            if kept < 0:
                break
            entries[key] = value[key]
        following = next(islice((value[key] for key in value), len(entries), None), None)
        if not _has_text(following):
            return with_entries(value, {**entries, self._name: following})
        return with_entries(value, {**entries, ENTRY_NAME: self._like(following, depth + 1)})

    def _short_record(self, value: Any, depth: int) -> Any:
        """All its fields, long ones short, the longest with the notice in it."""
        fields = dict(parts_of(value, _FEW) or ())
        chosen = _longest(fields)
        if chosen is None:
            return self._with_entry(value, {})
        new = {
            name: self._part(field, depth, is_notice=name == chosen)
            for name, field in fields.items()
            if name == chosen or size_within(field, _LONG) > _LONG
        }
        return _changed(value, new)

    def _with_entry(self, value: Any, new: dict[Any, Any]) -> Any:
        if not is_a(value, Mapping):
            raise Unchangeable(type(value).__name__)
        return _changed(value, {**new, ENTRY_NAME: self._text})

    def _part(self, part: Any, depth: int, *, is_notice: bool) -> Any:
        if is_notice:
            return self.short(part, depth + 1)
        if size_within(part, _LONG) <= _LONG:
            return part
        return _Shortener(_OMITTED, _OMITTED).short(part, depth + 1, 0)

    def _like(self, item: Any, depth: int) -> Any:
        """An item like `item` with the notice in it: the notice itself where no class tells another form."""
        if is_a(item, str):
            return with_text(item, self._text)
        try:
            if is_a(item, Mapping) or is_sequence(item) or names_of(item) is not None:
                return self._holding(item, depth)
        except Unchangeable:
            return self._text
        return self._text

    def _holding(self, item: Any, depth: int) -> Any:
        if is_sequence(item) or len(parts_of(item, _FEW) or ()) == 0:
            return self.short(item, depth, 0)
        fields = dict(parts_of(item, _FEW) or ())
        texts = {name: field for name, field in fields.items() if is_a(field, str)}
        long = {
            name: self._part(field, depth, is_notice=False)
            for name, field in fields.items()
            if size_within(field, _LONG) > _LONG
        }
        if not texts:
            return self._with_entry(item, long)
        return _changed(item, {**long, _longest(texts): self._text})


def _has_text(value: Any) -> bool:
    """Whether there is a text in `value`, at whose place there may be another."""
    if is_a(value, Mapping):
        return any(_has_text(value[key]) for key in islice(value, _FEW))
    if is_sequence(value):
        return any(_has_text(item) for item in islice(value, _FEW))
    return is_a(value, str) or names_of(value) is not None


def _changed(value: Any, new: dict[Any, Any]) -> Any:
    if is_a(value, Mapping):
        return with_entries(value, {**value, **new})
    return with_fields(value, new)


def _first(items: Any, room: int) -> tuple[list[Any], Any]:
    """The first items that fit into `room`, and the one behind them."""
    first: list[Any] = []
    for item in items:
        room -= size_within(item, room) + 1
        if room < 0:
            return first, item
        first.append(item)
    return first[:-1], first[-1] if first else None


def _longest(fields: dict[Any, Any]) -> Any:
    """The step of the largest part that may hold a notice, rather no id; None where there is none."""
    sizes = {step: _room(part) for step, part in fields.items()}
    others = {
        step: size for step, size in sizes.items() if size and not (is_a(step, str) and step in ID_FIELDS)
    }
    sizes = others or sizes
    chosen = max(sizes, key=lambda step: sizes[step], default=None)
    return chosen if chosen is not None and sizes[chosen] else None


def _room(part: Any) -> int:
    if part is None or is_a(part, (bool, int, float)):
        return 0
    return _TEXT_FIRST * len(part) if is_a(part, str) else min(_SIZED, size_within(part, _SIZED))
