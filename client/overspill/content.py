"""The shapes that tools return: what in them is text, and the same shape with a notice in its place.

A shape never changes the object that it was read from. What has no text that could be too long has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from overspill import measure
from overspill.blocks import Blocks, Envelope, is_blocks, is_envelope, is_other_message
from overspill.notice import MAX_NOTICE, as_dict, is_notice
from overspill.rendering import JSON, TEXT, as_text, is_structured, kind_of_bytes

if TYPE_CHECKING:
    from overspill.measure import Limits
    from overspill.notice import Notice


class Content(Protocol):
    """A tool's output in one of the known shapes."""

    @property
    def body(self) -> str | bytes:
        """All of its text, as it is captured."""

    @property
    def content_type(self) -> str: ...

    def is_guarded(self) -> bool:
        """Whether a notice stands in it already."""

    def replaced(self, notice: Notice) -> Any:
        """The output's shape with `notice` where its text was."""


def examine(result: Any) -> Content | None:
    """The shape of `result`; None where it passes through: numbers, people's messages, unknown objects."""
    if isinstance(result, str):
        return Text(result)
    if isinstance(result, (bytes, bytearray, memoryview)):
        return Binary(bytes(result))
    if isinstance(result, (list, tuple)) and is_blocks(result):
        return Blocks(result)
    if result is None or isinstance(result, (bool, int, float)) or is_other_message(result):
        return None
    if is_envelope(result):
        return Envelope(result)
    return Structured(result) if is_structured(result) else None


def exceeds(content: Content, limits: Limits) -> bool:
    """Whether all of the content's text together has strictly more than the limits allow."""
    body = content.body
    return measure.exceeds_bytes(body, limits) if isinstance(body, bytes) else measure.exceeds(body, limits)


class Text:
    content_type = TEXT

    def __init__(self, text: str) -> None:
        self.body: str | bytes = text

    def is_guarded(self) -> bool:
        return is_notice(self.body)

    def replaced(self, notice: Notice) -> str:
        return str(notice)


class Binary:
    """Bytes, captured as they are; the notice that stands in for them is text."""

    def __init__(self, data: bytes) -> None:
        self.body: str | bytes = data
        self.content_type = kind_of_bytes(data)

    def is_guarded(self) -> bool:
        return False

    def replaced(self, notice: Notice) -> str:
        return str(notice)


class Structured:
    """A container or record, captured as indented JSON; a dict stands in for it."""

    def __init__(self, value: Any) -> None:
        self._value = value
        text, is_json = as_text(value)
        self.body: str | bytes = text
        self.content_type = JSON if is_json else TEXT

    def is_guarded(self) -> bool:
        """Whether `replaced` made this. As any tool can return the like, only a short one is believed."""
        value = self._value
        if not isinstance(value, dict) or len(self.body) > MAX_NOTICE or "capture" not in value:
            return False
        return str(value.get("notice")).startswith(f"[overspill {value['capture']}")

    def replaced(self, notice: Notice) -> dict[str, Any]:
        return as_dict(notice)
