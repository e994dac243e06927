"""Closes connections from outside their event loop: in another loop, without a loop, or in the collector.

aiohttp closes a connector on its own loop only, and warns of one that was not closed. If the loop no longer
runs, nothing else would close the sockets. So they are closed here, through aiohttp's private fields.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from aiohttp import BaseConnector

CLOSED: Final = "this client was closed: call it inside its `with` block, enter it once more, or make another"
_CLOSE_SECONDS: Final = 5.0
"""Seconds that another running loop has for closing; it may be busy."""


async def close(connector: BaseConnector, loop: AbstractEventLoop) -> None:
    """Close a connector of `loop`, whichever loop runs here."""
    if loop is asyncio.get_running_loop():
        await connector.close()
    elif loop.is_running():
        with suppress(TimeoutError, RuntimeError):  # RuntimeError: the loop was closed just now
            closing = asyncio.run_coroutine_threadsafe(_closed(connector), loop)
            await asyncio.wait_for(asyncio.wrap_future(closing), _CLOSE_SECONDS)
    else:
        _close_without_loop(connector, loop)


def drop(connector: BaseConnector, loop: AbstractEventLoop, process: int) -> None:
    """Close a connector that nobody closed, without a warning. `process` is the id of its process."""
    if process != os.getpid():
        _forget(connector)
    elif loop.is_running():
        with suppress(RuntimeError):  # as above
            loop.call_soon_threadsafe(_close_now, connector)
    else:
        _close_without_loop(connector, loop)


async def _closed(connector: BaseConnector) -> None:
    await connector.close()


def _close_now(connector: Any) -> list[Any]:
    """Begin to close all connections; return their transports."""
    transports = _transports(connector)
    connector._close()  # noqa: SLF001
    return transports


def _close_without_loop(connector: BaseConnector, loop: AbstractEventLoop) -> None:
    for transport in _close_now(connector):
        _close_socket(transport, is_last=loop.is_closed())


def _transports(connector: Any) -> list[Any]:
    idle = [connection[0] for pool in connector._conns.values() for connection in pool]  # noqa: SLF001
    return [each.transport for each in (*idle, *connector._acquired)]  # noqa: SLF001


def _close_socket(transport: Any, *, is_last: bool) -> None:
    """Close the socket of a transport. `is_last`: without it asyncio would warn that nobody closed it."""
    selected = _selected(transport)
    sock = getattr(selected, "_sock", None)
    if sock is not None:
        sock.close()
        if is_last:
            selected._sock = None  # noqa: SLF001


def _selected(transport: Any) -> Any:
    """Return the transport that has the socket: of a TLS connection, the one inside."""
    tls = getattr(transport, "_ssl_protocol", None)
    if tls is None:
        return transport
    transport._closed = True  # noqa: SLF001  (else asyncio warns that nobody closed it)
    return tls._transport  # noqa: SLF001


def _forget(connector: Any) -> None:
    """Let go of another process's connector: its selector is shared, and must keep what it watches."""
    for transport in _transports(connector):
        _close_socket(transport, is_last=True)
    connector._closed = True  # noqa: SLF001
