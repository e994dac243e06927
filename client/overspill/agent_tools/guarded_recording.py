"""Guards the recorded output of a source tool, so that its answer fits what agents' hosts accept."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from overspill.agent_tools.inspect_request import OTHER_FIELDS_CHARS, USUAL_CHARS
from overspill.guard import call_context
from overspill.previews import notice

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from overspill.agent_tools.agent_tool import Answer
    from overspill.agent_tools.recording import Recording
    from overspill.guard.guard import Guard
    from overspill.live.ports import Beginning
    from overspill.text.limits import Limits


def answer_limits(guard: Guard, tool: str) -> Limits:
    """Return the limits of the output in an answer."""
    usual = guard.policy.limits(tool)
    max_chars = USUAL_CHARS - OTHER_FIELDS_CHARS
    return usual._replace(max_chars=max_chars if usual.max_chars is None else min(usual.max_chars, max_chars))


def guarded_answer(
    guard: Guard,
    recording: Recording,
    tool: str,
    status: str,
    session: str | None,
    stored_as: str | Beginning = "",
) -> Answer:
    """Return `output`, whole or as a notice; `overspill` has the metadata of what spilled.

    `stored_as` is the part that the service already has. Raises `OSError` if the file cannot be read.
    """
    policy = guard.policy.merged({tool: answer_limits(guard, tool)})
    with _stored_as(stored_as):
        guarded = guard.process_sync(
            recording.content("replace"), tool=tool, session=session, status=status, policy=policy
        )
    if guarded.notice is None:
        return {"output": _text(guarded.value)}
    notice_text = guarded.notice
    if recording.missing:
        notice_text = notice.without_middle(notice_text, recording.gap, recording.missing)
    return {"output": str(notice_text), "overspill": guarded.metadata}


def _stored_as(capture: str | Beginning) -> AbstractContextManager[None]:
    call = call_context.current()
    if not capture:
        return nullcontext()
    call_id, session = ("", None) if call is None else (call.id, call.session)
    return call_context.calling(call_id, session, capture=capture)


def _text(value: str | list[bytes]) -> str:
    """Return an output that stays whole, because the guard was told to keep it, as one text."""
    return value if isinstance(value, str) else b"".join(value).decode("utf-8", "replace")
