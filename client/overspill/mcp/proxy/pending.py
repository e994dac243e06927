"""The requests that the server has not answered yet, and what their answers need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from overspill.mcp.proxy.messages import Message, NotAMessage, id_key, parsed
from overspill.mcp.request import Request

if TYPE_CHECKING:
    from overspill.mcp.proxy.messages import Key


_MAX_TASKS: Final = 10_000


class Pending:
    """The requests under way."""

    def __init__(self) -> None:
        self._requests: dict[Key, Request] = {}

    def add(self, request: Request) -> None:
        """Note a request that goes to the server."""
        self._requests[id_key(request.id)] = request

    def pop(self, key: Key) -> Request | None:
        """Return the request that an answer is for, once."""
        return self._requests.pop(key, None)

    def clear(self) -> list[Request]:
        """Return all requests, and forget them."""
        left = list(self._requests.values())
        self._requests.clear()
        return left


class TaskCalls:
    """The tool calls whose results a client asks for later, by the ids of their tasks."""

    def __init__(self) -> None:
        self._calls: dict[str, Request] = {}

    def note(self, call: Request, result: dict[str, Any]) -> None:
        """Note the task that a call became, if it did: in 2025-11-25 it is in `task`, later beside it."""
        task = result.get("task")
        named = task.get("taskId") if isinstance(task, dict) else result.get("taskId")
        if isinstance(named, str):
            self._calls[named] = call
            if len(self._calls) > _MAX_TASKS:
                del self._calls[next(iter(self._calls))]

    def of(self, asked: Request) -> Request | None:
        """Return the call whose result is asked for."""
        return self._calls.get(str(asked.params.get("taskId")))


def request_of(message: Message) -> Request:
    """Return the request that a message with an id and a method makes."""
    assert message.id is not UNSET
    assert message.method is not UNSET
    try:
        params = {} if message.params is UNSET else parsed(message.params)
    except NotAMessage:
        params = {}
    return Request(message.id, message.method, params)
