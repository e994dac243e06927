"""The shapes of outputs that are one text or one value: a string, bytes, an object that prints.

An object's own methods may raise here: `examination.examine` catches whatever they raise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from overspill.previews.notice_forms import MAX_NOTICE, notices_among
from overspill.reading.lock_free import cached_property
from overspill.shapes.field_copies import Unchangeable, with_fields, with_text
from overspill.shapes.shape import Shape
from overspill.text.limits import exceeds
from overspill.text.media_types import TEXT_TYPE, media_type_of
from overspill.text.rendering import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.previews.notice_facts import Notice
    from overspill.text.body import Body
    from overspill.text.limits import Limits


class TextShape(Shape):
    """A text, or what stands for one."""

    content_type = TEXT_TYPE

    def __init__(self, text: str) -> None:
        self.body: Body = str.__str__(text)
        self._given = text
        self._text: str = self.body

    def exceeds(self, limits: Limits) -> bool:
        """Return whether what a model sees has more than the limits allow."""
        return exceeds(self._text, limits)

    def notices(self) -> list[str]:
        """Return the text if it is a notice."""
        return notices_among([self._text])

    def replaced(self, notice: Notice) -> Any:
        """Return the notice in the class of the text."""
        return with_text(self._given, str(notice))


class PrintedShape(TextShape):
    """An object of an unknown class, captured as it prints, since frameworks show that to the model.

    If most of what it prints is the text of one attribute, only that is captured, and the notice goes there.
    """

    def __init__(self, value: Any, text: str | None = None) -> None:
        super().__init__(printable(value) if text is None else text)
        self._value = value
        self._field = _field_of(value, self._text)
        if self._field:
            self.body: Body = str.__str__(vars(value)[self._field])

    def replaced(self, notice: Notice) -> Any:
        """Return a copy with the notice in the attribute's place. Raises `Unchangeable`."""
        return self.with_shorter(lambda _: str(notice))

    def with_shorter(self, shorten: Callable[[str], str]) -> Any:
        """Return a copy with what `shorten` makes of the attribute's text. Raises `Unchangeable`."""
        if not self._field:
            raise Unchangeable(type(self._value).__name__)
        text = vars(self._value)[self._field]
        made = with_fields(self._value, {self._field: with_text(text, shorten(str.__str__(text)))})
        if len(printable(made)) >= len(self._text):
            raise Unchangeable(type(self._value).__name__)
        return made


def _field_of(value: Any, text: str) -> str:
    """Return the name of the attribute whose text is most of what `value` prints; empty if there is none."""
    fields = getattr(value, "__dict__", None)
    if not isinstance(fields, dict):
        return ""
    texts = {name: len(field) for name, field in fields.items() if isinstance(field, str)}
    name = max(texts, key=lambda name: texts[name], default="")
    return name if name and texts[name] * 2 > len(text) else ""


class UnreadableShape(TextShape):
    """The description of an object whose methods raise. It passes as it is."""

    def exceeds(self, limits: Limits) -> bool:  # noqa: ARG002  (there is nothing to measure)
        """Return False: the description is short."""
        return False


class BinaryShape(Shape):
    """Bytes, captured as they are. The notice in their place is bytes of UTF-8."""

    def __init__(self, given: bytes | bytearray | memoryview) -> None:
        self._given = given
        self._data = bytes(given)
        self.body: Body = self._data

    @cached_property
    def content_type(self) -> str:
        """Return the media type that the bytes tell."""
        return media_type_of(self._data)

    def notices(self) -> list[str]:
        """Return the text of the bytes if it is a notice."""
        if len(self._data) > MAX_NOTICE:
            return []
        return notices_among([self._data.decode("utf-8", "replace")])

    def replaced(self, notice: Notice) -> Any:
        """Return the notice as bytes of the same class."""
        return with_text(self._given, str(notice))
