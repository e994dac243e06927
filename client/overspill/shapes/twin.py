"""Exceptions of the same type with another message.

A twin has its original's type, attributes, cause, context and traceback. Where the message is more than the
one argument, the twin is of a class derived from the original's for this purpose, with its name: whoever
catches the one catches the other. No constructor of the exception's own is called.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any, Final

_HEAP_TYPE: Final = 1 << 9
_MEMBERS: Final = (MemberDescriptorType, GetSetDescriptorType)
_NOT_COPIED: Final = frozenset(
    {"args", "__traceback__", "__context__", "__cause__", "__suppress_context__", "__dict__", "__weakref__"}
)


def with_message(error: Exception, message: str, members: list[Exception] | None = None) -> Exception:
    """`error` with `message`, a group with other `members`; `error` itself where its class allows none."""
    for way in (_same_class, _derived, _validation):
        try:
            made = way(error, message, members)
            if made is not None and message in str(made) and len(str(made)) < 2 * len(message) + 200:
                return _connected(made, error)
        except Exception:  # noqa: BLE001, S112  (foreign classes: the next way does without)
            continue
    return error


def _same_class(error: Exception, message: str, members: list[Exception] | None) -> Exception | None:
    """Of exactly the same class, where the message is its one argument."""
    if members is not None or len(error.args) != 1 or not isinstance(error.args[0], str):
        return None
    made = _made(error, type(error), error.args)
    made.args = (message,)
    return made if str(made) == message else None


def _derived(error: Exception, message: str, members: list[Exception] | None) -> Exception | None:
    """Of a class derived from its class, which says `message` whatever its arguments are."""
    if members is not None:
        return _made(error, type(error), (message, members))
    kind = type(error)
    names = {
        "__str__": lambda _: message,
        "__repr__": lambda _: f"{kind.__name__}({message!r})",
        "__reduce__": lambda self: (with_message, (error, message), self.__dict__),
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
    }
    metaclass: Any = type(kind)
    return _made(error, metaclass(kind.__name__, (kind,), names), error.args)


def _validation(error: Exception, message: str, _: list[Exception] | None) -> Exception | None:
    """Of pydantic's `ValidationError`, whose class is final: with one error instead of its own."""
    core: Any = sys.modules.get("pydantic_core")
    if core is None or not isinstance(error, core.ValidationError):
        return None
    instead = core.PydanticCustomError("overspill", "{notice}", {"notice": message})
    line = {"type": instead, "loc": (), "input": None}
    made: Exception = core.ValidationError.from_exception_data(error.title, [line])
    return made


def _made(error: Exception, kind: type[Exception], args: tuple[Any, ...]) -> Exception:
    """An instance by the constructor of the nearest built-in class, with the original's attributes."""
    built_in = next(base for base in type(error).__mro__ if not base.__flags__ & _HEAP_TYPE)
    made: Exception = built_in.__new__(kind, *args)
    vars(built_in).get("__init__", BaseException.__init__)(made, *args)
    for base in type(error).__mro__[:-1]:
        for name, member in vars(base).items():
            if isinstance(member, _MEMBERS) and name not in _NOT_COPIED:
                _copy_member(error, made, name)
    made.__dict__.update(error.__dict__)
    return made


def _copy_member(error: Exception, made: Exception, name: str) -> None:
    with suppress(AttributeError, TypeError):  # not set, or not to be set
        setattr(made, name, getattr(error, name))


def _connected(made: Exception, error: Exception) -> Exception:
    made.__traceback__ = error.__traceback__
    made.__cause__ = error.__cause__
    made.__context__ = error.__context__
    made.__suppress_context__ = error.__suppress_context__
    return made
