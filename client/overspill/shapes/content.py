"""The shapes that tools return: what in them is text, and the same shape with a notice in its place.

A shape never changes the object that it was read from, and whatever the object's own methods raise stays
here. What has no text that could be too long has none.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from overspill import measure
from overspill.measure import Extent
from overspill.notice import MAX_NOTICE, as_dict, is_notice, placeholder
from overspill.shapes.blocks import GONE, is_error, is_other_message, may_go, places, with_values
from overspill.shapes.fields import Unchangeable
from overspill.shapes.rendering import (
    JSON,
    TEXT,
    described,
    is_opaque,
    is_plain,
    is_structured,
    kind_of_bytes,
    number,
    outline,
    shown,
)
from overspill.shapes.thrown import Thrown
from overspill.shapes.writer import as_text, rendered

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.body import Body
    from overspill.measure import Limits
    from overspill.notice import Notice
    from overspill.shapes.blocks import Place
    from overspill.shapes.rendering import Outline

_MOST_PLACEHOLDERS: Final = 16
_FEW_VALUES: Final = 2_000
_NOTICE_FIELDS: Final = frozenset({"notice", "status", "capture", "total_bytes", "total_lines", "preview"})
_MORE_FIELDS: Final = frozenset({"read_more", "isError"})
_LIGHT: Final = 64 * 1024
_LONGEST_PRINTED: Final = 1_000
"""Bits of a number that is shorter than any limit worth having."""


class Content(Protocol):
    """A tool's output in one of the known shapes."""

    @property
    def body(self) -> Body:
        """All of its text, as it is captured."""

    @property
    def content_type(self) -> str: ...

    def exceeds(self, limits: Limits) -> bool:
        """Whether what a model would see of it has strictly more than the limits allow."""

    def is_guarded(self) -> bool:
        """Whether a notice stands in it already."""

    def replaced(self, notice: Notice) -> Any:
        """The output's shape with `notice` where its text was."""


def examine(result: Any) -> Content | None:
    """The shape of `result`; None where it passes through: numbers, people's messages, opaque objects.

    Never raises: an object that cannot be looked at is captured as what can be said of it.
    """
    if type(result) is str:
        return Text(result)
    try:
        return _examined(result)
    except Exception as error:  # noqa: BLE001  (foreign methods: whatever they raise)
        return Printed(described(result, error))


def exceeds(content: Content, limits: Limits) -> bool:
    """Whether all of the content's text together has strictly more than the limits allow."""
    return content.exceeds(limits)


def is_light(content: Content, limits: Limits | None = None) -> bool:
    """Whether `exceeds` and `size_of` cost under a millisecond; else a thread is their place.

    Of a text that has more characters than `limits` has bytes, `exceeds` is known at once.
    """
    if isinstance(content, (Blocks, Structured)):
        return content.is_light()
    if isinstance(content, Thrown):
        return content.size <= _LIGHT
    length = len(content.body)
    return length <= _LIGHT or (limits is not None and length > limits.max_bytes)


def size_of(content: Content) -> int:
    """Bytes of all its text; of small data those of its JSON on one line, of an exception its message."""
    return content.size if isinstance(content, (Structured, Thrown)) else Extent.of(content.body).size


def told(content: Content) -> Body:
    """The text that a model would get: all of it, but of an exception no more than the messages."""
    return content.told if isinstance(content, Thrown) else content.body


def _examined(result: Any) -> Content | None:
    for kinds, shape in _SHAPES:
        if isinstance(result, kinds):
            return shape(result)
    if result is None or isinstance(result, (int, float)):
        if isinstance(result, int) and result.bit_length() > _LONGEST_PRINTED:
            return Printed(str(number(result)))
        return None
    found = _places(result)
    if found is None:
        return _without_places(result)
    return Blocks(result, found) if found else None


def _places(result: Any) -> list[Place] | None:
    if type(result) is dict and "content" not in result and "type" not in result:
        return None
    try:
        return places(result)
    except Exception:  # noqa: BLE001  (foreign objects within: what they raise is shown in their place)
        return None


def _without_places(result: Any) -> Content | None:
    if is_other_message(result):
        return None
    if is_structured(result):
        return Structured(result)
    return None if is_opaque(result) else Printed(shown(result))


class Text:
    content_type = TEXT

    def __init__(self, text: str) -> None:
        self.body: Body = text
        self._text = text

    def exceeds(self, limits: Limits) -> bool:
        return measure.exceeds(self._text, limits)

    def is_guarded(self) -> bool:
        return is_notice(self._text)

    def replaced(self, notice: Notice) -> Any:
        return str(notice)


class Printed(Text):
    """An object of an unknown class, captured as it prints: so frameworks show it to the model."""


class Binary:
    """Bytes, captured as they are; the notice that stands in for them is text."""

    def __init__(self, data: bytes) -> None:
        self.body: Body = data
        self._data = data

    @cached_property
    def content_type(self) -> str:
        return kind_of_bytes(self._data)

    def exceeds(self, limits: Limits) -> bool:
        return measure.exceeds_bytes(self._data, limits)

    def is_guarded(self) -> bool:
        return False

    def replaced(self, notice: Notice) -> str:
        return str(notice)


class Blocks:
    """A result, message or list of content blocks: its texts share one budget and one capture.

    The notice takes the place of the first text and a placeholder that of each later one that is longer,
    up to a number, behind which text blocks go, as all do beside a notice that is alone; all else stays.
    Structured content that says the same as the text goes; any other is captured behind the text. A result
    that lets nothing be put in is replaced by the notice's text.
    """

    def __init__(self, result: Any, found: list[Place]) -> None:
        self._result = result
        self._places = found

    @property
    def body(self) -> Body:
        return self._text

    @property
    def content_type(self) -> str:
        is_data = len(self._places) == 1 and not isinstance(self._places[0].value, str)
        return JSON if is_data else TEXT

    def is_light(self) -> bool:
        values = [value for _, value in self._places]
        texts = sum(len(value) for value in values if isinstance(value, str))
        return texts <= _LIGHT and all(isinstance(value, str) or _is_small(value) for value in values)

    def exceeds(self, limits: Limits) -> bool:
        return measure.exceeds(self._text, limits)

    def is_guarded(self) -> bool:
        return len(self._text) <= MAX_NOTICE and any(
            is_notice(value) or is_notice_dict(value) for _, value in self._places
        )

    def replaced(self, notice: Notice) -> Any:
        new = {place.path: self._instead(at, place, notice) for at, place in enumerate(self._places)}
        try:
            return with_values(self._result, new)
        except Unchangeable:
            return str(notice)

    def _instead(self, at: int, place: Place, notice: Notice) -> Any:
        if not isinstance(place.value, str):
            return as_dict(notice) if at == 0 else None
        if at == 0:
            return str(notice)
        if (at > _MOST_PLACEHOLDERS or notice.is_alone) and may_go(place.path):
            return GONE
        if notice.is_alone:
            return ""
        short = placeholder(notice, measure.size(place.value))
        return short if len(short) < len(place.value) else str.__str__(place.value)

    @cached_property
    def _text(self) -> str:
        texts = [str.__str__(value) for _, value in self._places if isinstance(value, str)]
        text = joined([text for text in texts if text])
        others = [value for _, value in self._places if not isinstance(value, str)]
        own = [as_text(value) for value in others if not _repeats(texts, value)]
        return joined([text, *own] if text else own)


class Structured:
    """A container or record, captured as indented JSON; a dict stands in for it."""

    content_type = JSON

    def __init__(self, value: Any) -> None:
        self._value = value

    @cached_property
    def body(self) -> Body:
        return rendered(self._value)

    @cached_property
    def size(self) -> int:
        """Bytes of its JSON: on one line where that is small."""
        if self.is_light():
            try:
                return len(msgspec.json.encode(self._value))
            except (UnicodeEncodeError, RecursionError):
                pass
        return Extent.of(self.body).size

    def is_light(self) -> bool:
        return self._outline is not None and self._outline.chars <= _LIGHT

    def exceeds(self, limits: Limits) -> bool:
        return not self._surely_fits(limits) and measure.body_exceeds(self.body, limits)

    @cached_property
    def _outline(self) -> Outline | None:
        return _small(self._value)

    def _surely_fits(self, limits: Limits) -> bool:
        found = self._outline
        if found is None or found.most_lines() > limits.max_lines:
            return False
        return found.most_bytes() <= measure.surely_fits(limits._replace(max_lines=measure.UNLIMITED))

    def is_guarded(self) -> bool:
        """Whether `replaced` made this. As any tool can return the like, only a short one is believed."""
        return len(self.body) <= MAX_NOTICE and is_notice_dict(self._value)

    def replaced(self, notice: Notice) -> dict[str, Any]:
        return {**as_dict(notice), "isError": True} if is_error(self._value) else as_dict(notice)


def _is_small(value: Any) -> bool:
    found = _small(value)
    return found is not None and found.chars <= _LIGHT


def _small(value: Any) -> Outline | None:
    return outline(value, _FEW_VALUES) if is_plain(value) else None


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


def _repeats(texts: list[str], value: Any) -> bool:
    """Whether `texts` say what `value` does, as MCP servers send it for clients that read text only.

    What a function returned that is no object is the only field, `result`; a list has a text for each item.
    """
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


_SHAPES: Final[tuple[tuple[Any, Callable[[Any], Content]], ...]] = (
    (str, lambda text: Text(str.__str__(text))),
    ((bytes, bytearray, memoryview), lambda data: Binary(bytes(data))),
    (Exception, Thrown),
)
