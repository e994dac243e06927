"""The interceptor of Docker's MCP gateway: `--interceptor=after:http:URL`.

The gateway posts each result of a tool, as the protocol writes it. It takes a body that is not empty for the
result, whatever the status, and fails the call if that is not a result. So everything but a shortened result
is answered with an empty body: the result then stays as it is.

Source: github.com/docker/mcp-gateway, pkg/interceptors/interceptors.go.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Final

from aiohttp import web

from overspill.guard.guard import Guard
from overspill.mcp.listening import listening_socket, url_of
from overspill.mcp.results import guarded_unless_lost
from overspill.wire import ForeignRequest, is_loopback, require_own_origin

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.guard.policy import Policy
    from overspill.mcp.callers import Callers
    from overspill.transfer.sync import SyncClient

_log = logging.getLogger("overspill")
PATH: Final = "/docker-mcp/after"
MAX_BODY_BYTES: Final = 64 * 1024 * 1024
"""A longer result stays as it is."""
_AT_ONCE: Final = 8
"""Results in memory at a time; others wait in the gateway's connections."""
_SECONDS: Final = 30.0
_BODY_SECONDS: Final = 3.0
"""How long a body may take to come: a gateway has all of it, and who trickles must not keep the places."""
_TOOL: Final = "mcp"
"""The tool of all results: the gateway does not say which one it is."""


class TokenNeeded(Exception):
    """Other machines can reach the address, and nothing distinguishes the gateway from them."""


def run(
    client: SyncClient,
    policy: Policy,
    listen: tuple[str, int],
    callers: Callers,
    *,
    announce: Callable[[str], object],
) -> None:
    """Serve until a signal comes; `announce` is given the gateway's option once it listens.

    Raises `TokenNeeded`, and `OSError` if the address is not free.
    """
    host, port = listen
    if not callers.token and not is_loopback(host):
        raise TokenNeeded(f"{host} can be reached from other machines")
    with client, Guard(client, policy) as guard:
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_post(PATH, _Interceptor(guard, callers).after)
        query = f"?token={callers.token}" if callers.is_token_made else ""
        with listening_socket(host, port) as listener:
            option = f"--interceptor=after:http:{url_of(host, listener)}{PATH}{query}"

            def listening(*_: object) -> None:
                announce(option)

            web.run_app(app, sock=listener, print=listening, access_log=None)


class _Interceptor:
    def __init__(self, guard: Guard, callers: Callers) -> None:
        self._guard = guard
        self._callers = callers
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def after(self, request: web.Request) -> web.Response:
        """Answer with the result that is to go on, or with nothing."""
        refused = self._refused(request)
        if refused:
            _log.warning("a request is refused: %s", refused)
            return web.Response(status=403)
        try:
            async with asyncio.timeout(_SECONDS), self._places:
                return await self._answer(request)
        except Exception as error:  # noqa: BLE001  (the boundary: a gateway's call never fails because of this)
            _log.warning("a result stays as it is: %s: %s", type(error).__name__, error)
            return web.Response()

    def _refused(self, request: web.Request) -> str:
        """Return why a request is not the gateway's, or an empty text. Web pages send `Origin`."""
        if "Origin" in request.headers:
            return "it comes from a web page"
        try:
            require_own_origin(request.headers, None if self._callers.token else frozenset())
        except ForeignRequest as error:
            return str(error)
        if request.transport is None:
            return "its connection is gone"
        client, here = (request.transport.get_extra_info(name) for name in ("peername", "sockname"))
        return self._callers.refusal(request.query.get("token", ""), client, here)

    async def _answer(self, request: web.Request) -> web.Response:
        async with asyncio.timeout(_BODY_SECONDS):
            body = await request.read()
        result = json.loads(body)
        tool, session = request.query.get("tool", _TOOL), request.query.get("session")
        new = await guarded_unless_lost(self._guard, tool, result, session)
        if new is result:
            return web.Response()
        return web.json_response(text=json.dumps(new, allow_nan=False))  # JSON has no number for 1e999
