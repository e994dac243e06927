"""Runs the server: over standard input and output, or over HTTP on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import uvicorn
from mcp.server.stdio import stdio_server

from overspill.guard.guard import Guard
from overspill.mcp.server.server import server
from overspill.wire import is_loopback

if TYPE_CHECKING:
    from overspill.transfer.sync import SyncClient


class NotThisMachine(Exception):
    """An address at which others than this machine could read: the server asks nobody for a key."""


def run(client: SyncClient, listen: tuple[str, int] | None) -> None:
    """Serve what `client` may read, until the input ends or a signal comes.

    `listen` is the address for HTTP, or None for standard input and output. Raises `NotThisMachine`.
    """
    if listen is not None and not is_loopback(listen[0]):
        raise NotThisMachine(f"{listen[0]} is not an address of this machine alone")
    with client, Guard(client) as guard:
        if listen is None:
            anyio.run(_serve_stdio, guard)
        else:
            host, port = listen
            # The application refuses other hosts and origins than those of this machine.
            app = server(guard).streamable_http_app(host="127.0.0.1")
            uvicorn.run(app, host=host, port=port, log_level="warning")


async def _serve_stdio(guard: Guard) -> None:
    serving = server(guard)
    async with stdio_server() as (reading, writing):
        await serving.run(reading, writing, serving.create_initialization_options())
