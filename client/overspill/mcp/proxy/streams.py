"""The streams between which the proxy stands: standard input and output, and messages as lines of them."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import select
import stat
import termios
from array import array
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

MAX_MESSAGE_BYTES: Final = 1 << 30
"""The longest message that is read, in bytes."""
READ_BYTES: Final = 256 * 1024


class NoStreams(Exception):
    """Standard input or output cannot be used to talk with a client."""


class MessageTooLong(Exception):
    """A line exceeds the limit. The next bytes may begin in the middle of a message."""


def check_streams() -> None:
    """Check that asyncio can wait for standard input and output. Raises `NoStreams`."""
    for descriptor, name in ((0, "input"), (1, "output")):
        mode = os.fstat(descriptor).st_mode
        if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)):
            raise NoStreams(
                f"standard {name} must be a pipe, a socket or a terminal: an MCP client starts this command, "
                "and talks to it there"
            )


async def standard_streams() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return standard input and output for asyncio."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=READ_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), _own_file(0, "rb"))
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.streams.FlowControlMixin(loop=loop), _own_file(1, "wb")
    )
    return reader, asyncio.StreamWriter(transport, protocol, None, loop)


def has_hung_up() -> bool:
    """Return whether nobody is left who could write to standard input, even if not all of it was read."""
    poll = select.poll()
    poll.register(0, 0)
    return any(event & select.POLLHUP for _, event in poll.poll(0))


def _own_file(descriptor: int, mode: str) -> Any:
    """Return a file that asyncio may close: `sys.stdin` and `sys.stdout` are flushed after it."""
    return os.fdopen(os.dup(descriptor), mode, buffering=0)


async def lines(reader: asyncio.StreamReader, most_bytes: int = MAX_MESSAGE_BYTES) -> AsyncIterator[bytes]:
    """Yield each line that is not empty, without its end. Raises `MessageTooLong`.

    Nothing here keeps a line that was yielded: it may have 100 MB.
    """
    pieces: list[bytes] = []
    size = 0
    while chunk := await reader.read(READ_BYTES):
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            pieces.append(end)
            if any(piece.strip(b"\r") for piece in pieces):
                yield _joined(pieces)
            pieces.clear()
        pieces.append(rest)
        size = len(rest) + (0 if ends else size)
        if size > most_bytes:
            raise MessageTooLong
    if any(pieces):
        yield _joined(pieces)


def _joined(pieces: list[bytes]) -> bytes:
    """Return a line from its pieces, which are not kept."""
    line = b"".join(pieces)
    pieces.clear()
    return line.rstrip(b"\r")


def line_writer(writer: asyncio.StreamWriter) -> Callable[[bytes], None]:
    """Return a function that sends a line. It does nothing once the other side has gone."""

    def send(line: bytes) -> None:
        if not writer.is_closing():
            writer.write(line + b"\n")

    return send


async def until_stuck(writer: asyncio.StreamWriter, seconds: float) -> None:
    """Return once something waits for the other side, which takes nothing of it for so long."""
    left = 0
    while not left or left != _untaken(writer):
        left = _untaken(writer)
        await asyncio.sleep(seconds)


def _untaken(writer: asyncio.StreamWriter) -> int:
    """Return how much waits here for the other side, with what is in the pipe; 0 if nothing waits here.

    A slow reader takes bytes out of the pipe for a long time before there is room for more.
    """
    waiting = writer.transport.get_write_buffer_size()
    return waiting and waiting + _in_pipe(writer.get_extra_info("pipe").fileno())


def _in_pipe(descriptor: int) -> int:
    """Return how much a pipe or socket holds that nobody has read; 0 if the system does not say."""
    is_pipe = stat.S_ISFIFO(os.fstat(descriptor).st_mode)
    count = array("i", [0])
    with contextlib.suppress(OSError):
        fcntl.ioctl(descriptor, termios.FIONREAD if is_pipe else termios.TIOCOUTQ, count)
    return count[0]


async def drain(writer: asyncio.StreamWriter) -> None:
    """Wait until the other side has taken all sent bytes, or has gone."""
    with contextlib.suppress(ConnectionError, BrokenPipeError):
        await writer.drain()
