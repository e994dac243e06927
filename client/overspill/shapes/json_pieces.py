"""The JSON of any value on one line, in pieces: a long text is a piece of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from overspill.shapes.pictures import is_payload, is_picture
from overspill.text.rendering import compact_json, items_of, json_scalar, printable, unprintable

LONG_TEXT_CHARS: Final = 1_000
"""A text in data of this length or more is shown, measured and captured as a text of its own."""
_SHORT_SCALARS: Final = frozenset({bool, float, type(None)})


class _OpenContainer(NamedTuple):
    """A container whose items are being written: the next items, and the text that closes it."""

    items: Iterator[tuple[str, Any, Any]]
    end: str
    identity: int
    is_picture: bool


def json_pieces(value: Any) -> Iterator[str]:
    """Yield the JSON of `value` on one line in pieces. A long text is a piece as it is, without quotes."""
    open_: list[_OpenContainer] = []
    inside: set[int] = set()
    yield _opening(value, None, open_, inside)
    while open_:
        last = open_[-1]
        for before, step, item in last.items:
            yield before + _opening(item, step, open_, inside)
            if open_[-1] is not last:
                break
        else:
            open_.pop()
            inside.discard(last.identity)
            yield last.end


def _opening(value: Any, step: Any, open_: list[_OpenContainer], inside: set[int]) -> str:
    """Return the JSON of a single value. Of a container, return what opens it, and add it to `open_`."""
    is_inside_picture = bool(open_) and open_[-1].is_picture
    if type(value) in _SHORT_SCALARS or (type(value) is str and len(value) < LONG_TEXT_CHARS):
        return compact_json(value)
    if type(value) is str:
        return "" if is_inside_picture and is_payload(step, value) else value
    if id(value) in inside:
        return compact_json(f"<{type(value).__name__} that holds itself>")
    try:
        is_data = is_inside_picture and is_payload(step, value)
        items = None if is_data else items_of(value)
        if items is None:
            return _single(value, is_payload=is_data)
        inside_picture = is_picture(value, step, is_inside=is_inside_picture)
        is_mapping = isinstance(items, Mapping)
        following = _entries(dict(items)) if is_mapping else _items(list(items))
    except Exception as error:  # noqa: BLE001  (foreign methods: whatever they raise)
        return compact_json(unprintable(value, error))
    open_.append(_OpenContainer(following, "}" if is_mapping else "]", id(value), inside_picture))
    inside.add(id(value))
    return "{" if is_mapping else "["


def _single(value: Any, *, is_payload: bool) -> str:
    text = "" if is_payload else json_scalar(value)
    return text if isinstance(text, str) and len(text) >= LONG_TEXT_CHARS else compact_json(text)


def _entries(items: Mapping[Any, Any]) -> Iterator[tuple[str, Any, Any]]:
    comma = ""
    for key, item in items.items():
        name = compact_json(str.__str__(key) if isinstance(key, str) else printable(key))
        if type(item) is str and len(item) >= LONG_TEXT_CHARS:
            yield f"{comma}{name}:", key, ""
            yield "", key, item
        else:
            yield f"{comma}{name}:", key, item
        comma = ","


def _items(items: list[Any]) -> Iterator[tuple[str, Any, Any]]:
    comma = ""
    for item in items:
        yield ("" if type(item) is str and len(item) >= LONG_TEXT_CHARS else comma), None, item
        comma = ","
