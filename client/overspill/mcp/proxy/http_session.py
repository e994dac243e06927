"""The session of an MCP server over HTTP.

It is begun again if the server has lost it, for example in a restart. The client of the proxy knows nothing
of it: it began once, on our standard input.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

import httpx2

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_HEADER: Final = "mcp-session-id"
_NOT_FOUND: Final = 404
_BAD_REQUEST: Final = 400
_BEGIN_SECONDS: Final = 30.0
"""The longest time that the beginning of another session may take."""
_INITIALIZED: Final = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


class HttpSession:
    """A session: the request that began it, its id for the transport, and its present id at the server.

    `send` sends a request as it is. `id` is empty until the server has given one.
    """

    def __init__(self, send: Callable[[httpx2.Request], Awaitable[httpx2.Response]]) -> None:
        self._send = send
        self._first: httpx2.Request | None = None
        self.id: str = ""
        self._beginning = asyncio.Lock()

    def note(self, request: httpx2.Request, response: httpx2.Response) -> None:
        """Remember the request that began the session."""
        if _HEADER in response.headers and _is_first(request):
            self._first, self.id = request, response.headers[_HEADER]

    def current(self, request: httpx2.Request) -> httpx2.Request:
        """Return the request with the present id of the session."""
        if self._first is not None and _HEADER in request.headers:
            request.headers[_HEADER] = self.id
        return request

    async def is_lost(self, request: httpx2.Request, response: httpx2.Response) -> bool:
        """Return whether the server does not know the session: 404, or as its SDK's examples say it, 400."""
        if self._first is None or _HEADER not in request.headers:
            return False
        if response.status_code == _BAD_REQUEST:
            return b"session" in (await response.aread()).lower()
        return response.status_code == _NOT_FOUND

    async def begin_again(self, lost: str) -> bool:
        """Begin another session, unless the present one is no longer the `lost` one.

        Return whether there is one. Raises `httpx2.TransportError`.
        """
        async with self._beginning:
            if self._first is None or self.id != lost:
                return self._first is not None
            try:
                async with asyncio.timeout(_BEGIN_SECONDS):
                    return await self._begun(self._first)
            except TimeoutError:
                return False

    async def _begun(self, first: httpx2.Request) -> bool:
        answer = await self._send(_copy(first, first.content))
        await answer.aread()
        if _HEADER not in answer.headers:
            return False
        self.id = answer.headers[_HEADER]
        initialized = _copy(first, _INITIALIZED)
        initialized.headers[_HEADER] = self.id
        await (await self._send(initialized)).aread()
        return True


def _copy(request: httpx2.Request, content: bytes) -> httpx2.Request:
    headers = {name: value for name, value in request.headers.items() if name.lower() != "content-length"}
    return httpx2.Request(
        request.method, request.url, headers=headers, content=content, extensions=request.extensions
    )


def _is_first(request: httpx2.Request) -> bool:
    try:
        message: Any = json.loads(request.content)
    except (ValueError, httpx2.RequestNotRead):
        return False
    return isinstance(message, dict) and message.get("method") == "initialize"
