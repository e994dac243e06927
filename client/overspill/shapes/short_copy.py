"""Make a short copy of data that is too much, of the same class, with a notice in it.

A list keeps its first items, a mapping its first entries, a record all its fields, the long ones made short.
The notice goes where a text may be: into an item or entry like the others, or into the name of an entry if
all values are numbers. So the copy is valid under the same schema, if that has room for a text.
"""

from __future__ import annotations

from collections.abc import ItemsView, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from itertools import islice
from typing import Any, Final

from overspill.shapes.data_view import size_within
from overspill.shapes.field_copies import Unchangeable, with_entries, with_fields, with_items, with_text
from overspill.shapes.fields import as_data, has_long_names, is_a, is_sequence, is_text, names_of, parts_of
from overspill.shapes.heaviest_parts import ID_FIELDS

ENTRY_NAME: Final = "overspill"
"""The name of an entry that has a notice as its value."""
_KEPT_BYTES: Final = 400
"""Bytes of first items and entries that are kept."""
_MAX_RECORD_FIELDS: Final = 64
"""A dict with more entries is a mapping of many things, none of which has to stay."""
_MAX_TUPLE_ITEMS: Final = 8
"""In a tuple, or a list within a list, of up to this length each item has a meaning of its own."""
LONG_BYTES: Final = 200
"""A field of a record that has more is long."""
_OMITTED: Final = "[not shown]"
_MAX_DEPTH: Final = 6
"""Values at a greater depth are emptied."""
_MAX_RECORD_DEPTH: Final = 64
"""A record cannot be emptied: its fields have types."""
_TEXT_FACTOR: Final = 4
"""The notice goes into a text, unless another part is this many times larger."""
_COMPARED_BYTES: Final = 20_000
"""Up to this size the parts of a record are compared."""


def short_copy(value: Any, text: str, name: str, *, is_item: bool = False) -> Any:
    """Return a short copy of `value` with the notice `text` in it, or with `name` as the name of an entry.

    `is_item` says that it is one of several values: a short tuple is no list of items then.
    Raises `Unchangeable` if no short copy of its class can be made.
    """
    return _Shortener(text, name).short(value, int(is_item))


class _Shortener:
    def __init__(self, text: str, name: str) -> None:
        self._text = text
        self._name = name

    def short(self, value: Any, depth: int, budget: int = _KEPT_BYTES) -> Any:
        """Return a short copy with the notice in it, and with `budget` bytes of first items."""
        value = as_data(value)
        if is_a(value, (str, bytes, bytearray, memoryview)):
            return with_text(value, self._text)
        if depth > (_MAX_RECORD_DEPTH if _has_set_fields(value) else _MAX_DEPTH):
            return self._emptied(value)
        if is_a(value, Mapping):
            if len(value) > _MAX_RECORD_FIELDS or has_long_names(value):
                return self._short_mapping(value, depth, budget)
            return (
                self._short_record(value, depth) if value else with_entries(value, {ENTRY_NAME: self._text})
            )
        if is_sequence(value):
            return self._short_list(value, depth, budget)
        if names_of(value) is not None:
            return self._short_record(value, depth)
        raise Unchangeable(type(value).__name__)

    def _emptied(self, value: Any) -> Any:
        """Return a copy of what is too deep with nothing in it but the notice."""
        is_omitted = self._text == _OMITTED
        if is_a(value, Mapping):
            return with_entries(value, {} if is_omitted else {ENTRY_NAME: self._text})
        if is_sequence(value):
            return with_items(value, [] if is_omitted else [self._text])
        raise Unchangeable(type(value).__name__)

    def _short_list(self, value: Any, depth: int, budget: int) -> Any:
        if _has_set_fields(value) or (depth and len(value) <= _MAX_TUPLE_ITEMS):
            return self._short_items(value, depth)
        first, following = _first(value, budget)
        if is_a(value, ItemsView):
            item: Any = (ENTRY_NAME, self._text)
        else:
            item = self._text if is_a(value, AbstractSet) else self._with_notice(following, depth + 1)
        return with_items(value, [*first, item])

    def _short_items(self, value: Any, depth: int) -> Any:
        """Shorten a tuple whose items have a meaning each: the longest that can hold it gets the notice."""
        items = list(value)
        chosen = _longest(dict(enumerate(items)))
        if chosen is None:
            return with_items(value, [*items, self._text])
        return with_items(
            value, [self._part(items[at], depth, is_notice=at == chosen) for at in range(len(items))]
        )

    def _short_mapping(self, value: Mapping[Any, Any], depth: int, budget: int) -> Any:
        entries: dict[Any, Any] = {}
        for key in value:
            budget -= size_within(value[key], budget) + len(str(key))
            if budget < 0:
                break
            entries[key] = value[key]
        following = next(islice((value[key] for key in value), len(entries), None), None)
        if not _has_text(following):
            return with_entries(value, {**entries, self._name: following})
        return with_entries(value, {**entries, ENTRY_NAME: self._with_notice(following, depth + 1)})

    def _short_record(self, value: Any, depth: int) -> Any:
        """Shorten a record: it keeps all fields, and the longest one gets the notice."""
        fields = dict(parts_of(value, _MAX_RECORD_FIELDS) or ())
        chosen = _longest(fields)
        if chosen is None:
            return self._with_entry(value, {})
        new = {
            name: self._part(field, depth, is_notice=name == chosen)
            for name, field in fields.items()
            if name == chosen or size_within(field, LONG_BYTES) > LONG_BYTES
        }
        return _changed(value, new)

    def _with_entry(self, value: Any, new: dict[Any, Any]) -> Any:
        if not is_a(value, Mapping):
            raise Unchangeable(type(value).__name__)
        return _changed(value, {**new, ENTRY_NAME: self._text})

    def _part(self, part: Any, depth: int, *, is_notice: bool) -> Any:
        if is_notice:
            return self.short(part, depth + 1)
        if size_within(part, LONG_BYTES) <= LONG_BYTES:
            return part
        return _Shortener(_OMITTED, _OMITTED).short(part, depth + 1, 0)

    def _with_notice(self, item: Any, depth: int) -> Any:
        """Return an item like `item` with the notice in it; the notice itself if no such item can be made."""
        if is_text(item):
            return with_text(item, self._text)
        with suppress(Unchangeable):
            if is_a(item, Mapping) or is_sequence(item) or names_of(item) is not None:
                return self._holding(item, depth)
        return self._text

    def _holding(self, item: Any, depth: int) -> Any:
        fields = {} if is_sequence(item) else dict(parts_of(item, _MAX_RECORD_FIELDS) or ())
        if not fields or has_long_names(fields):
            return self.short(item, depth, 0)
        texts = {name: field for name, field in fields.items() if is_text(field)}
        long = {
            name: self._part(field, depth, is_notice=False)
            for name, field in fields.items()
            if size_within(field, LONG_BYTES) > LONG_BYTES
        }
        if not texts:
            return self._with_entry(item, long)
        chosen = _longest(texts)
        return _changed(item, {**long, chosen: with_text(texts[chosen], self._text)})


def _has_set_fields(value: Any) -> bool:
    return hasattr(type(value), "_fields") or names_of(value) is not None


def _has_text(value: Any) -> bool:
    """Return whether there is a text in `value`: then another text may stand there."""
    if is_a(value, Mapping):
        return any(_has_text(value[key]) for key in islice(value, _MAX_RECORD_FIELDS))
    if is_sequence(value):
        return any(_has_text(item) for item in islice(value, _MAX_RECORD_FIELDS))
    return is_text(value) or names_of(value) is not None


def _changed(value: Any, new: dict[Any, Any]) -> Any:
    if is_a(value, Mapping):
        return with_entries(value, {**value, **new})
    return with_fields(value, new)


def _first(items: Any, room: int) -> tuple[list[Any], Any]:
    """Return the first items that fit into `room` bytes, and the one behind them."""
    first: list[Any] = []
    for item in items:
        room -= size_within(item, room) + 1
        if room < 0:
            return first, item
        first.append(item)
    return first[:-1], first[-1] if first else None


def _longest(fields: dict[Any, Any]) -> Any:
    """Return the step of the largest part that can hold a notice, rather no id; None if there is none."""
    limit = _COMPARED_BYTES if len(fields) > 1 else 0  # a single part only has to have some room
    sizes = {step: _room(part, limit) for step, part in fields.items()}
    others = {
        step: size for step, size in sizes.items() if size and not (is_a(step, str) and step in ID_FIELDS)
    }
    sizes = others or sizes
    chosen = max(sizes, key=lambda step: sizes[step], default=None)
    return chosen if chosen is not None and sizes[chosen] else None


def _room(part: Any, limit: int) -> int:
    if part is None or is_a(part, (bool, int, float)):
        return 0
    return _TEXT_FACTOR * len(part) if is_text(part) else min(_COMPARED_BYTES, size_within(part, limit))
