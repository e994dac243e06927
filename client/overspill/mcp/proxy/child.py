"""Runs an MCP server as a child process, with the proxy on its standard input and output.

The server writes to our own standard error, with nothing in between. So a flood of errors blocks nobody.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import sys
from typing import TYPE_CHECKING, Final

from overspill.execution.child_programs import ProgramNotStarted, child_environment, shell_exit_code
from overspill.mcp.proxy.messages import NotAMessage
from overspill.mcp.proxy.relay import Relay
from overspill.mcp.proxy.streams import (
    MAX_MESSAGE_BYTES,
    READ_BYTES,
    MessageTooLong,
    check_streams,
    drain,
    has_hung_up,
    line_writer,
    lines,
    standard_streams,
    until_stuck,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from overspill.guard.guard import Guard
    from overspill.mcp.proxy.relay import Choices

_GRACE_SECONDS: Final = 3.0
"""Seconds that the server has to end after its input did, and again after a signal."""
_ERROR_BYTES: Final = 4_000
"""Bytes that are printed of a line. A pipe that is writable takes 4,096 without waiting (POSIX)."""
_LEFT_BEHIND_SECONDS: Final = 0.5
"""How long after the server's end its background processes' output is still taken."""


async def run(words: Sequence[str], guard: Guard, choices: Choices) -> int:
    """Guard the server that `words` start. Return its exit code, 128 + n for signal n.

    Ends when the server does. The server is told to end when the client closes our standard input, and by
    SIGTERM and SIGINT. Then nobody waits for long: neither for the server, nor for a client that does not
    read. Raises `ProgramNotStarted` and `NoStreams`.
    """
    async with _started(words) as child:
        check_streams()
        return await _Session(child, guard, choices).run()


@contextlib.asynccontextmanager
async def _started(words: Sequence[str]) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start the server. After the block it has ended, and the event loop has nothing left of it.

    Raises `ProgramNotStarted`.
    """
    loop = asyncio.get_running_loop()
    try:
        transport, protocol = await loop.subprocess_exec(
            lambda: _ServerStreams(limit=READ_BYTES, loop=loop),
            *words,
            stderr=None,
            env=child_environment(),
            start_new_session=True,  # a group of its own, so that its children end with it
        )
    except OSError as error:
        raise ProgramNotStarted(words[0], error) from error
    child = asyncio.subprocess.Process(transport, protocol, loop)
    try:
        yield child
    finally:
        _signal(child, signal.SIGKILL)
        transport.close()  # its pipes too
        await child.wait()


class _ServerStreams(asyncio.subprocess.SubprocessStreamProtocol):
    """The server's streams. They end with the server, even if a process that it left behind holds a pipe."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._process = transport  # the base class forgets its own when all pipes are closed

    def process_exited(self) -> None:
        super().process_exited()
        asyncio.get_running_loop().call_later(_LEFT_BEHIND_SECONDS, self._process.close)


class _Session:
    """One server, from its start to its end."""

    def __init__(self, child: asyncio.subprocess.Process, guard: Guard, choices: Choices) -> None:
        self._child = child
        self._guard = guard
        self._choices = choices
        self._ending: asyncio.Task[None] | None = None
        self._is_told_to_end = False

    async def run(self) -> int:
        reader, self._writer = await standard_streams()
        assert self._child.stdin is not None
        to_server = self._child.stdin
        relay = Relay(self._guard, line_writer(self._writer), line_writer(to_server), self._choices)
        self._take_signals()
        from_client = asyncio.create_task(self._from_client(reader, to_server, relay))
        try:
            await self._from_server(relay)
        except MessageTooLong:
            _print_error(b"overspill: a message of the MCP server has more than %d bytes" % MAX_MESSAGE_BYTES)
            self._end_in_time(signal.SIGTERM)
        code = await self._exit_code()
        from_client.cancel()
        relay.server_ended(f"the MCP server ended (exit code {code}) before it answered; start it again")
        await relay.finish()
        await drain(self._writer)
        return code

    async def _from_client(
        self, reader: asyncio.StreamReader, to_server: asyncio.StreamWriter, relay: Relay
    ) -> None:
        """Pass on the client's messages, and tell the server when there are no more."""
        try:
            async for line in lines(reader):
                relay.from_client(line)
                if not await self._is_taken(to_server):
                    break
        finally:  # also if the client cannot be read on: nobody would end the server
            to_server.close()
            if self._child.returncode is None:
                self._tell_to_end(None)

    async def _is_taken(self, to_server: asyncio.StreamWriter) -> bool:
        """Wait until the server has taken what was sent. Return False if it never will.

        Nothing more is read meanwhile, so the end of the client is not seen in any other way.
        """
        while True:
            left = to_server.transport.get_write_buffer_size()
            try:
                async with asyncio.timeout(_GRACE_SECONDS):
                    await drain(to_server)
            except TimeoutError:
                if has_hung_up() and left == to_server.transport.get_write_buffer_size():
                    return False
            else:
                return True

    async def _from_server(self, relay: Relay) -> None:
        """Pass on the server's messages, until it closes its output."""
        assert self._child.stdout is not None
        async for line in lines(self._child.stdout):
            try:
                relay.from_server(line)
            except NotAMessage:  # a print statement: it belongs on standard error
                _print_error(line)
            del line  # until the next one comes, which may be never
            await drain(self._writer)

    async def _exit_code(self) -> int:
        self._end_in_time(None)
        code = await self._child.wait()
        if self._ending is not None and not self._is_told_to_end:
            self._ending.cancel()
            self._ending = None
        return shell_exit_code(code)

    def _take_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._tell_to_end, number)

    def _tell_to_end(self, number: signal.Signals | None) -> None:
        """End the server in time, and then the client's output too: maybe nobody reads it."""
        self._is_told_to_end = True
        self._end_in_time(number)

    def _end_in_time(self, number: signal.Signals | None) -> None:
        """Send the server a signal, if one is given. If it does not end, send SIGTERM and then SIGKILL."""
        if number is not None:
            _signal(self._child, number)
        if self._ending is None:
            self._ending = asyncio.create_task(self._end_by_signals())

    async def _end_by_signals(self) -> None:
        """Send SIGTERM and then SIGKILL, each after some seconds in which the server has not ended.

        At last give up a client that does not read.
        """
        for number in (signal.SIGTERM, signal.SIGKILL):
            await asyncio.sleep(_GRACE_SECONDS)
            _signal(self._child, number)
        await until_stuck(self._writer, _GRACE_SECONDS)
        _print_error(b"overspill: the client does not read: what waits for it is given up")
        self._writer.transport.abort()


def _print_error(line: bytes) -> None:
    """Print as much of a line as a pipe takes at once.

    If nobody reads, the rest is lost: this must not wait.
    """
    if len(line) > _ERROR_BYTES:
        line = b"%b... [%d bytes more]" % (line[:_ERROR_BYTES], len(line) - _ERROR_BYTES)
    with contextlib.suppress(OSError):
        _, writable, _ = select.select([], [sys.stderr.fileno()], [], 0)
        for descriptor in writable:
            os.write(descriptor, line + b"\n")


def _signal(child: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """Send a signal to the server and to all processes that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)
