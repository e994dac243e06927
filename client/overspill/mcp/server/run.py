"""Runs the server: over standard input and output, or over HTTP on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import uvicorn
from mcp.server.stdio import stdio_server
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

from overspill.guard.guard import Guard
from overspill.mcp.listening import listening_socket, url_of
from overspill.mcp.server.server import server
from overspill.wire import ForeignRequest, is_loopback, require_own_origin

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Receive, Scope, Send

    from overspill.mcp.callers import Callers
    from overspill.transfer.sync import SyncClient


class NotThisMachine(Exception):
    """An address at which other machines could read plain HTTP."""


def run(
    client: SyncClient,
    listen: tuple[str, int] | None,
    callers: Callers,
    *,
    announce: Callable[[str], object],
) -> None:
    """Serve what `client` may read, until the input ends or a signal comes.

    `listen` is the address for HTTP, or None for standard input and output. `announce` gets the URL at which
    `callers` find the server. Raises `NotThisMachine`, and `OSError` if the address is not free.
    """
    if listen is not None and not is_loopback(listen[0]):
        raise NotThisMachine(f"{listen[0]} is not an address of this machine alone")
    with client, Guard(client) as guard:
        if listen is None:
            anyio.run(_serve_stdio, guard)
        else:
            host, port = listen
            app = _CallerCheck(server(guard).streamable_http_app(host="127.0.0.1"), callers)
            with listening_socket(host, port) as listener:
                announce(_announcement(url_of(host, listener), callers))
                uvicorn.Server(uvicorn.Config(app, log_level="warning")).run([listener])


class _CallerCheck:
    """Lets the callers of an application through, and no page of another site or of another port."""

    def __init__(self, app: ASGIApp, callers: Callers) -> None:
        self._app, self._callers = app, callers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        status, refusal = self._refusal(scope) if scope["type"] == "http" else (0, "")
        if refusal:
            await PlainTextResponse(f"This request is refused: {refusal}.\n", status)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> tuple[int, str]:
        """Return the status with which a request is refused, and why; an empty text if it is not."""
        try:
            require_own_origin(Headers(scope=scope), frozenset())
        except ForeignRequest as error:
            return 403, str(error)
        return 401 if self._callers.token else 403, self._callers.refusal(*_caller(scope))


def _caller(scope: Scope) -> tuple[str, tuple[str, int] | None, tuple[str, int]]:
    """Return the token that a request has, and the addresses that it comes from and goes to."""
    authorization = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1")
    kind, _, token = authorization.partition(" ")
    return token.strip() if kind.lower() == "bearer" else "", scope["client"], scope["server"]


def _announcement(url: str, callers: Callers) -> str:
    if not callers.token:
        return f"{url}/mcp"
    shown = callers.token if callers.is_token_made else "and the token"
    return f"{url}/mcp with the header Authorization: Bearer {shown}"


async def _serve_stdio(guard: Guard) -> None:
    serving = server(guard)
    async with stdio_server() as (reading, writing):
        await serving.run(reading, writing, serving.create_initialization_options())
