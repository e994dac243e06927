"""The shapes that tools return: what in them is text, and the same shape with a notice in its place.

A shape never changes the object that it was read from, and whatever the object's own methods raise stays
here. What has no text that could be too long has none.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Protocol

from overspill.previews.notice import MAX_NOTICE, is_notice
from overspill.shapes.block_types import is_other_message, telling_field
from overspill.shapes.envelope import Envelope
from overspill.shapes.exceptions import ExceptionShape
from overspill.shapes.fields import Unchangeable, with_fields, with_text
from overspill.shapes.parts import Part, parts_with_text
from overspill.text import measure
from overspill.text.limits import exceeds
from overspill.text.rendering import (
    TEXT_TYPE,
    is_opaque,
    is_structured,
    media_type_of,
    printable,
    printable_number,
    unprintable,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.previews.notice import Notice
    from overspill.text.body import Body
    from overspill.text.limits import Limits

_LIGHT: Final = 64 * 1024
_LONGEST_PRINTED: Final = 1_000
"""Bits of a number that is shorter than any limit worth having."""
_TELLING: Final = frozenset({"content", "type", "parts"})


class Shape(Protocol):
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
        """The output's shape with `notice` where its text was. Raises `Unchangeable`."""

    def read(self, notice: Notice) -> str:
        """The text that a model gets with that notice in the place of what is cut."""


def examine(result: Any) -> Shape | None:
    """The shape of `result`; None where it passes through: numbers, people's messages, opaque objects.

    Never raises: an object that cannot be looked at is captured as what can be said of it.
    """
    if type(result) is str:
        return TextShape(result)
    try:
        return _examined(result)
    except Exception as error:  # noqa: BLE001  (foreign methods: whatever they raise)
        return UnreadableShape(unprintable(result, error))


def is_light(content: Shape, limits: Limits | None = None) -> bool:
    """Whether `exceeds` and `size_of` cost under a millisecond; else a thread is their place.

    Of a text that has more characters than `limits` has bytes, `exceeds` is known at once.
    """
    if isinstance(content, Envelope):
        return content.is_light()
    if isinstance(content, ExceptionShape):
        return content.size <= _LIGHT
    length = len(content.body)
    return length <= _LIGHT or (limits is not None and length > limits.max_bytes)


def size_of(content: Shape) -> int:
    """Bytes of all that a model sees of it: of data on one line, of an exception its message."""
    return content.size if isinstance(content, (Envelope, ExceptionShape)) else measure.size(content.body)


def visible_text(content: Shape) -> Body:
    """The text that a model would get: all of it, but of an exception no more than the messages."""
    return content.visible_text if isinstance(content, ExceptionShape) else content.body


def measured_text(content: Shape) -> Body:
    """All that a model sees of it: of data, its JSON on one line."""
    return content.seen if isinstance(content, Envelope) else visible_text(content)


def sole_text(content: Shape) -> str | None:
    """The text in whose place alone a notice stands; None where there is more to an output, or less."""
    if type(content) is TextShape:
        return content.body if isinstance(content.body, str) else None
    if isinstance(content, Envelope) and len(content.places) == 1:
        value = content.places[0].value
        return value if isinstance(value, str) else None
    return None


def _examined(result: Any) -> Shape | None:
    for kinds, shape in _SHAPES:
        if isinstance(result, kinds):
            return shape(result)
    if result is None or isinstance(result, (int, float)):
        if isinstance(result, int) and result.bit_length() > _LONGEST_PRINTED:
            return PrintedShape(result, str(printable_number(result)))
        return None
    found = _places(result)
    if found is None:
        return _without_places(result)
    return Envelope(result, found) if found else None


def _places(result: Any) -> list[Part] | None:
    if type(result) is dict and _TELLING.isdisjoint(result) and not telling_field(result):
        return None
    try:
        return parts_with_text(result)
    except Exception:  # noqa: BLE001  (foreign objects within: what they raise is shown in their place)
        return None


def _without_places(result: Any) -> Shape | None:
    if is_other_message(result):
        return None
    if is_structured(result):
        return Envelope(result, [Part((), result)])
    return None if is_opaque(result) else PrintedShape(result)


class TextShape:
    content_type = TEXT_TYPE

    def __init__(self, text: str) -> None:
        self.body: Body = str.__str__(text)
        self._given = text
        self._text: str = self.body

    def exceeds(self, limits: Limits) -> bool:
        return exceeds(self._text, limits)

    def is_guarded(self) -> bool:
        return is_notice(self._text)

    def replaced(self, notice: Notice) -> Any:
        return with_text(self._given, str(notice))

    def read(self, notice: Notice) -> str:
        return str(notice)


class PrintedShape(TextShape):
    """An object of an unknown class, captured as it prints: so frameworks show it to the model.

    Where it prints a text that it has in a field, that is what is captured, and the notice is in that field.
    """

    def __init__(self, value: Any, text: str | None = None) -> None:
        super().__init__(printable(value) if text is None else text)
        self._value = value
        self._field = _field_of(value, self._text)
        if self._field:
            self.body: Body = str.__str__(vars(value)[self._field])

    def replaced(self, notice: Notice) -> Any:
        return self.with_shorter(lambda _: str(notice))

    def with_shorter(self, shorter: Callable[[str], str]) -> Any:
        """A copy with what `shorter` makes of the field's text. Raises `Unchangeable`."""
        if not self._field:
            raise Unchangeable(type(self._value).__name__)
        text = vars(self._value)[self._field]
        made = with_fields(self._value, {self._field: with_text(text, shorter(str.__str__(text)))})
        if len(printable(made)) >= len(self._text):
            raise Unchangeable(type(self._value).__name__)
        return made


def _field_of(value: Any, text: str) -> str:
    """The name of the attribute whose text is most of what `value` prints."""
    fields = getattr(value, "__dict__", None)
    if not isinstance(fields, dict):
        return ""
    texts = {name: len(field) for name, field in fields.items() if isinstance(field, str)}
    name = max(texts, key=lambda name: texts[name], default="")
    return name if name and texts[name] * 2 > len(text) else ""


class UnreadableShape(TextShape):
    """What can be said of an object that cannot be looked at: it passes as it is."""

    def exceeds(self, limits: Limits) -> bool:  # noqa: ARG002  (there is nothing to measure)
        return False


class BinaryShape:
    """Bytes, captured as they are; the notice that stands in for them is bytes of UTF-8."""

    def __init__(self, given: bytes | bytearray | memoryview) -> None:
        self._given = given
        self._data = bytes(given)
        self.body: Body = self._data

    @cached_property
    def content_type(self) -> str:
        return media_type_of(self._data)

    def exceeds(self, limits: Limits) -> bool:
        return exceeds(self._data, limits)

    def is_guarded(self) -> bool:
        return len(self._data) <= MAX_NOTICE and is_notice(self._data.decode("utf-8", "replace"))

    def replaced(self, notice: Notice) -> Any:
        return with_text(self._given, str(notice))

    def read(self, notice: Notice) -> str:
        return str(notice)


_SHAPES: Final[tuple[tuple[Any, Callable[[Any], Shape]], ...]] = (
    (str, TextShape),
    ((bytes, bytearray, memoryview), BinaryShape),
    (Exception, ExceptionShape),
)
