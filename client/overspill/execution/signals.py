"""Tells the exceptions of a program's own signal handlers from errors of the code that they interrupted."""

from __future__ import annotations

import functools
import signal
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import CodeType


def is_of_handler(error: BaseException) -> bool:
    """Return whether a signal handler raised the error, for example one that ends a call after some time.

    Such an error is a message from the program to itself. Code that catches all errors must raise it again.
    """
    handlers = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    return any(frame.f_code in handlers for frame, _ in traceback.walk_tb(error.__traceback__))


def _code_of(handler: Any) -> CodeType | None:
    """Return the code of a function, a method, a partial function or an object that is called."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    function = getattr(handler, "__func__", handler)
    if not hasattr(function, "__code__"):
        function = vars(type(function)).get("__call__")
    code: CodeType | None = getattr(function, "__code__", None)
    return code
