"""Data as a model sees it: how large it is on one line, and which parts of it are too much.

Looks at no more values than it needs to, however the data refers to itself: a walk ends where the answer
is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from overspill.shapes.fields import FieldPath, is_a, parts_of, text_field
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

LONG_TEXT: Final = 1_000
"""Characters of a text in data from which on it is shown, measured and captured as a text of its own."""
FRAME: Final = 1_000
"""Bytes of all else around such texts that do not count."""
MOST_TEXTS: Final = 16
"""So many long texts are cut one by one; where there are more, what holds them is data."""
_MOST_PARTS: Final = 10_000
_MOST_VALUES: Final = 300_000
_MOST_CHARS: Final = 1024 * 1024
_DEEPEST: Final = 16
_LONGEST_ID: Final = 4_096
IDS: Final = frozenset(
    {"id", "tool_call_id", "tool_use_id", "toolUseId", "toolCallId", "call_id", "callId", "session_id"}
    | {"sessionId", "status", "role", "type", "kind", "name"}
)
_PICTURES: Final = frozenset(
    {"image", "input_image", "image_url", "audio", "input_audio", "video", "media"}
    | {"inlineData", "inline_data", "fileData", "file_data"}
)
_SHORT_SCALARS: Final = frozenset({bool, float, type(None)})
_MANY_PARTS: Final = 50
_LEAST_PAYLOAD: Final = 256
_BASE64: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_\r\n")


class DataView(NamedTuple):
    """What a model sees of data: the long texts in it, and all else as JSON on one line.

    `is_over` means that there was more than was to be looked at.
    """

    texts: list[str]
    frame: str
    is_over: bool

    @property
    def size(self) -> int:
        """Bytes of all."""
        return sum(map(measure.size, self.texts)) + measure.size(self.frame)

    @property
    def seen(self) -> list[str]:
        """The texts to be measured: a small frame around long texts is none."""
        return self.texts if self.texts and len(self.frame) <= FRAME else [*self.texts, self.frame]


def size_of(value: Any, found: PlainStats | None = None) -> int:
    """Bytes of `value` as a model sees it; of the part that was looked at where it has millions of values.

    `found` is its outline where that is known.
    """
    if found is None and is_plain_container(value):
        found = plain_stats(value, _MOST_PARTS)
    if found is not None and found.chars <= _MOST_CHARS:
        try:
            return len(msgspec.json.encode(value))
        except (UnicodeEncodeError, RecursionError, OverflowError):
            pass
    return view(value).size


def view(value: Any, most: int = UNLIMITED) -> DataView:
    """Look at `value` until it has more than `most` bytes."""
    frame = _plain_frame(value, most)
    if frame is not None:
        return DataView([], frame, is_over=len(frame) > most + FRAME)
    texts: list[str] = []
    pieces: list[str] = []
    left, values = most + FRAME, _MOST_VALUES
    for piece in _pieces(value):
        (texts if len(piece) >= LONG_TEXT else pieces).append(piece)
        left -= len(piece)
        values -= 1
        if left < 0 or not values:
            return DataView(texts, "".join(pieces), is_over=True)
    return DataView(texts, "".join(pieces), is_over=False)


def _plain_frame(value: Any, most: int) -> str | None:
    """The JSON of plain data without long texts, which is encoded at once; None of any other.

    No value has less than a byte, so data of too many values is not looked at to its end.
    """
    if not is_plain_container(value) or _plain_outline(value, min(most + FRAME, _MOST_VALUES)) is None:
        return None
    try:
        return msgspec.json.encode(value).decode()
    except (UnicodeEncodeError, RecursionError, OverflowError):
        return None


def _plain_outline(value: Any, most: int) -> PlainStats | None:
    """The outline of plain data of up to `most` values without long texts; None of any other."""
    found = plain_stats(value, most)
    return None if found is None or found.longest >= LONG_TEXT or found.chars > _MOST_CHARS else found


def texts_in(value: Any) -> Iterator[str]:
    """The texts in `value` and the names of its entries, as far as a short one has any."""
    level, left = [value], _MOST_PARTS
    while level and left > 0:
        below: list[Any] = []
        for each in level:
            if is_a(each, str):
                yield each
                continue
            left -= 1
            for step, part in _parts(each) or ():
                if is_a(step, str):
                    yield step
                below.append(part)
        level = below


def size_within(value: Any, most: int) -> int:
    """Bytes of `value`, or a number above `most`."""
    if type(value) is str and value.isascii():
        return len(value) + 2
    found = view(value, most)
    return max(most + 1, found.size) if found.is_over else found.size


class HeaviestParts(NamedTuple):
    """`parts` are what is too much, each behind its path; `rest` is how many bytes there are without them."""

    parts: list[tuple[FieldPath, Any]]
    rest: int


def heaviest_parts(value: Any, room: int) -> HeaviestParts:
    """The parts without which `value` has no more than `room` bytes, as few and as deep as they are.

    They are texts alone, or one part that is large as a whole.
    """
    path: FieldPath = ()
    beside, is_picture, inside = 0, False, set[int]()
    while len(path) < _DEEPEST and not is_a(value, str) and (parts := _parts(value)) is not None:
        is_picture = _is_picture(value, path[-1] if path else None, is_inside=is_picture)
        inside.add(id(value))
        if any(id(part) in inside for _, part in parts):
            break
        big, rest = _largest(parts, max(0, room - beside), is_picture=is_picture)
        if 1 < len(big) <= MOST_TEXTS and all(is_a(part, str) for _, part in big):
            return HeaviestParts([((*path, step), part) for step, part in big], beside + rest)
        if len(big) != 1:
            break
        (step, value), beside = big[0], beside + rest
        path = (*path, step)
    return HeaviestParts([(path, value)], beside)


def _largest(
    parts: list[tuple[Any, Any]], room: int, *, is_picture: bool
) -> tuple[list[tuple[Any, Any]], int]:
    """The largest parts, in order, without which the others fit into `room`; and how much these have."""
    kept = [_is_kept(step, part, is_picture=is_picture) for step, part in parts]
    if len(parts) == 1 and not kept[0]:
        return parts, 0
    sizes = _plain_sizes(parts) or [
        0 if is_kept and is_picture else size_within(part, room)
        for is_kept, (_, part) in zip(kept, parts, strict=True)
    ]
    rest = sum(sizes) + sum(len(step) + 4 for step, _ in parts if isinstance(step, str))
    chosen: list[int] = []
    for at in sorted(range(len(parts)), key=lambda at: (-sizes[at], -at)):
        if rest <= room:
            break
        if not kept[at]:
            chosen.append(at)
            rest -= sizes[at]
    return [parts[at] for at in sorted(chosen)], rest


def _plain_sizes(parts: list[tuple[Any, Any]]) -> list[int]:
    """The bytes of many parts that are plain data, which is found out of all at once; empty of any others."""
    values = [part for _, part in parts]
    if len(values) < _MANY_PARTS or _plain_outline(values, _MOST_VALUES) is None:
        return []
    try:
        return [len(msgspec.json.encode(value)) for value in values]
    except (UnicodeEncodeError, RecursionError, OverflowError):
        return []


def _is_kept(step: Any, part: Any, *, is_picture: bool) -> bool:
    """Whether `part` stays whatever its size: ids and the like, and the data of pictures."""
    if isinstance(step, str) and step in IDS:
        return isinstance(part, str) and len(part) <= _LONGEST_ID
    return is_picture and _is_payload(part)


def _parts(value: Any) -> list[tuple[Any, Any]] | None:
    """The parts of a value that can be cut one by one; None of any other."""
    try:
        return None if is_a(value, (set, frozenset)) else parts_of(value, _MOST_PARTS)
    except Exception:  # noqa: BLE001  (foreign methods: whatever they raise)
        return None


# --- what a model sees ----------------------------------------------------------------------------


class _OpenContainer:
    """A container on the way in: what of it comes next."""

    __slots__ = ("begin", "end", "identity", "is_picture", "next")

    def __init__(self, value: Any, items: Any, *, is_picture: bool) -> None:
        self.identity = id(value)
        self.is_picture = is_picture
        is_mapping = isinstance(items, Mapping)
        self.next = _entries(dict(items)) if is_mapping else _items(list(items))
        self.begin, self.end = "{}" if is_mapping else "[]"


def _pieces(value: Any) -> Iterator[str]:
    """The JSON of `value` on one line, in pieces; a text of `LONG_TEXT` is a piece as it is."""
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
    """The JSON of a single value; of a container what opens it, which is then in `open_`."""
    is_inside_picture = bool(open_) and open_[-1].is_picture
    if type(value) in _SHORT_SCALARS or (type(value) is str and len(value) < LONG_TEXT):
        return compact_json(value)
    if type(value) is str:
        return "" if is_inside_picture and _is_payload(value) else value
    if id(value) in inside:
        return compact_json(f"<{type(value).__name__} that holds itself>")
    try:
        is_payload = is_inside_picture and _is_payload(value)
        items = None if is_payload else items_of(value)
        if items is None:
            return _single(value, is_payload=is_payload)
        is_picture = _is_picture(value, step, is_inside=is_inside_picture)
        open_.append(_OpenContainer(value, items, is_picture=is_picture))
    except Exception as error:  # noqa: BLE001  (foreign methods: whatever they raise)
        return compact_json(unprintable(value, error))
    inside.add(id(value))
    return open_[-1].begin


def _single(value: Any, *, is_payload: bool) -> str:
    text = "" if is_payload else json_scalar(value)
    return text if isinstance(text, str) and len(text) >= LONG_TEXT else compact_json(text)


def _entries(items: Mapping[Any, Any]) -> Iterator[tuple[str, Any, Any]]:
    comma = ""
    for key, item in items.items():
        name = compact_json(str.__str__(key) if isinstance(key, str) else printable(key))
        if type(item) is str and len(item) >= LONG_TEXT:
            yield f"{comma}{name}:", key, ""
            yield "", key, item
        else:
            yield f"{comma}{name}:", key, item
        comma = ","


def _items(items: list[Any]) -> Iterator[tuple[str, Any, Any]]:
    comma = ""
    for item in items:
        yield ("" if type(item) is str and len(item) >= LONG_TEXT else comma), None, item
        comma = ","


# --- pictures -------------------------------------------------------------------------------------


def _is_picture(holder: Any, step: Any, *, is_inside: bool) -> bool:
    """Whether `holder` is a block of a picture or sound, or what such a block has its data in."""
    return (
        is_inside or (isinstance(step, str) and step in _PICTURES) or text_field(holder, "type") in _PICTURES
    )


def _is_payload(part: Any) -> bool:
    """Whether `part` is binary data, or text that stands for such."""
    if is_a(part, (bytes, bytearray)):
        return True
    if not is_a(part, str) or len(part) < _LEAST_PAYLOAD:
        return False
    return part.startswith("data:") or _BASE64.issuperset(part[:_LEAST_PAYLOAD].encode())
