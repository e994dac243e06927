"""Zstandard on the wire: whether it pays, how to send it, how to read frames back with bounded memory."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, TypeAlias

import zstandard

from overspill.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Buffer: TypeAlias = bytes | memoryview

SINGLE_FRAME: Final = 512 * 1024
"""Content up to here is sent as exactly one frame, which the service may store as it is."""
WORTHWHILE: Final = 4 * 1024
"""Content below this is sent as it is: a packet more or less costs less than compressing."""
SAMPLE: Final = 128 * 1024
MAX_FRAME: Final = 16 * 1024 * 1024
"""Content of one frame that a download accepts; the service cuts frames of about 576 KiB."""
_LEVEL: Final = 3
_GAIN: Final = 0.9
_LONGEST_HEADER: Final = 18


_local = threading.local()


def compress_frame(data: Buffer) -> bytes | None:
    """`data` as one frame with its size and checksum; None where that would not be clearly smaller."""
    if len(data) < WORTHWHILE:
        return None
    frame = _compressor().compress(data)
    return frame if len(frame) < _GAIN * len(data) else None


def compress_pieces(pieces: Iterable[Buffer], size: int) -> Iterator[bytes]:
    """`size` bytes of content, given in pieces, as one long frame."""
    stream = zstandard.ZstdCompressor(_LEVEL, write_checksum=True).compressobj(size)
    for piece in pieces:
        if data := stream.compress(piece):
            yield data
    yield stream.flush()


def _compressor() -> zstandard.ZstdCompressor:
    if not hasattr(_local, "compressor"):
        _local.compressor = zstandard.ZstdCompressor(_LEVEL, write_checksum=True, write_content_size=True)
    compressor: zstandard.ZstdCompressor = _local.compressor
    return compressor


class FrameDecoder:
    """Decodes a sequence of frames that arrives in arbitrary pieces.

    Every frame must say how large its content is, and that must be at most `MAX_FRAME`: so the pieces that
    come out are bounded, however well the content compresses. Raises `ProtocolError`.
    """

    def __init__(self) -> None:
        self._decompressor = zstandard.ZstdDecompressor()
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._pending = b""

    def decode(self, data: bytes) -> Iterator[bytes]:
        """The content that `data` completes, lazily, at most one frame at a time."""
        self._pending += data
        while self._pending and self._begin():
            if content := self._step():
                yield content

    def _begin(self) -> bool:
        """Whether a frame is open; opens the next one once its header is here."""
        if self._frame is not None:
            return True
        try:
            parameters = zstandard.get_frame_parameters(self._pending)
        except zstandard.ZstdError as error:
            if len(self._pending) < _LONGEST_HEADER:
                return False
            raise ProtocolError(f"the answer is not the zstd that it claims to be: {error}") from error
        if parameters.content_size > MAX_FRAME:  # also where it is not given
            raise ProtocolError(f"the answer holds a frame of no declared size up to {MAX_FRAME} bytes")
        self._frame = self._decompressor.decompressobj()
        return True

    def _step(self) -> bytes:
        frame = self._frame
        assert frame is not None
        data, self._pending = self._pending, b""
        try:
            content = frame.decompress(data)
        except zstandard.ZstdError as error:
            raise ProtocolError(f"the answer cannot be decoded: {error}") from error
        if frame.eof:
            self._frame, self._pending = None, frame.unused_data
        return content
