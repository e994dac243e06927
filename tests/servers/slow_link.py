"""A slow uplink on loopback: a TCP proxy that passes so many bytes a second, of all connections together.

    with slow_link.running(service.url, rate=2_000_000) as link:
        link.url, link.passed, link.connections
        link.stop()        # nothing moves any more; `link.go()` lets it go on

It runs in a thread of its own, so that neither a test nor the client under test holds it up.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

_BUFFER: Final = 64 * 1024
_PIECE: Final = 16 * 1024
_CATCH_UP_SECONDS: Final = 0.5


class SlowLink:
    """`passed` are the bytes that went up so far, `connections` those that were opened."""

    def __init__(self, target: str, rate: int) -> None:
        parts = urlsplit(target)
        self._host, self._port = parts.hostname, parts.port
        self._rate = rate
        self._loop: asyncio.AbstractEventLoop | None = None
        self._may_pass = asyncio.Event()
        self._may_pass.set()
        self._serving: list[asyncio.Future[None]] = []
        self._turn = asyncio.Lock()
        self._free_at = 0.0
        self.url = ""
        self.passed = self.connections = 0

    def stop(self) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._may_pass.clear)

    def go(self) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._may_pass.set)

    async def serve(self, ready: Future[asyncio.AbstractEventLoop], done: asyncio.Event) -> None:
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)  # which connections inherit
        listening.bind(("127.0.0.1", 0))
        server = await asyncio.start_server(self._begin, sock=listening, limit=_PIECE)
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        try:
            self._loop = asyncio.get_running_loop()
            ready.set_result(self._loop)
            await done.wait()
        finally:
            server.close()
            for task in self._serving:
                task.cancel()
            await asyncio.gather(*self._serving, return_exceptions=True)
            await asyncio.sleep(0)  # the transports close in the next turn of the loop

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving.append(asyncio.ensure_future(self._connect(reader, writer)))

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        up, out = await asyncio.open_connection(self._host, self._port)
        try:
            with suppress(ConnectionError, asyncio.CancelledError):
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._up(reader, out))
                    group.create_task(_down(up, writer))
        except* ConnectionError:
            pass
        finally:
            out.transport.abort()
            writer.transport.abort()

    async def _up(self, reader: asyncio.StreamReader, out: asyncio.StreamWriter) -> None:
        while piece := await reader.read(_PIECE):
            async with self._turn:
                await self._may_pass.wait()
                await self._pace(len(piece))
            out.write(piece)
            await out.drain()
            self.passed += len(piece)
        out.write_eof()

    async def _pace(self, size: int) -> None:
        """Wait until so many bytes may go. What a busy machine oversleeps, later pieces make up for."""
        now = asyncio.get_running_loop().time()
        self._free_at = max(self._free_at, now - _CATCH_UP_SECONDS) + size / self._rate
        await asyncio.sleep(self._free_at - now)


async def _down(up: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await up.read(_PIECE):
        writer.write(piece)
        await writer.drain()
    writer.close()


@contextmanager
def running(target: str, rate: int) -> Iterator[SlowLink]:
    """A link to the URL `target` with `rate` bytes a second, until the block ends."""
    link = SlowLink(target, rate)
    ready: Future[asyncio.AbstractEventLoop] = Future()
    done = asyncio.Event()

    thread = threading.Thread(target=lambda: asyncio.run(link.serve(ready, done)), daemon=True)
    thread.start()
    loop = ready.result(30)
    try:
        yield link
    finally:
        link.go()
        loop.call_soon_threadsafe(done.set)
        thread.join(30)
