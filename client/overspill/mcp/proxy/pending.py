"""The requests that the server has not answered yet, and what their answers need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from overspill.mcp.proxy.messages import Message, NotAMessage, id_key, parsed
from overspill.mcp.request import Request

if TYPE_CHECKING:
    from overspill.mcp.proxy.messages import Key


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


def request_of(message: Message) -> Request:
    """Return the request that a message with an id and a method makes."""
    assert message.id is not UNSET
    assert message.method is not UNSET
    try:
        params = {} if message.params is UNSET else parsed(message.params)
    except NotAMessage:
        params = {}
    return Request(message.id, message.method, params)
