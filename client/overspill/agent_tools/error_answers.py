"""Makes the answer to a failed read: what is wrong, what is allowed, and what the agent should do next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from overspill import wire
from overspill.errors import (
    Absent,
    BadRequest,
    CaptureDamaged,
    Deleted,
    Denied,
    Expired,
    InvalidPattern,
    OverspillError,
    ProblemError,
    Unreachable,
)
from overspill.text.reasons import one_safe_line

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_ERROR: Final = 1_000
_ARGUMENT_NAMES: Final = (
    ("context=, before= and after= show", "context_lines shows"),
    ("context=, before= or after=", "context_lines"),
)
"""Query parameters in the service's messages, and the names of the tool's arguments for them."""
A_HANDLE: Final = (
    'a handle is "cap_" and 20 characters, exactly as it stands in the notice, '
    'or "call:" and the id of the tool call'
)


class InvalidArguments(Exception):
    """Wrong arguments of a tool call. The text says what is allowed."""


_TRY_AGAIN: Final = (
    "The capture is kept: call again later, and until then work with the preview in the notice"
)
_CHECK_HANDLE: Final = (
    f"Check the handle ({A_HANDLE}). If it is right, the output is gone: run the tool again if you need it"
)


def error_answer(error: Exception) -> dict[str, Any]:
    """Return the answer to a failed call. `code` is stable; `error` is for the model."""
    return {"code": _code(error), "error": ". ".join(part.rstrip(".") for part in _explained(error))}


def _explained(error: Exception) -> Iterator[str]:
    """Yield what is wrong, and then what to do."""
    if isinstance(error, ProblemError):
        detail = (error.detail or error.title)[:_MAX_ERROR].partition("; GET ")[0]
        for theirs, ours in _ARGUMENT_NAMES:
            detail = detail.replace(theirs, ours)
        yield detail
        yield from _advice(error)
    elif isinstance(error, InvalidArguments):
        yield str(error)[:_MAX_ERROR]
    elif isinstance(error, Unreachable):
        yield f"the Overspill service {one_safe_line(str(error))}"
        yield _TRY_AGAIN
    elif isinstance(error, OverspillError):
        yield f"the Overspill service cannot be read from: {one_safe_line(str(error))}"
        yield _TRY_AGAIN
    else:
        yield f"the read failed: {one_safe_line(f'{type(error).__name__}: {error}')}"


def _advice(error: ProblemError) -> Iterator[str]:
    match error:
        case Expired() | InvalidPattern():
            return
        case Deleted():
            yield "Its content is gone: run the tool again if you need it"
        case Absent():
            yield _CHECK_HANDLE
        case BadRequest():
            yield "Correct the arguments and call again"
        case Denied():
            yield "Do not call again: the operator of this agent has to give it a key with the scope read"
        case CaptureDamaged():
            yield "Other parts of it may still be readable. Run the tool again if you need this one"
        case _:
            yield _TRY_AGAIN


def _code(error: Exception) -> str:
    if isinstance(error, ProblemError):
        return error.code
    if isinstance(error, InvalidArguments):
        return str(wire.Code.INVALID_PARAMETER)
    return "unreachable" if isinstance(error, OverspillError) else "failed"
