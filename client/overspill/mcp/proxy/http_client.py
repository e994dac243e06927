"""The HTTP client of the proxy: a server that cannot be reached fails one request, not the connection.

The SDK's transport ends, with all that is under way, at the first request that meets a network error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import httpx2

from overspill.mcp.proxy.http_session import HttpSession

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_CONNECT_SECONDS: Final = 30.0
_BAD_GATEWAY: Final = 502
_CONNECTION_CLOSED: Final = -32000


class ProxyClient(httpx2.AsyncClient):
    """Answers with an error of JSON-RPC in place of a server that does not. A tool may take any time."""

    def __init__(self, headers: dict[str, str]) -> None:
        super().__init__(headers=headers, timeout=httpx2.Timeout(_CONNECT_SECONDS, read=None))
        self._session = HttpSession(super().send)

    async def send(self, request: httpx2.Request, **more: Any) -> httpx2.Response:
        """Send a request, as the transport of the SDK does. Raises nothing for a network error."""
        try:
            response = await self._sent(request, **more)
        except httpx2.TransportError as error:
            return _unreachable(request, error)
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _BreakableBody(response.stream)
        return response

    async def _sent(self, request: httpx2.Request, **more: Any) -> httpx2.Response:
        """Send a request in the session of now; once more in a new one if the server has lost that."""
        response = await super().send(self._session.current(request), **more)
        self._session.note(request, response)
        if not await self._session.is_lost(request, response):
            return response
        if not await self._session.begin_again(request.headers["mcp-session-id"]):
            return response
        await response.aclose()
        return await super().send(self._session.current(request), **more)


class _BreakableBody(httpx2.AsyncByteStream):
    """A body that may break off: the SDK handles `StreamError` alone."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._inner:
                yield chunk
        except httpx2.TransportError as error:
            raise httpx2.StreamError(_error_text(error)) from error

    async def aclose(self) -> None:
        await self._inner.aclose()


def _unreachable(request: httpx2.Request, error: httpx2.TransportError) -> httpx2.Response:
    """Return what the transport makes the error of the request from: it puts in the request's own id."""
    message = f"the MCP server at {request.url.host} cannot be reached: {_error_text(error)}"
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": _CONNECTION_CLOSED, "message": message}}
    return httpx2.Response(_BAD_GATEWAY, json=body, request=request)


def _error_text(error: httpx2.TransportError) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
