"""The HTTP client of the proxy: if a server cannot be reached, one request fails, not the connection.

The SDK's transport ends, with all open requests, at the first network error of any request. Messages that the
server sends by itself come on a stream, for which the transport asks twice and then never again.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

import httpx2

from overspill.execution.backoff import Backoff
from overspill.mcp.proxy.http_session import HttpSession

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_CONNECT_SECONDS: Final = 30.0
END_SECONDS: Final = 2.0
"""The longest wait for a server once the client has gone."""
_BAD_GATEWAY: Final = 502
_NOT_FOUND: Final = 404
_AWAY: Final = frozenset({502, 503, 504})
"""The statuses of a gateway while the server behind it is away."""
_CONNECTION_CLOSED: Final = -32000
_LAST_EVENT: Final = "last-event-id"
_LISTENING: Final = Backoff(first=0.25, longest=60.0)
"""The pauses between attempts to listen to a server that cannot be reached. It may be gone for good."""
_SHORT_PAUSE: Final = 5.0
"""Seconds of such a pause while the server answers requests."""
_listens: ContextVar[bool] = ContextVar("whether this task of the transport listens", default=False)
_asked_in: ContextVar[str] = ContextVar("the session in which this task has asked last", default="")


class ProxyClient(httpx2.AsyncClient):
    """Answers with an error of JSON-RPC if the server does not answer. A tool may take any time."""

    def __init__(self, headers: dict[str, str]) -> None:
        super().__init__(headers=headers, timeout=httpx2.Timeout(_CONNECT_SECONDS, read=None))
        self._session = HttpSession(super().send)
        self._is_back = asyncio.Event()

    async def send(self, request: httpx2.Request, **more: Any) -> httpx2.Response:
        """Send a request, as the transport of the SDK does. Raises nothing for a network error."""
        if request.method == "DELETE":  # of the session, at the end
            request.extensions["timeout"] = httpx2.Timeout(END_SECONDS).as_dict()
        is_listening = _is_listening(request)
        try:
            response = await (self._listened if is_listening else self._asked)(request, **more)
        except httpx2.TransportError as error:
            return _unreachable(request, error)
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _BreakableBody(response.stream, ends_quietly=is_listening)
        return response

    async def _listened(self, request: httpx2.Request, **more: Any) -> httpx2.Response:
        """Send a request until the server can be reached."""
        failures = 0
        while True:
            self._is_back.clear()
            with suppress(httpx2.TransportError):
                response = await self._sent(request, **more)
                if response.status_code not in _AWAY:
                    return response
                await response.aclose()
            await self._pause(_LISTENING.pause(failures))
            failures += 1

    async def _pause(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, _SHORT_PAUSE))
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds - _SHORT_PAUSE):
                await self._is_back.wait()

    async def _asked(self, request: httpx2.Request, **more: Any) -> httpx2.Response:
        """Send a request once, and note that the server can be reached."""
        response = await self._sent(request, **more)
        if response.status_code not in _AWAY:
            self._is_back.set()
        return response

    async def _sent(self, request: httpx2.Request, **more: Any) -> httpx2.Response:
        """Send a request in the present session.

        If the server has lost that session, send the request again in a new one.
        """
        response = await self._answer(request, **more)
        if not await self._session.is_lost(request, response):
            return response
        if not await self._session.begin_again(request.headers["mcp-session-id"]):
            return response
        await response.aclose()
        return await self._answer(request, **more)

    async def _answer(self, request: httpx2.Request, **more: Any) -> httpx2.Response:
        """Send a request in the present session.

        Messages that an earlier session had left were lost with it.
        """
        if _LAST_EVENT in request.headers and _asked_in.get() != self._session.id:
            if not _listens.get():
                return httpx2.Response(_NOT_FOUND, request=request)
            del request.headers[_LAST_EVENT]
        response = await super().send(self._session.current(request), **more)
        self._session.note(request, response)
        _asked_in.set(self._session.id)
        return response


def _is_listening(request: httpx2.Request) -> bool:
    """Return whether a request is for the server's own messages, not for the rest of an answer.

    One task of the transport asks for that, at first without the last event.
    """
    if request.method == "GET" and _LAST_EVENT not in request.headers:
        _listens.set(True)
    return request.method == "GET" and _listens.get()


class _BreakableBody(httpx2.AsyncByteStream):
    """A body that may break off: the SDK handles `StreamError` alone.

    If it `ends_quietly`, it ends then: the SDK listens again, and does not count that.
    """

    def __init__(self, inner: httpx2.AsyncByteStream, *, ends_quietly: bool) -> None:
        self._inner = inner
        self._ends_quietly = ends_quietly

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._inner:
                yield chunk
        except httpx2.TransportError as error:
            if self._ends_quietly:
                return
            raise httpx2.StreamError(_error_text(error)) from error

    async def aclose(self) -> None:
        await self._inner.aclose()


def _unreachable(request: httpx2.Request, error: httpx2.TransportError) -> httpx2.Response:
    """Return the answer from which the transport makes the request's error, with the request's own id."""
    message = f"the MCP server at {request.url.host} cannot be reached: {_error_text(error)}"
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": _CONNECTION_CLOSED, "message": message}}
    return httpx2.Response(_BAD_GATEWAY, json=body, request=request)


def _error_text(error: httpx2.TransportError) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
