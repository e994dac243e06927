"""A shape: one output of a tool as a text, and its replacement when a notice takes the place of that text.

A shape never changes the object that it was made from.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final

from overspill.shapes.sender import Sender
from overspill.text import measure
from overspill.text.limits import exceeds

if TYPE_CHECKING:
    from overspill.previews.notice_facts import Notice
    from overspill.text.body import Body
    from overspill.text.limits import Limits

QUICK_CHARS: Final = 64 * 1024
"""Measuring a text or a part of up to this many characters takes well under a millisecond."""


class Shape(ABC):
    """An output in one of the known shapes. Unless a shape says otherwise, a model sees all of its body."""

    body: Body
    """All of its text, as it is captured."""
    content_type: str
    """The media type that the body is stored with."""
    remaining: Limits | None = None
    """The rest of some limits for the notice, if a part of the output stays beside it or has passed."""
    passed: int = 0
    """Bytes of a stream that were in the conversation before it was too long."""
    sender: Sender = Sender.TOOL
    """Who handed it over. Of a host, messages in it that no tool made stay, and count for nothing."""
    missing: str = ""
    """Why the body is not all of a stream; empty if it is."""

    @property
    def visible_text(self) -> Body:
        """The text that a model would get."""
        return self.body

    @property
    def measured_text(self) -> Body:
        """The text that limits apply to."""
        return self.visible_text

    @property
    def size(self) -> int:
        """Bytes that a model sees."""
        return measure.size(self.visible_text)

    def is_quick(self, limits: Limits | None = None) -> bool:
        """Return whether `exceeds` and `size` cost under a millisecond. If not, ask for them in a thread.

        With `limits`, a text with more characters than they have bytes is quick too.
        """
        length = len(self.visible_text)
        return length <= QUICK_CHARS or (limits is not None and length > limits.max_bytes)

    def exceeds(self, limits: Limits) -> bool:
        """Return whether what a model sees has more than the limits allow. Raises `OSError`."""
        return exceeds(self.visible_text, limits)

    @abstractmethod
    def notices(self) -> list[str]:
        """Return the notices that it holds already, as they count in its size."""

    @abstractmethod
    def replaced(self, notice: Notice) -> Any:
        """Return the output with `notice` where its text was. Raises `Unchangeable`."""

    def read(self, notice: Notice) -> str:
        """Return the text that a model gets with that notice instead of the cut text."""
        return str(notice)
