"""Answers written piece by piece to clients that may be slow, stalled or gone.

A piece is made only when the client's system has room for it. A client that accepts nothing is cut off,
because its read holds memory that other requests wait for.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import struct
import termios
from typing import TYPE_CHECKING, Final, Self

from overspill_service.errors import CaptureDamaged
from overspill_service.telemetry.logs import fields

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from types import TracebackType

    from aiohttp import web

    from overspill_service.resources.unsent_answers import UnsentAnswers

PIECE_BYTES: Final = 256 * 1024
"""Bytes written to the socket at once."""
SHORT_BYTES: Final = 16 * 1024
"""An answer of up to this many bytes is left in the transport's buffer, if there is nothing else."""
TLS_PIECE_BYTES: Final = 64 * 1024
"""The same over TLS, whose transport holds one piece more than it says, and as much of the system's."""
CHECKS_PER_TIMEOUT: Final = 4
"""How often a client's progress is checked within its timeout."""
C_INT: Final = struct.Struct("i")

log = logging.getLogger(__name__)


async def send(
    request: web.Request,
    response: web.StreamResponse,
    pieces: AsyncGenerator[bytes | memoryview, None],
    length: int | None,
    stall_seconds: float,
) -> None:
    """Prepare the response and write `length` bytes to it; with None, all that there are, in chunks.

    If the first piece fails the response is not prepared. A client that accepts no byte for `stall_seconds`
    is cut off. Raises `CaptureDamaged` if the pieces have another length.
    """
    response.content_length = length
    piece = await anext(pieces, b"")
    await response.prepare(request)
    if request.transport is None:
        raise ConnectionResetError("the client has gone")
    # Else the transport would buffer pieces that it cannot send. With 0 one of TLS would wait for ever.
    request.transport.set_write_buffer_limits(1)
    await response.write(b"")  # the header alone: aiohttp would copy header and piece together
    with ProgressWatch(request.transport, stall_seconds) as watch:
        while piece:
            await _write(response, piece, length, watch)
            piece = b""  # free it before the next one is made
            piece = await anext(pieces, b"")
        if length is None:
            await response.write_eof()
        elif watch.sent != length:
            raise CaptureDamaged(f"an answer of {length} bytes ended after {watch.sent}")


async def send_made(
    request: web.Request, response: web.Response, unsent: UnsentAnswers, tenant: str, stall_seconds: float
) -> None:
    """Send a finished answer, unless its client takes it at once anyway.

    A client that accepts no byte for `stall_seconds` is cut off, and so may be the slowest of its tenant.
    """
    transport, body = request.transport, response.body
    if transport is None or not isinstance(body, bytes) or request.method == "HEAD":
        return
    if len(body) <= SHORT_BYTES and not transport.get_write_buffer_size():
        return
    await response.prepare(request)
    transport.set_write_buffer_limits(1)  # as above: it has sent all before the block ends
    with unsent.held(tenant, transport, len(body)), ProgressWatch(transport, stall_seconds) as watch:
        watch.sent = _unsent(transport) + len(body)
        await response.write_eof()
    response.body = None  # aiohttp keeps the answer until another request comes on the connection


def note_cut_off(tenant: str) -> None:
    """Log that a client was cut off for the sake of others."""
    log.warning("cut off a client that took nothing: many of its tenant do so", extra=fields(tenant=tenant))


async def _write(
    response: web.StreamResponse, piece: bytes | memoryview, length: int | None, watch: ProgressWatch
) -> None:
    """Write one piece, and wait until it is sent."""
    with memoryview(piece) as view:
        for start in range(0, len(view), watch.piece_bytes):
            part = view[start : start + watch.piece_bytes]
            watch.sent += len(part)
            if length is None or watch.sent < length:
                await response.write(part)
            else:
                await response.write_eof(bytes(part))  # it waits until the bytes are sent


class ProgressWatch:
    """Aborts a connection if its client accepts nothing of what was sent for `stall_seconds`."""

    def __init__(self, transport: asyncio.Transport, stall_seconds: float) -> None:
        self.sent = 0
        """Bytes given to the transport so far. The writer counts them."""
        self.piece_bytes = TLS_PIECE_BYTES if transport.get_extra_info("sslcontext") else PIECE_BYTES
        self._transport, self._stall_seconds = transport, stall_seconds
        self._loop = asyncio.get_running_loop()
        self._taken, self._progress_at = 0, self._loop.time()

    def __enter__(self) -> Self:
        self._timer = self._loop.call_later(self._stall_seconds / CHECKS_PER_TIMEOUT, self._check)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()

    def _check(self) -> None:
        now, unsent = self._loop.time(), _unsent(self._transport)
        taken = self.sent - unsent
        if not unsent or taken > self._taken:
            self._taken, self._progress_at = taken, now
        if now - self._progress_at >= self._stall_seconds:
            log.warning("cut off a client that took nothing", extra=fields(seconds=self._stall_seconds))
            self._transport.abort()
            return
        self._timer = self._loop.call_later(self._stall_seconds / CHECKS_PER_TIMEOUT, self._check)


def _unsent(transport: asyncio.Transport) -> int:
    """Return the bytes that the client's system has not acknowledged, as far as this system knows."""
    unsent = transport.get_write_buffer_size()
    connection = transport.get_extra_info("socket")
    if connection is None or transport.is_closing():
        return unsent
    try:
        queued = fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(C_INT.size))
    except OSError:  # the system does not support it
        return unsent
    return unsent + int(C_INT.unpack(queued)[0])
