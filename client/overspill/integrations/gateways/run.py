"""Serves the interceptor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from overspill.guard.guard import Guard
from overspill.integrations.gateways.interceptor import PATH, application
from overspill.mcp.listening import listening_socket, url_of
from overspill.wire import is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.guard.policy import Policy
    from overspill.mcp.callers import Callers
    from overspill.transfer.sync import SyncClient


class TokenNeeded(Exception):
    """Others than this machine can reach the address, and nothing tells the gateway from them."""


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
        app = application(guard, callers)
        query = f"?token={callers.token}" if callers.is_token_made else ""
        with listening_socket(host, port) as listener:
            option = f"--interceptor=after:http:{url_of(host, listener)}{PATH}{query}"
            web.run_app(app, sock=listener, print=_once(announce, option), access_log=None)


def _once(announce: Callable[[str], object], option: str) -> Callable[..., None]:
    """Return what aiohttp calls with its own words when it listens."""

    def listening(*_: object) -> None:
        announce(option)

    return listening
