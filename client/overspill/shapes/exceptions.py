"""Exceptions as outputs: the model sees the message, the capture has the whole traceback.

The message, its notes and those of a group's members decide whether an exception is too long. A long one is
replaced by a copy of the same type, with the notice where most of the text is. A short message stays: most
frameworks show a model nothing else.
"""

from __future__ import annotations

import re
import traceback
from typing import TYPE_CHECKING, Final

from overspill.previews.notice_forms import notices_among, placeholder
from overspill.reading.lock_free import cached_property
from overspill.shapes.exception_copies import copy_with_message
from overspill.shapes.field_copies import Unchangeable
from overspill.shapes.shape import Shape
from overspill.text import measure
from overspill.text.media_types import TEXT_TYPE
from overspill.text.rendering import unprintable

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.previews.notice_facts import Notice
    from overspill.text.body import Body

# How pydantic prints the one error of a copy that `_validation_error` made.
_VALIDATION: Final = re.compile(
    r"1 validation error for [^\n]*\n  (.*) \[type=overspill, input_value=None, input_type=NoneType\]",
    re.DOTALL,
)
_KEPT_NOTES_CHARS: Final = 500
_MAX_GROUP_DEPTH: Final = 8
_MAX_GROUP_WIDTH: Final = 1_000
_LONG_MESSAGE_CHARS: Final = 1024 * 1024
"""A longer message is not left to `traceback`, which would take several times its memory."""


class ExceptionShape(Shape):
    """An exception that a tool returned or raised."""

    content_type = TEXT_TYPE

    def __init__(self, error: Exception) -> None:
        self._error = error
        self.message: str = message_of(error)
        self.shown: str = _visible_text(error)

    @cached_property
    def body(self) -> Body:
        """The whole traceback, with causes and members."""
        return full_text(self._error)

    @property
    def visible_text(self) -> str:
        """The text for the model: the message, its notes, and those of a group's members."""
        return self.shown

    def notices(self) -> list[str]:
        """Return the notice that it holds already, and the placeholders of a group's members."""
        others = [*notes_of(self._error), *_members_texts(self._error, _MAX_GROUP_DEPTH)]
        return notices_among([_copied_message(self._error, self.message), *others])

    def replaced(self, notice: Notice) -> Exception:
        """Return an exception of the same type with the notice. Raises `Unchangeable` if none can be made."""
        if notice.is_alone:
            made = _with_text(self._error, str(notice), lambda _: "", kept_notes_chars=0)
        else:
            made = _with_text(self._error, str(notice), lambda text: placeholder(notice, measure.size(text)))
        if made is self._error:
            raise Unchangeable(type(made).__name__)
        return made

    def read(self, notice: Notice) -> str:
        """Return the text that a model gets with `notice` for the message."""
        return ExceptionShape(self.replaced(notice)).visible_text


def _visible_text(error: BaseException) -> str:
    texts = (message_of(error), *notes_of(error), *_members_texts(error, _MAX_GROUP_DEPTH))
    return "\n".join(filter(None, texts))


def _with_text(
    error: Exception, text: str, shorten: Callable[[str], str], kept_notes_chars: int = _KEPT_NOTES_CHARS
) -> Exception:
    """Return a copy with `text` instead of most of its texts: of the message, the notes or a member."""
    message, notes, members = _own_message(error), notes_of(error), _members(error) or []
    in_notes, in_members = sum(map(len, notes)), [len(_visible_text(each)) for each in members]
    if len(message) > len(text) or len(message) >= max(in_notes, sum(in_members)):
        return with_message(error, text, shorten, kept_notes_chars)
    heaviest = in_members.index(max(in_members)) if sum(in_members) > in_notes else None
    new = [
        _with_text(each, text, shorten, kept_notes_chars)
        if at == heaviest
        else _shortened(each, shorten, kept_notes_chars)
        for at, each in enumerate(members)
    ]
    made = copy_with_message(error, message, new or None)
    if made is error:
        return with_message(error, text, shorten, kept_notes_chars)
    _keep_short_notes(made, notes, kept_notes_chars if heaviest is not None else 0)
    if heaviest is None:
        made.add_note(text)
    return made


def with_message(
    error: Exception, text: str, shorten: Callable[[str], str], kept_notes_chars: int = _KEPT_NOTES_CHARS
) -> Exception:
    """Return a copy with the message `text`; `shorten` makes the messages of a group's members.

    Notes are kept if they have no more than `kept_notes_chars` characters together.
    """
    members = _members(error)
    if members is not None:
        members = [_shortened(member, shorten, kept_notes_chars) for member in members]
    made = copy_with_message(error, text, members)
    if made is not error:
        _replace_copies(made, message_of(error), text)
        _keep_short_notes(made, notes_of(error), kept_notes_chars)
    return made


def message_of(error: BaseException) -> str:
    """Return `str(error)`; a description if that fails."""
    try:
        return str.__str__(str(error))
    except Exception as failure:  # noqa: BLE001  (a foreign method: whatever it raises)
        return unprintable(error, failure)


def _own_message(error: Exception) -> str:
    """Return the message without what a group prints around it."""
    return str.__str__(error.message) if isinstance(error, ExceptionGroup) else message_of(error)


def _copied_message(error: Exception, message: str) -> str:
    """Return the message that a copy was given; it may print with more around it."""
    found = _VALIDATION.fullmatch(message)
    return _own_message(error) if found is None else found[1]


def notes_of(error: BaseException) -> list[str]:
    """Return the notes of an exception (PEP 678)."""
    notes = getattr(error, "__notes__", ())
    return [note for note in notes if isinstance(note, str)] if isinstance(notes, (list, tuple)) else []


def full_text(error: BaseException) -> str:
    """Return the traceback as Python prints it, with the members of a group."""
    try:
        if _is_alone(error) and len(message := message_of(error)) > _LONG_MESSAGE_CHARS:
            return _traceback_with(message, error)
        lines = traceback.TracebackException(
            type(error),
            error,
            error.__traceback__,
            max_group_width=_MAX_GROUP_WIDTH,
            max_group_depth=_MAX_GROUP_DEPTH,
        ).format()
        return "".join(lines)
    except Exception:  # noqa: BLE001  (foreign methods, or a chain too long to follow)
        return "\n".join([f"{type(error).__name__}: {message_of(error)}", *notes_of(error)])


def _is_alone(error: BaseException) -> bool:
    is_inner = error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)
    return is_inner and _members(error) is None


def _traceback_with(message: str, error: BaseException) -> str:
    """Return what Python prints, without the several copies of the message that Python would make."""
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
    for member in (_members(error) or [])[:_MAX_GROUP_WIDTH]:
        texts += [message_of(member), *notes_of(member), *_members_texts(member, depth - 1)]
    return texts


def _shortened(member: Exception, shorten: Callable[[str], str], kept_notes_chars: int) -> Exception:
    text = _visible_text(member)
    short = shorten(text)
    return member if len(text) <= len(short) else _with_text(member, short, shorten, kept_notes_chars)


def _replace_copies(made: Exception, message: str, text: str) -> None:
    """Replace the message in attributes too: some frameworks keep a copy there, and show that."""
    for name, value in list(made.__dict__.items()):
        if isinstance(value, str) and name != "__notes__" and len(value) >= len(text) and value == message:
            made.__dict__[name] = text


def _keep_short_notes(made: Exception, notes: list[str], limit: int) -> None:
    made.__dict__.pop("__notes__", None)
    if sum(map(len, notes)) <= limit:
        for note in notes:
            made.add_note(note)
