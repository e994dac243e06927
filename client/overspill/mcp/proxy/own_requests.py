"""Requests of the proxy's own to the server, and their answers, which no client sees."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from overspill.mcp.proxy.messages import NotAMessage, encoded, id_key, parsed

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.mcp.proxy.messages import Key, Message

_SECONDS: Final = 10.0
"""Seconds to wait for an answer. A result for the client waits for it too."""


class OwnRequests:
    """The proxy's own requests on one connection. `send` takes the bytes of a message for the server."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._waiting: dict[Key, asyncio.Future[dict[str, Any] | None]] = {}

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        """Return the result of a request, or None if there is none in time."""
        request_id = f"overspill-{secrets.token_hex(8)}"
        answer: asyncio.Future[dict[str, Any] | None] = asyncio.get_running_loop().create_future()
        self._waiting[id_key(request_id)] = answer
        self._send(encoded({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}))
        try:
            async with asyncio.timeout(_SECONDS):
                return await answer
        except TimeoutError:
            return None
        finally:
            self._waiting.pop(id_key(request_id), None)

    def take(self, message: Message) -> bool:
        """Return whether a message of the server answers one of these requests; take it if it does."""
        answer = self._waiting.get(message.key) if message.method is UNSET else None
        if answer is None:
            return False
        if not answer.done():
            answer.set_result(_result(message))
        return True

    def end(self) -> None:
        """Answer all requests with None, because the server has ended."""
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_result(None)


def _result(message: Message) -> dict[str, Any] | None:
    if message.result is UNSET:
        return None
    try:
        return parsed(message.result)
    except NotAMessage:
        return None
