"""The tool call that is running, as a context variable, so that its outputs get its id."""

from __future__ import annotations

import secrets
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from overspill.shapes.sender import Sender

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from overspill.live.ports import Beginning

T = TypeVar("T")


class Call(NamedTuple):
    """A tool call: its id, the session in which it was made, and the live capture of its output, if any."""

    id: str
    session: str | None = None
    capture: str | Beginning = ""


_DIRECT: Final = "direct"
_CALL: Final[ContextVar[Call | None]] = ContextVar("overspill_call", default=None)
_BYPASS: Final[ContextVar[bool]] = ContextVar("overspill_bypass", default=False)
_SENDER: Final[ContextVar[Sender]] = ContextVar("overspill_sender", default=Sender.HOST)


def current() -> Call | None:
    """Return the call that `calling` set, or None outside of its block."""
    return _CALL.get()


def is_bypassed() -> bool:
    """Return whether this context asked that its outputs stay as they are."""
    return _BYPASS.get()


def calling(
    call_id: str, session: str | None = None, *, capture: str | Beginning = ""
) -> AbstractContextManager[None]:
    """Let the outputs in the block belong to this tool call: for adapters, which know the ids of calls.

    `capture` is the handle of a complete live capture of the output, if there is one. A guard then names that
    in its notice, and stores nothing more. If the service has only a beginning, the guard stores the whole
    under the handle of that.
    """
    return _set_in_block(_CALL, Call(call_id, session, capture))


def begin(call_id: str, session: str | None = None) -> None:
    """Let the outputs of this context belong to this tool call until `end`.

    For frameworks that report the beginning and the end of a call to adapters, but do not let them wrap it.
    """
    _CALL.set(Call(call_id, session))


def end() -> None:
    """Let the outputs of this context belong to no tool call any more: ends what `begin` began."""
    _CALL.set(None)


def bypassing() -> AbstractContextManager[None]:
    """Let the outputs in the block pass every guard unchanged."""
    return _set_in_block(_BYPASS, True)


def take_sender() -> Sender:
    """Return who hands over what a guard gets now: a host, unless a block says otherwise.

    The block holds for this output alone: a tool that yields runs while it is read, and may be a host itself.
    """
    found = _SENDER.get()
    if found is not Sender.HOST:
        _SENDER.set(Sender.HOST)
    return found


def guarding_tool(sender: Sender = Sender.TOOL) -> AbstractContextManager[None]:
    """Let the one `Guard.process` in the block guard what it gets, whatever that looks like: it is a tool's.

    For adapters, which know that. A host may give `process` any message of its conversation.
    """
    return _set_in_block(_SENDER, sender)


@contextmanager
def _set_in_block(variable: ContextVar[T], value: T) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        with suppress(ValueError):  # an abandoned task ends the block in another context than it began
            variable.reset(token)


def minted() -> str:
    """Return a random id for a call that has none."""
    return f"call_{secrets.token_hex(12)}"


def is_program(caller: Any) -> bool:
    """Return whether a provider's `caller` of a tool call is code, which needs the whole output.

    OpenAI and Anthropic send `{"type": "direct"}` for the model itself, and another type for programs.
    """
    kind = caller.get("type") if isinstance(caller, dict) else getattr(caller, "type", None)
    return isinstance(kind, str) and kind != _DIRECT
