"""Downloads the bytes of a capture: decodes and verifies them, and resumes after a broken connection."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final

from overspill import wire
from overspill.errors import ProtocolError, Unreachable
from overspill.execution import threads
from overspill.transfer.streamed_answer import StreamedAnswer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    import aiohttp

    from overspill.transfer.request import Request
    from overspill.transfer.transport import Transport

_BATCH: Final = 1024 * 1024
"""Bytes that are decoded before they are handed on; one piece more at most."""
_WORTH_A_THREAD: Final = 64 * 1024
_CONTENT_RANGE: Final = re.compile(r"bytes ([0-9]{1,19})-([0-9]{1,19})/([0-9]{1,19})")


class ContentStream(StreamedAnswer[bytes]):
    """An async iterator of bytes, and an async context manager that ends the transfer early.

    The length is verified, and the SHA-256 of a whole capture. Raises `ProtocolError` if they are wrong,
    perhaps after the last piece: throw the pieces away then. A transfer that breaks off or stalls continues
    where it stopped. Raises `Unreachable` if as many tries in a row as the client retries bring nothing new.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[Transport]],
        request: Request,
        byte_range: wire.ByteRange | None = None,
    ) -> None:
        super().__init__(connect, request)
        self._range = byte_range
        self._progress: _Progress | None = None
        self._decode: Callable[[bytes], Iterator[bytes]] = _as_it_is
        self._decoding: Iterator[bytes] = iter(())
        self._resumed, self._resumed_at = 0, -1

    async def _advance(self) -> None:
        """Do one step: decode more of what has arrived, or read from the network, or end."""
        transport, progress = await self._open()
        if batch := await progress.take(self._decoding):
            self._ready.extend(batch)
            return
        try:
            self._decoding = self._decode(await self._read(transport))
        except Unreachable as error:
            self._check_end(transport, progress, error)

    async def _open(self) -> tuple[Transport, _Progress]:
        transport = await self._connected()
        if self._response is None:
            self._response = await transport.open(self._next_request())
            self._decode = _decoder(self._response)
            self._decoding = iter(())
            self._check_start(self._response)
        assert self._progress is not None
        return transport, self._progress

    def _next_request(self) -> Request:
        """Return the request for the missing bytes.

        A part is requested without encoding, because ranges count its bytes.
        """
        missing = self._range if self._progress is None else self._progress.missing
        if missing is None:
            return self._asking({"Accept-Encoding": "zstd"})
        return self._asking({"Accept-Encoding": "identity", "Range": str(missing)})

    def _check_start(self, response: aiohttp.ClientResponse) -> None:
        part, sha256 = _range_of(response), response.headers.get(wire.Header.SHA256, "")
        if self._progress is None:
            if self._range is not None and self._range.resolve(part.size) != part:
                raise ProtocolError(f"asked for {self._range}, the answer is {part}")
            self._progress = _Progress(part, sha256)
        elif (part.start, part.stop, sha256) != (*self._progress.expects, self._progress.sha256):
            raise ProtocolError(f"a resumed transfer went on with another content: {part}")

    def _check_end(self, transport: Transport, progress: _Progress, error: Unreachable) -> None:
        """Verify a complete download, or let the next step ask for the rest.

        Raises `error` if as many tries in a row as the client retries brought nothing new.
        """
        self._drop()
        start, _ = progress.expects
        self._resumed = self._resumed + 1 if start == self._resumed_at else 0
        self._resumed_at = start
        if progress.is_complete:
            progress.verify()
            self._is_done = True
        elif self._resumed >= transport.address.retries:
            raise error


class _Progress:
    """The part of the asked range that has come, and its digest so far."""

    def __init__(self, requested: wire.ContentRange, sha256: str) -> None:
        self.sha256 = sha256
        self._requested = requested
        self._received = 0
        self._digest = hashlib.sha256()

    @property
    def expects(self) -> tuple[int, int]:
        """The offsets at which the rest starts and stops."""
        return self._requested.start + self._received, self._requested.stop

    @property
    def missing(self) -> wire.ByteRange:
        start, stop = self.expects
        return wire.ByteRange(start, stop - 1)

    @property
    def is_complete(self) -> bool:
        return self._received == len(self._requested)

    async def take(self, decoding: Iterator[bytes]) -> list[bytes]:
        if len(self._requested) < _WORTH_A_THREAD:
            return self._take(decoding)
        return await threads.run(self._take, decoding)

    def _take(self, decoding: Iterator[bytes]) -> list[bytes]:
        batch: list[bytes] = []
        length = 0
        for piece in decoding:
            self._count(piece)
            batch.append(piece)
            length += len(piece)
            if length >= _BATCH:
                break
        return batch

    def _count(self, piece: bytes) -> None:
        self._received += len(piece)
        self._digest.update(piece)
        if self._received > len(self._requested):
            raise ProtocolError(
                f"the answer is longer than the {len(self._requested)} bytes that it announced"
            )

    def verify(self) -> None:
        if len(self._requested) != self._requested.size or not self.sha256:
            return
        if self._digest.hexdigest() != self.sha256:
            raise ProtocolError("the bytes that arrived do not match the capture's SHA-256; they are damaged")


def _range_of(response: aiohttp.ClientResponse) -> wire.ContentRange:
    """Return the range of the bytes in an answer. Raises `ProtocolError` if the answer does not say it."""
    if response.status == 206:  # noqa: PLR2004  (Partial Content)
        match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if match:
            first, last, size = map(int, match.groups())
            return wire.ContentRange(first, last + 1, size)
        raise ProtocolError("a partial answer does not say which bytes it brings (Content-Range)")
    size_field = response.headers.get(wire.Header.SIZE, "")
    if not (size_field.isascii() and size_field.isdigit()):
        raise ProtocolError(f"the answer does not say the capture's size ({wire.Header.SIZE})")
    return wire.ContentRange(0, int(size_field), int(size_field))


def _decoder(response: aiohttp.ClientResponse) -> Callable[[bytes], Iterator[bytes]]:
    encoding = response.headers.get("Content-Encoding", "identity").lower()
    if encoding == "identity":
        return _as_it_is
    if encoding == "zstd":
        from overspill.transfer.compression import FrameDecoder  # noqa: PLC0415  (zstd is loaded when it is needed)

        return FrameDecoder().decode
    raise ProtocolError(f"the answer has the encoding {encoding!r}, which was not asked for")


def _as_it_is(data: bytes) -> Iterator[bytes]:
    return iter((data,))
