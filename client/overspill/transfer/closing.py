"""Closing an HTTP session outside of its event loop: from another loop, without any, or when it is dropped.

aiohttp closes a session on its own loop only, and complains of one that is dropped. Sockets of a loop that
does not run any more are taken from it, since nothing else would close them.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import aiohttp

_PATIENCE: Final = 5.0
"""Seconds that another running loop has for closing; it may be busy."""


async def close(session: aiohttp.ClientSession, loop: asyncio.AbstractEventLoop) -> None:
    """Close a session of `loop`, whichever loop runs here."""
    if loop is asyncio.get_running_loop():
        await session.close()
    elif loop.is_running():
        with suppress(TimeoutError, RuntimeError):  # RuntimeError: the loop was closed just now
            closing = asyncio.run_coroutine_threadsafe(session.close(), loop)
            await asyncio.wait_for(asyncio.wrap_future(closing), _PATIENCE)
    else:
        _close_without_loop(session, loop)


def drop(session: aiohttp.ClientSession, loop: asyncio.AbstractEventLoop, process: int) -> None:
    """Close a session that nobody closed, without a word. `process` is whose sockets they are."""
    if process != os.getpid():
        _forget(session)
    elif loop.is_running():
        with suppress(RuntimeError):  # as above
            loop.call_soon_threadsafe(_close_now, session)
    else:
        _close_without_loop(session, loop)


def _close_now(session: aiohttp.ClientSession) -> list[Any]:
    """Begin to close all connections; return their transports."""
    connector: Any = session.connector
    if connector is None:
        return []
    transports = _transports(connector)
    close_at_once = getattr(connector, "_close_immediately", None) or connector._close  # noqa: SLF001
    close_at_once()
    session.detach()
    return transports


def _close_without_loop(session: aiohttp.ClientSession, loop: asyncio.AbstractEventLoop) -> None:
    for transport in _close_now(session):
        _close_socket(transport, is_last=loop.is_closed())


def _transports(connector: Any) -> list[Any]:
    held = [connection[0] for pool in connector._conns.values() for connection in pool]  # noqa: SLF001
    return [each.transport for each in (*held, *connector._acquired)]  # noqa: SLF001


def _close_socket(transport: Any, *, is_last: bool) -> None:
    """Close what a transport has open; one that is at its end would say that nobody closed it."""
    selected = _selected(transport)
    sock = getattr(selected, "_sock", None)
    if sock is not None:
        sock.close()
        if is_last:
            selected._sock = None  # noqa: SLF001


def _selected(transport: Any) -> Any:
    """Return the transport that has the socket, which that of TLS wraps."""
    tls = getattr(transport, "_ssl_protocol", None)
    if tls is None:
        return transport
    transport._closed = True  # noqa: SLF001  (it would say that nobody closed it)
    return tls._transport  # noqa: SLF001


def _forget(session: aiohttp.ClientSession) -> None:
    """Let go of another process's session: its selector is shared, and must keep what it watches."""
    connector: Any = session.connector
    if connector is not None:
        for transport in _transports(connector):
            _close_socket(transport, is_last=True)
        connector._closed = True  # noqa: SLF001
    session.detach()
