"""Data as a model sees it: JSON on one line, with long texts apart.

Data may be hostile: of any depth, with cycles, shared parts, or methods that raise. So nothing here recurses,
and a walk ends as soon as the answer is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from overspill.shapes.fields import is_a, parts_of, text_field
from overspill.text import measure
from overspill.text.limits import UNLIMITED
from overspill.text.rendering import (
    PlainStats,
    compact_json,
    is_plain_container,
    items_of,
    json_scalar,
    plain_stats,
    printable,
    unprintable,
)

LONG_TEXT_CHARS: Final = 1_000
"""A text in data of this length or more is shown, measured and captured as a text of its own."""
_UNCOUNTED_FRAME_BYTES: Final = 1_000
"""Bytes of everything else around long texts that do not count."""
MAX_PARTS: Final = 10_000
MAX_VALUES: Final = 300_000
_MAX_ENCODED_CHARS: Final = 1024 * 1024
_PICTURES: Final = frozenset(
    {"image", "input_image", "image_url", "audio", "input_audio", "video", "media"}
    | {"inlineData", "inline_data", "fileData", "file_data"}
)
_SHORT_SCALARS: Final = frozenset({bool, float, type(None)})
_MIN_PAYLOAD_CHARS: Final = 256
_BASE64: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_\r\n")
_ENCODING_ERRORS: Final = (UnicodeEncodeError, RecursionError, OverflowError)
"""What msgspec raises for lone surrogates, great depth and large numbers."""


class DataView(NamedTuple):
    """What a model sees of data: its long texts, and everything else as JSON on one line, the `frame`.

    `is_over` says that there is more than was asked for.
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
        return (
            self.texts
            if self.texts and len(self.frame) <= _UNCOUNTED_FRAME_BYTES
            else [*self.texts, self.frame]
        )


def size_of(value: Any, found: PlainStats | None = None) -> int:
    """Return the bytes of `value` as a model sees it; if it has millions of values, of the first ones.

    `found` is what `plain_stats` said of it, if that is known.
    """
    if found is None and is_plain_container(value):
        found = plain_stats(value, MAX_PARTS)
    if found is not None and found.chars <= _MAX_ENCODED_CHARS:
        try:
            return len(msgspec.json.encode(value))
        except _ENCODING_ERRORS:
            pass
    return view(value).size


def view(value: Any, most: int = UNLIMITED) -> DataView:
    """Return what a model sees of `value`, up to a little more than `most` bytes."""
    frame = _plain_frame(value, most)
    if frame is not None:
        return DataView([], frame, is_over=len(frame) > most + _UNCOUNTED_FRAME_BYTES)
    texts: list[str] = []
    pieces: list[str] = []
    room, values = most + _UNCOUNTED_FRAME_BYTES, MAX_VALUES
    for piece in _pieces(value):
        (texts if len(piece) >= LONG_TEXT_CHARS else pieces).append(piece)
        room -= len(piece)
        values -= 1
        if room < 0 or not values:
            return DataView(texts, "".join(pieces), is_over=True)
    return DataView(texts, "".join(pieces), is_over=False)


def _plain_frame(value: Any, most: int) -> str | None:
    """Return the JSON of plain data without long texts, which msgspec encodes at once; None for other data.

    Each value has a byte at least, so data with too many values is not looked at to its end.
    """
    if (
        not is_plain_container(value)
        or plain_stats_without_long_texts(value, min(most + _UNCOUNTED_FRAME_BYTES, MAX_VALUES)) is None
    ):
        return None
    try:
        return msgspec.json.encode(value).decode()
    except _ENCODING_ERRORS:
        return None


def plain_stats_without_long_texts(value: Any, most: int) -> PlainStats | None:
    """Return the stats of plain data of up to `most` values without long texts; None for other data."""
    found = plain_stats(value, most)
    return (
        None
        if found is None or found.longest >= LONG_TEXT_CHARS or found.chars > _MAX_ENCODED_CHARS
        else found
    )


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


def size_within(value: Any, most: int) -> int:
    """Return the bytes of `value`, or a number above `most`."""
    if type(value) is str and value.isascii():
        return len(value) + 2
    found = view(value, most)
    return max(most + 1, found.size) if found.is_over else found.size


def parts_to_cut(value: Any) -> list[tuple[Any, Any]] | None:
    """Return the parts of a value that can be cut one by one, each behind its step; None if it has none."""
    try:
        return None if is_a(value, (set, frozenset)) else parts_of(value, MAX_PARTS)
    except Exception:  # noqa: BLE001  (foreign methods: whatever they raise)
        return None


# --- JSON in pieces -------------------------------------------------------------------------------


class _OpenContainer:
    """A container whose items are being written: what of it comes next."""

    __slots__ = ("begin", "end", "identity", "is_picture", "next")

    def __init__(self, value: Any, items: Any, *, is_picture: bool) -> None:
        self.identity = id(value)
        self.is_picture = is_picture
        is_mapping = isinstance(items, Mapping)
        self.next = _entries(dict(items)) if is_mapping else _items(list(items))
        self.begin, self.end = "{}" if is_mapping else "[]"


def _pieces(value: Any) -> Iterator[str]:
    """Yield the JSON of `value` on one line in pieces. A long text is a piece as it is, without quotes."""
    open_: list[_OpenContainer] = []
    inside: set[int] = set()
    yield _begun(value, None, open_, inside)
    while open_:
        last = open_[-1]
        for before, step, item in last.next:
            yield before + _begun(item, step, open_, inside) if before else _begun(item, step, open_, inside)
            if open_[-1] is not last:
                break
        else:
            open_.pop()
            inside.discard(last.identity)
            yield last.end


def _begun(value: Any, step: Any, open_: list[_OpenContainer], inside: set[int]) -> str:
    """Return the JSON of a single value. Of a container, return what opens it, and add it to `open_`."""
    is_inside_picture = bool(open_) and open_[-1].is_picture
    if type(value) in _SHORT_SCALARS or (type(value) is str and len(value) < LONG_TEXT_CHARS):
        return compact_json(value)
    if type(value) is str:
        return "" if is_inside_picture and is_payload(value) else value
    if id(value) in inside:
        return compact_json(f"<{type(value).__name__} that holds itself>")
    try:
        is_data = is_inside_picture and is_payload(value)
        items = None if is_data else items_of(value)
        if items is None:
            return _single(value, is_payload=is_data)
        inside_picture = is_picture(value, step, is_inside=is_inside_picture)
        open_.append(_OpenContainer(value, items, is_picture=inside_picture))
    except Exception as error:  # noqa: BLE001  (foreign methods: whatever they raise)
        return compact_json(unprintable(value, error))
    inside.add(id(value))
    return open_[-1].begin


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


# --- pictures -------------------------------------------------------------------------------------


def is_picture(holder: Any, step: Any, *, is_inside: bool) -> bool:
    """Return whether `holder` is a block of a picture or sound, or what holds the data in such a block."""
    return (
        is_inside or (isinstance(step, str) and step in _PICTURES) or text_field(holder, "type") in _PICTURES
    )


def is_payload(part: Any) -> bool:
    """Return whether `part` is binary data, as bytes, base64 or a `data:` URL."""
    if is_a(part, (bytes, bytearray)):
        return True
    if not is_a(part, str) or len(part) < _MIN_PAYLOAD_CHARS:
        return False
    return part.startswith("data:") or _BASE64.issuperset(part[:_MIN_PAYLOAD_CHARS].encode())
