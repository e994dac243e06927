"""The calls that became tasks: the client gets their results later, by the ids of the tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from overspill.mcp.request import CALL
from overspill.reading.latest import Latest

if TYPE_CHECKING:
    from overspill.mcp.request import Request

TASK_RESULT: Final = "tasks/result"
"""The request whose answer is the result of the call, in 2025-11-25."""
TASK_STATE: Final = "tasks/get"
"""The request whose answer has the result or the error in a field, in the extension of later revisions."""
TASK_NEWS: Final = "notifications/tasks"
"""The notification with the same content, without a request."""
_MAX_TASKS: Final = 10_000


class TaskCalls:
    """The tasks of one connection."""

    def __init__(self) -> None:
        self._calls: Latest[str, Request] = Latest(_MAX_TASKS)

    def note(self, call: Request, result: Any) -> None:
        """Remember a call if its result names a task: in `task` in 2025-11-25, later beside the status."""
        if isinstance(result, dict):
            task = result.get("task")
            named = task.get("taskId") if isinstance(task, dict) else result.get("taskId")
            if isinstance(named, str):
                self._calls[named] = call

    def get(self, task: Any) -> Request | None:
        """Return the call that became a task, None if none did."""
        return self._calls.get(task) if isinstance(task, str) else None

    def call_of(self, request: Request) -> Request | None:
        """Return the call whose result or error the answer of a request is, None for other requests."""
        if request.method == CALL:
            return request
        return self.get(request.params.get("taskId")) if request.method == TASK_RESULT else None
