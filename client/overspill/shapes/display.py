"""Make tool outputs fit for user interfaces: clean, short, and without the data of images.

This is apart from what the model gets, and smaller. Nothing is stored and no input is changed. Text loses its
terminal escapes and control characters; images and other binary data become their type and size.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from overspill.shapes import media
from overspill.shapes.block_types import TEXT_BLOCKS, are_blocks
from overspill.shapes.carriers import is_error
from overspill.shapes.display_text import cut_text, first_line
from overspill.shapes.envelope import joined
from overspill.shapes.fields import get, text_field
from overspill.shapes.writer import as_text
from overspill.text.rendering import items_of, json_scalar, printable_number, unprintable
from overspill.text.rendering import printable as printed
from overspill.text.sanitize import sanitize

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_CHARS: Final = 8_000
MAX_ERROR_CHARS: Final = 400

_LONG_FIELD: Final = 200
_MAX_DEPTH: Final = 16
_MAX_PARTS: Final = 20_000
_CONTENT: Final = "content"
_DEEPER: Final = "[…]"


def for_display(value: Any, *, max_chars: int = MAX_CHARS, max_error_chars: int = MAX_ERROR_CHARS) -> Any:
    """Return `value` with at most `max_chars` characters of text in a block. A cut says how much is missing.

    A text, or a value without blocks, has at most `max_chars` in all. Of an exception, and of a result that
    says it is an error, only the first line is kept, in `max_error_chars`. Blocks of image data and the like
    get their number of `bytes` and `omitted` instead. Text stays text, content blocks stay blocks, and so do
    messages around them. Other containers keep their form if they fit, else they become JSON text. Records
    become dicts, unknown objects their `repr`.

    A value that needs no change is the same object. The result is deterministic, and showing it again changes
    nothing. Takes 20 ms for each megabyte: use a thread for large values.
    """
    if isinstance(value, BaseException):
        return first_line(printed(value), min(max_chars, max_error_chars))
    shown = _Parts().shown(value, ())
    message = _message(shown) if is_error(value) or text_field(value, "status") == "error" else None
    if message is None:
        return _fitted(shown, max_chars)
    return _failure(shown, message, max_chars, max_error_chars)


class _Parts:
    """Makes the parts of one value short enough to show. Bounded, even if parts contain each other."""

    def __init__(self) -> None:
        self._left = _MAX_PARTS

    def shown(self, value: Any, above: tuple[int, ...]) -> Any:
        """Return `value`, or a copy in which each text is clean.

        `above` are the ids of the containers around it.
        """
        self._left -= 1
        if value is None or isinstance(value, (bool, float)):
            return value
        if isinstance(value, (str, int, bytes, bytearray, memoryview, BaseException)):
            return _single(value)
        if len(above) >= _MAX_DEPTH or id(value) in above or self._left < 0:
            return _DEEPER
        try:
            return self._container(value, (*above, id(value)))
        except Exception as error:  # noqa: BLE001  (a foreign container's own methods)
            return unprintable(value, error)

    def _container(self, value: Any, above: tuple[int, ...]) -> Any:
        block = media.block_for_display(value)
        if block is not None:
            return block
        if isinstance(value, Mapping):
            return self._mapping(value, above)
        if isinstance(value, (list, tuple)):
            limit = max(0, self._left) + 1
            items = [self.shown(item, above) for item in value[:limit]]
            items += [f"[{len(value) - limit:,} more not shown]"] if len(value) > limit else []
            return value if _are_same(items, value) else items
        return self._object(value, above)

    def _mapping(self, value: Mapping[Any, Any], above: tuple[int, ...]) -> Mapping[Any, Any]:
        shown: dict[Any, Any] = {}
        limit = max(0, self._left) + 1
        for name, item in islice(value.items(), limit):
            known = media.data_for_display(value, name, item)
            clean_name = _single(name) if isinstance(name, str) else name
            shown[clean_name] = self.shown(item, above) if known is None else known
        if len(value) > limit:
            shown["…"] = f"[{len(value) - limit:,} more not shown]"
        return value if _are_same([*shown, *shown.values()], [*value, *value.values()]) else shown

    def _object(self, value: Any, above: tuple[int, ...]) -> Any:
        """Return a record as the dict of its fields, unless nothing in it had to change.

        Other objects as text.
        """
        items = _items(value)
        if items is None:
            return _single(str(json_scalar(value)))
        shown = self.shown(items, above)
        return value if shown is items else shown


def _single(value: Any) -> Any:
    if isinstance(value, str):
        return media.text_for_display(sanitize(value))
    if isinstance(value, int):
        digits = printable_number(value)
        return value if isinstance(digits, int) else f"[integer of {value.bit_length():,} bits]"
    if isinstance(value, BaseException):
        return first_line(printed(value), MAX_ERROR_CHARS)
    return sanitize(media.bytes_for_display(bytes(value)))


def _items(record: Any) -> Any:
    """Return the dict or list that stands for a record; None for other objects, or if one raises."""
    try:
        return items_of(record)
    except Exception:  # noqa: BLE001  (a foreign object's own methods)
        return None


def _are_same(new: list[Any], old: Any) -> bool:
    return len(new) == len(old) and all(one is other for one, other in zip(new, old, strict=True))


def _fitted(shown: Any, limit: int) -> Any:
    """Cut a value that is clean already to `limit` characters."""
    if isinstance(shown, str):
        return cut_text(shown, limit)
    if _extent(shown) <= limit:
        return shown
    if are_blocks(shown):
        return _fitted_blocks(shown, limit)
    message = _message(shown)
    fitted = None if message is None else _fitted_message(message, limit, partial(_fitted_content, limit))
    return cut_text(sanitize(as_text(shown)), limit) if fitted is None else fitted


def _fitted_content(limit: int, content: Any, room: int) -> Any:
    """Cut the content of a message: a text to the room that is left, blocks to `limit` characters each."""
    return cut_text(content, room) if isinstance(content, str) else _fitted_blocks(content, limit)


def _fitted_blocks(blocks: list[Any] | tuple[Any, ...], limit: int) -> Any:
    """Cut each block to `limit` characters. Return the same object if all of them fit."""
    fitted = [_fitted_block(block, limit) for block in blocks]
    return blocks if _are_same(fitted, blocks) else fitted


def _fitted_block(block: Any, limit: int) -> Any:
    if not _is_text(block):
        return block if _extent(block) <= limit else _block(cut_text(sanitize(as_text(block)), limit))
    text = block if isinstance(block, str) else get(block, "text")
    if len(text) <= limit:
        return block
    cut = cut_text(text, limit)
    if isinstance(block, str):
        return cut
    if isinstance(block, Mapping):
        return {**block, "text": cut}
    return {"type": text_field(block, "type"), "text": cut}


def _failure(shown: Any, message: Mapping[Any, Any], limit: int, line_limit: int) -> Any:
    """Return a failed tool's result with only the first line of its text."""
    content = message[_CONTENT]
    line = _first_line_of(content, line_limit)
    whole = shown if line is content else {**message, _CONTENT: line}
    if _extent(whole) <= limit:
        return whole
    fitted = _fitted_message(
        message, limit, lambda content, room: _line_alone(content, min(room, line_limit))
    )
    return cut_text(sanitize(as_text(whole)), limit) if fitted is None else fitted


def _fitted_message(
    message: Mapping[Any, Any], limit: int, fit: Callable[[Any, int], Any]
) -> Mapping[Any, Any] | None:
    """Cut a message's content, and leave out its other long fields; None if that leaves too little room."""
    fitted = {name: _short(item) for name, item in message.items() if name != _CONTENT}
    room = limit - _extent(fitted) - _extent({_CONTENT: ""})
    if room < limit // 2:
        return None
    content = fit(message[_CONTENT], room)
    fitted[_CONTENT] = content
    if all(fitted[name] is message[name] for name in message):
        return message
    return {name: content if name == _CONTENT else fitted[name] for name in message}


def _short(field: Any) -> Any:
    extent = _extent(field)
    return field if extent <= _LONG_FIELD else f"[{extent:,} characters not shown]"


def _message(shown: Any) -> Mapping[Any, Any] | None:
    """Return the fields of a message or result around text or blocks; None for other values."""
    if isinstance(shown, (str, list, tuple)):
        return None
    fields = shown if isinstance(shown, Mapping) else _items(shown)
    content = fields.get(_CONTENT) if isinstance(fields, Mapping) else None
    return fields if isinstance(content, str) or are_blocks(content) else None


def _first_line_of(content: Any, limit: int) -> Any:
    """Return the first line, and the blocks without text."""
    text = _text_of(content)
    line = first_line(text, limit)
    if line == text:
        return content
    if isinstance(content, str):
        return line
    return [_block(line), *(block for block in content if not _is_text(block))]


def _line_alone(content: Any, limit: int) -> Any:
    if isinstance(content, str):
        return first_line(content, limit)
    return [_block(first_line(_text_of(content), limit - _extent([_block("")])))]


def _block(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _is_text(block: Any) -> bool:
    return isinstance(block, str) or (
        text_field(block, "type") in TEXT_BLOCKS and isinstance(get(block, "text"), str)
    )


def _text_of(content: Any) -> str:
    """Return all text in a message's content, or in blocks."""
    if isinstance(content, str):
        return content
    texts = [block if isinstance(block, str) else get(block, "text") for block in content if _is_text(block)]
    return joined(texts)


def _extent(value: Any) -> int:
    """Count the characters of all texts, names and numbers in `value`, and one for each part."""
    if isinstance(value, str):
        return len(value)
    if value is None or isinstance(value, (bool, int, float)):
        return len(repr(value))
    if isinstance(value, Mapping):
        return sum(len(str(name)) + _extent(item) + 1 for name, item in value.items())
    if isinstance(value, (list, tuple)):
        return sum(_extent(item) + 1 for item in value)
    return _extent(_items(value))
