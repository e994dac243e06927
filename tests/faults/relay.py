"""A TCP relay in front of a server, which loses requests or answers on command, and keeps connections open.

relay.lose_answers_to(b"EVALSHA")   # the server does it, and nobody hears of it
relay.lose_requests(b"EVALSHA")     # the server never hears of it
relay.at(b"EVALSHA", server.pause)  # just before it is passed on
relay.heal()
relay.lead_to(other.port)           # as an address that moves to another server: connections break
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

CHUNK = 2**16


@dataclass
class Relay:
    port: int = 0
    target: int = 0
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)
    _marks: dict[bytes, Callable[[], bool]] = field(default_factory=dict)
    _is_deaf: bool = False

    def lose_answers_to(self, mark: bytes) -> None:
        """From a request that contains the mark on, no answer comes back."""

        def lose() -> bool:
            self._is_deaf = True
            return True

        self._marks[mark] = lose

    def lose_requests(self, mark: bytes) -> None:
        """Requests that contain the mark are not passed on."""
        self._marks[mark] = lambda: False

    def at(self, mark: bytes, act: Callable[[], None]) -> None:
        """Do something just before a request that contains the mark is passed on."""

        def do() -> bool:
            act()
            return True

        self._marks[mark] = do

    def heal(self) -> None:
        self._marks.clear()
        self._is_deaf = False

    def lead_to(self, port: int) -> None:
        """From now on, new connections go to another port of loopback; those that there are break."""
        self.target = port
        for writer in self._writers:
            writer.close()

    def passes_on(self, request: bytes) -> bool:
        return all(act() for mark, act in self._marks.items() if mark in request)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on what comes either way until one side closes."""
        self._writers.add(writer)
        try:
            await self._pass_on(reader, writer)
        finally:
            self._writers.discard(writer)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError), closing(writer):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
            with closing(far_writer):
                there = asyncio.create_task(_pump(reader, far_writer, self.passes_on))
                back = asyncio.create_task(_pump(far_reader, writer, lambda _: not self._is_deaf))
                try:
                    await asyncio.wait([there, back], return_when=asyncio.FIRST_COMPLETED)
                finally:
                    there.cancel()
                    back.cancel()
                    await asyncio.gather(there, back, return_exceptions=True)


async def _pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, passes: Callable[[bytes], bool]
) -> None:
    """Pass on what comes. What is behind something lost is lost too: a connection has no gaps."""
    with suppress(OSError):
        has_gap = False
        while data := await reader.read(CHUNK):
            has_gap = has_gap or not passes(data)
            if not has_gap:
                writer.write(data)
                await writer.drain()


@asynccontextmanager
async def relaying(server_port: int) -> AsyncIterator[Relay]:
    """A relay in front of a port of loopback, until the block ends."""
    relay = Relay(target=server_port)
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(relay.handle(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    relay.port = server.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # closed transports let go of their sockets
