"""Finds looks at a live capture that show nothing new. Their answers say how one call waits instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from overspill import wire
from overspill.reading.latest import Latest

if TYPE_CHECKING:
    from overspill.agent_tools.agent_tool import Answer
    from overspill.agent_tools.inspect_request import InspectRequest

_REMEMBERED: Final = 1_000
"""The number of looks that one tool remembers: the last ones."""
_ADVICE: Final = (
    "Nothing new since your last call, and the tool still runs. Do not poll: call {} with the arguments in "
    '`next`, which waits. Add a pattern to wait for, such as "ready|error", or do something else first.'
)


class RepeatedLooks:
    """Remembers the looks at live captures through one tool: for each look, how many bytes there were."""

    def __init__(self, waiter: str) -> None:
        """`waiter` names the tool that waits, for the model."""
        self._advice = _ADVICE.format(waiter)
        self._sizes: Latest[tuple[Any, ...], int] = Latest(_REMEMBERED)

    def with_advice(self, request: InspectRequest, session: str | None, found: Any, answer: Answer) -> Answer:
        """Return the answer. Add advice to wait if the same look has shown the same bytes before.

        No advice is added if `next` reads lines that already exist: that is reading on, not waiting.
        """
        if answer.get("next") and request.mode != "tail":
            return answer
        if not _is_live(found) or self._sizes.get(_look(request, session)) != found.total_bytes:
            return answer
        return {**answer, "advice": self._advice, "next": _wait(request, found.total_bytes)}

    def note(self, request: InspectRequest, session: str | None, found: Any) -> None:
        """Remember a look that was answered."""
        look = _look(request, session)
        self._sizes.pop(look, None)
        if _is_live(found):
            self._sizes[look] = found.total_bytes


def _is_live(found: Any) -> bool:
    return isinstance(found, wire.Text) and found.state is wire.State.LIVE


def _look(request: InspectRequest, session: str | None) -> tuple[Any, ...]:
    """Return a key for a look. Leaves out the instant of a `since`, which moves with the clock."""
    query = request.mode, request.line_count, request.start, request.end, request.offset, request.pattern
    return session, request.capture, *query


def _wait(request: InspectRequest, size: int) -> dict[str, Any]:
    pattern = {} if request.pattern is None else {"pattern": request.pattern}
    return {"capture": request.capture, "mode": "wait", **pattern, "cursor": str(size)}
