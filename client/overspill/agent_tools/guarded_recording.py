"""Guards what a source tool has recorded, so that its answer keeps to what agents' hosts take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from overspill.agent_tools.inspect_request import MAX_CHARS
from overspill.previews import notice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from overspill.agent_tools.agent_tool import Answer
    from overspill.agent_tools.recording import Recording
    from overspill.guard.guard import Guard

_OTHER_FIELDS_CHARS: Final = 1_500
"""About the characters of an answer without its output."""


def guarded_answer(guard: Guard, recording: Recording, tool: str, status: str, session: str | None) -> Answer:
    """Return `output`, whole or as a notice; `overspill` has the metadata of what spilled.

    Raises `OSError` if the recording's file cannot be read.
    """
    usual = guard.policy.limits(tool)
    most = MAX_CHARS - _OTHER_FIELDS_CHARS
    limits = usual._replace(max_chars=most if usual.max_chars is None else min(usual.max_chars, most))
    policy = guard.policy.merged({tool: limits})
    guarded = guard.process_sync(
        _content(recording), tool=tool, session=session, status=status, policy=policy
    )
    if guarded.notice is None:
        return {"output": _text(guarded.value)}
    made = guarded.notice
    if recording.missing:
        made = notice.without_middle(made, recording.gap, recording.missing)
    return {"output": str(made), "overspill": guarded.metadata}


def _content(recording: Recording) -> str | Iterator[bytes]:
    """Return a short output as a text, and a longer one in pieces."""
    if recording.is_short:
        return b"".join(recording.pieces()).decode("utf-8", "replace")
    return recording.pieces()


def _text(value: str | list[bytes]) -> str:
    """Return an output that stays whole, because the guard was told so, as one text."""
    return value if isinstance(value, str) else b"".join(value).decode("utf-8", "replace")
