"""Guards what certainly comes from a tool, also if it looks like a message of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from overspill.guard.message_marks import with_marks, without_marks

if TYPE_CHECKING:
    from overspill.guard.guard import Guard
    from overspill.guard.guarded import Guarded


async def process_value(guard: Guard, value: Any, **call: Any) -> Guarded:
    """Return what the guard makes of a tool's value; `call` as in `Guard.process`."""
    return with_marks(await guard.process(without_marks(value), **call), value)


def process_value_sync(guard: Guard, value: Any, **call: Any) -> Guarded:
    """Do the same as `process_value`, for code without an event loop."""
    return with_marks(guard.process_sync(without_marks(value), **call), value)
