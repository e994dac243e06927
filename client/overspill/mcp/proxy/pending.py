"""The requests that the server has not answered yet, and what their answers need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct

from overspill.guard.call_context import minted
from overspill.integrations.adapter import is_program
from overspill.mcp.proxy.messages import Message, NotAMessage, id_key, parsed
from overspill.mcp.rendering import CLIENT_INFO, VERSION

if TYPE_CHECKING:
    from overspill.mcp.proxy.messages import Id, Key

_CALL_ID = "claudecode/toolUseId"
"""Where Claude Code sends the provider's id of the tool call."""


class Request(Struct, frozen=True):
    """One request of the client. `revision` is the protocol's, if the request itself names it."""

    id: Id
    method: str
    params: dict[str, Any]

    @property
    def meta(self) -> dict[str, Any]:
        """Return the request's `_meta`."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}

    @property
    def revision(self) -> str | None:
        """Return the revision that the request names: from 2026-07-28 on each request does."""
        named = self.meta.get(VERSION)
        return named if isinstance(named, str) else None

    @property
    def client_name(self) -> str:
        """Return what the client calls itself, or an empty text: `initialize` says it, or each request."""
        told = self.params.get("clientInfo") or self.meta.get(CLIENT_INFO)
        name = told.get("name") if isinstance(told, dict) else None
        return name if isinstance(name, str) else ""

    @property
    def tool(self) -> str:
        """Return the name of the tool that is called."""
        name = self.params.get("name")
        return name if isinstance(name, str) else ""

    @property
    def call_id(self) -> str:
        """Return the id that the model's provider gave the call, or a random one: JSON-RPC counts from 0."""
        named = self.meta.get(_CALL_ID)
        return named if isinstance(named, str) and named else minted()

    @property
    def is_from_program(self) -> bool:
        """Return whether the client says that code made the call."""
        return is_program(self.params.get("caller")) or is_program(self.meta.get("caller"))


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
