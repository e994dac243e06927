"""Copies of exceptions with another message, of the same class or one derived from it."""

from __future__ import annotations

import sys
from contextlib import suppress
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any, Final

_HEAP_TYPE: Final = 1 << 9
"""CPython's flag `Py_TPFLAGS_HEAPTYPE`: classes without it are built in."""
_UNSET: Final = object()
_DESCRIPTORS: Final = (MemberDescriptorType, GetSetDescriptorType)
_NOT_COPIED: Final = frozenset(
    {"args", "__traceback__", "__context__", "__cause__", "__suppress_context__", "__dict__", "__weakref__"}
)


def copy_with_message(error: Exception, message: str, members: list[Exception] | None = None) -> Exception:
    """Return a copy of `error` with other texts; `error` itself if none can be made. A group gets `members`.

    The copy has the type, attributes, cause, context and traceback of its original. If the message is more
    than the only argument, the copy is of a class derived for this purpose, with the same name: whoever
    catches the one catches the other. The exception's own constructor is never called.
    """
    for make in (_of_same_class, _of_derived_class, _validation_error):
        try:
            copied = make(error, message, members)
            if copied is not None and message in str(copied) and len(str(copied)) < 2 * len(message) + 200:
                return _with_context(copied, error)
        except Exception:  # noqa: BLE001, S112  (foreign classes: the next one may work)
            continue
    return error


def _of_same_class(error: Exception, message: str, members: list[Exception] | None) -> Exception | None:
    """Return a copy of exactly the same class; None unless the message is its own, or its one argument."""
    is_own = members is None and str(error) == message
    if not is_own and (members is not None or len(error.args) != 1 or not isinstance(error.args[0], str)):
        return None
    copied = _instance(error, type(error), error.args)
    if not is_own:
        copied.args = (message,)
    return copied if str(copied) == message else None


def _of_derived_class(error: Exception, message: str, members: list[Exception] | None) -> Exception | None:
    """Return a copy of a derived class that prints `message`, whatever its arguments are."""
    if members is not None:
        return _instance(error, type(error), (message, members))
    kind = type(error)
    names = {
        "__str__": lambda _: message,
        "__repr__": lambda _: f"{kind.__name__}({message!r})",
        "__reduce__": lambda self: (copy_with_message, (error, message), self.__dict__),
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
    }
    metaclass: Any = type(kind)
    return _instance(error, metaclass(kind.__name__, (kind,), names), error.args)


def _validation_error(error: Exception, message: str, _: list[Exception] | None) -> Exception | None:
    """Return a pydantic `ValidationError` with one error that has the message: its class is final."""
    core: Any = sys.modules.get("pydantic_core")
    if core is None or not isinstance(error, core.ValidationError):
        return None
    instead = core.PydanticCustomError("overspill", "{notice}", {"notice": message})
    line = {"type": instead, "loc": (), "input": None}
    copied: Exception = core.ValidationError.from_exception_data(error.title, [line])
    return copied


def _instance(error: Exception, kind: type[Exception], args: tuple[Any, ...]) -> Exception:
    """Make an instance with the constructor of the nearest built-in class, and copy the attributes."""
    built_in = next(base for base in type(error).__mro__ if not base.__flags__ & _HEAP_TYPE)
    copied: Exception = built_in.__new__(kind, *args)
    vars(built_in).get("__init__", BaseException.__init__)(copied, *args)
    for base in type(error).__mro__[:-1]:
        for name, member in vars(base).items():
            if isinstance(member, _DESCRIPTORS) and name not in _NOT_COPIED:
                _copy_member(error, copied, name)
    copied.__dict__.update(error.__dict__)
    return copied


def _copy_member(error: Exception, copied: Exception, name: str) -> None:
    with suppress(AttributeError, TypeError):  # not set, or not to be set
        value = getattr(error, name)
        if getattr(copied, name, _UNSET) is not value:  # an OSError prints a filename that was set to None
            setattr(copied, name, value)


def _with_context(copied: Exception, error: Exception) -> Exception:
    copied.__traceback__ = error.__traceback__
    copied.__cause__ = error.__cause__
    copied.__context__ = error.__context__
    copied.__suppress_context__ = error.__suppress_context__
    return copied
