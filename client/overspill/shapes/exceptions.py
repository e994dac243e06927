"""Exceptions as outputs: what a model is told of them is the message, what is captured is all there is.

The message with its notes, and those of a group's members, decide whether an exception is too long; its
traceback is in the capture only. The exception that goes on is a twin of the same type.
"""

from __future__ import annotations

import re
import traceback
from typing import TYPE_CHECKING, Final

from overspill.previews.notice import MAX_NOTICE, is_notice, placeholder
from overspill.shapes.fields import Unchangeable
from overspill.shapes.twin import with_message
from overspill.text import measure
from overspill.text.limits import exceeds
from overspill.text.rendering import TEXT_TYPE, unprintable

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.previews.notice import Notice
    from overspill.text.body import Body
    from overspill.text.limits import Limits

_VALIDATION: Final = re.compile(
    r"1 validation error for [^\n]*\n  (.*) \[type=overspill, input_value=None, input_type=NoneType\]",
    re.DOTALL,
)
_SHORT_NOTES: Final = 500
_DEEPEST: Final = 8
_WIDEST: Final = 1_000
_LONG: Final = 1024 * 1024
"""Characters of a message that Python is not left to print."""


class ExceptionShape:
    """An exception that a tool returned or raised."""

    content_type = TEXT_TYPE

    def __init__(self, error: Exception) -> None:
        self._error = error
        self.message: str = message_of(error)
        self.told: str = "\n".join(
            text for text in (self.message, *notes_of(error), *_members_texts(error, _DEEPEST)) if text
        )
        self._body: str | None = None

    @property
    def body(self) -> Body:
        """The traceback with the whole message, those of causes and members included."""
        if self._body is None:
            self._body = full_text(self._error)
        return self._body

    @property
    def size(self) -> int:
        """Bytes of what a model is told of it."""
        return measure.size(self.told)

    def exceeds(self, limits: Limits) -> bool:
        return exceeds(self.told, limits)

    def is_guarded(self) -> bool:
        return len(self.told) <= MAX_NOTICE and is_notice(_given(self._error, self.message))

    def replaced(self, notice: Notice) -> Exception:
        """An exception of the same type. Raises `Unchangeable` where its class lets none be made."""
        if notice.is_alone:
            made = self.with_message(str(notice), lambda _: "", most_notes=0)
        else:
            made = self.with_message(str(notice), lambda text: placeholder(notice, measure.size(text)))
        if made is self._error:
            raise Unchangeable(type(made).__name__)
        return made

    def read(self, notice: Notice) -> str:
        """The text that a model gets with `notice` for the message."""
        return ExceptionShape(self.replaced(notice)).told

    def with_message(
        self, text: str, shorter: Callable[[str], str], *, most_notes: int = _SHORT_NOTES
    ) -> Exception:
        """The same with another message, and what `shorter` makes of the messages of a group's members.

        Notes stay where they have no more characters than `most_notes`.
        """
        return _clamped(self._error, text, shorter, most_notes)


def _clamped(error: Exception, text: str, shorter: Callable[[str], str], most_notes: int) -> Exception:
    members = _members(error)
    if members is None:
        made = with_message(error, text)
    else:
        made = with_message(error, text, [_shortened(member, shorter, most_notes) for member in members])
    if made is not error:
        _replace_copies(made, message_of(error), text)
        _keep_short_notes(made, notes_of(error), most_notes)
    return made


def message_of(error: BaseException) -> str:
    """What `str` makes of it; what it is where that fails."""
    try:
        return str.__str__(str(error))
    except Exception as failure:  # noqa: BLE001  (a foreign method: whatever it raises)
        return unprintable(error, failure)


def _given(error: Exception, message: str) -> str:
    """The message that a twin was given, of which `message`, as it prints, may say more."""
    if isinstance(error, ExceptionGroup):
        return str.__str__(error.message)
    found = _VALIDATION.fullmatch(message)
    return message if found is None else found[1]


def notes_of(error: BaseException) -> list[str]:
    notes = getattr(error, "__notes__", ())
    return [note for note in notes if isinstance(note, str)] if isinstance(notes, (list, tuple)) else []


def full_text(error: BaseException) -> str:
    """The traceback as Python prints it, with every member of a group."""
    try:
        if _is_alone(error) and len(message := message_of(error)) > _LONG:
            return _with_long(message, error)
        told = traceback.TracebackException(
            type(error), error, error.__traceback__, max_group_width=_WIDEST, max_group_depth=_DEEPEST
        )
        return "".join(told.format())
    except Exception:  # noqa: BLE001  (foreign methods, or a chain too long to follow)
        return "\n".join([f"{type(error).__name__}: {message_of(error)}", *notes_of(error)])


def _is_alone(error: BaseException) -> bool:
    is_inner = error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)
    return is_inner and _members(error) is None


def _with_long(message: str, error: BaseException) -> str:
    """As Python prints it, which would take several times the memory of the message."""
    frames = traceback.format_tb(error.__traceback__)
    heading = ["Traceback (most recent call last):\n"] if frames else []
    kind = type(error)
    module = "" if kind.__module__ in {"__main__", "builtins"} else f"{kind.__module__}."
    notes = [f"{note}\n" for note in notes_of(error)]
    return "".join([*heading, *frames, f"{module}{kind.__qualname__}: ", message, "\n", *notes])


def _members(error: BaseException) -> list[Exception] | None:
    return list(error.exceptions) if isinstance(error, ExceptionGroup) else None


def _members_texts(error: BaseException, depth: int) -> list[str]:
    if depth == 0:
        return []
    texts = []
    for member in (_members(error) or [])[:_WIDEST]:
        texts += [message_of(member), *notes_of(member), *_members_texts(member, depth - 1)]
    return texts


def _shortened(member: Exception, shorter: Callable[[str], str], most_notes: int) -> Exception:
    seen = "\n".join([message_of(member), *notes_of(member), *_members_texts(member, _DEEPEST)])
    short = shorter(seen)
    return member if len(seen) <= len(short) else _clamped(member, short, shorter, most_notes)


def _replace_copies(made: Exception, message: str, text: str) -> None:
    """Frameworks keep the message in an attribute as well, and show that one."""
    for name, value in list(made.__dict__.items()):
        if isinstance(value, str) and name != "__notes__" and len(value) >= len(text) and value == message:
            made.__dict__[name] = text


def _keep_short_notes(made: Exception, notes: list[str], most: int) -> None:
    made.__dict__.pop("__notes__", None)
    if sum(map(len, notes)) <= most:
        for note in notes:
            made.add_note(note)
