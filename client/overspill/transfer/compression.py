"""Zstandard on the wire: compresses content that gets smaller by it, and decodes frames in bounded memory.

`Repr-Digest` is always the digest of the uncompressed content, whatever the encoding.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Final, TypeAlias

from overspill.errors import ProtocolError
from overspill.execution import threads
from overspill.transfer.request import Body

if sys.version_info >= (3, 14):
    from compression import zstd
else:  # the same code for older versions, a twentieth of the size of the package zstandard
    from backports import zstd

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from overspill.transfer.source import HashedContent

BytesLike: TypeAlias = bytes | memoryview

SINGLE_FRAME: Final = 512 * 1024
"""Content of up to this size is sent as exactly one frame, which the service may store unchanged."""
WORTHWHILE: Final = 4 * 1024
"""Content of fewer bytes is not compressed: one more packet costs less than compressing."""
SAMPLE: Final = 128 * 1024
"""The first bytes of long content, which are compressed to find out whether it shrinks."""
MAX_FRAME: Final = 16 * 1024 * 1024
"""The most bytes of content in a frame that a download accepts. The service's frames have about 576 KiB."""
PIECE_SIZE: Final = 1024 * 1024
"""The most decoded bytes that come as one piece; a frame of the service is less."""
_OPTIONS: Final[dict[int, int]] = {
    zstd.CompressionParameter.compression_level: 3,
    zstd.CompressionParameter.checksum_flag: 1,
}
_LIMITS: Final[dict[int, int]] = {zstd.DecompressionParameter.window_log_max: MAX_FRAME.bit_length() - 1}
"""No window is larger than a frame's content may be."""
_WORTH_A_THREAD: Final = 128 * 1024
"""Bytes whose compression takes longer than handing them to another thread."""
_GAIN: Final = 0.9
"""A frame is used if it has less than this share of the content's bytes."""
_LONGEST_HEADER: Final = 18
"""The most bytes of a frame's header (RFC 8878, section 3.1.1.1)."""


_local = threading.local()


async def body_for(content: HashedContent, *, compress: bool, is_local: bool) -> Body:
    """Return the body that carries `content`.

    Up to `SINGLE_FRAME` bytes it is one frame, if that is smaller. Longer content is compressed
    while it is sent, if a sample of it shrinks and the service is not on this machine (`is_local`): there
    sending costs less than compressing.
    """
    if content.whole is not None and content.size <= SINGLE_FRAME:
        return await in_memory_body(content.whole) if compress else Body.of(bytes(content.whole))
    if not compress or is_local or not await threads.run_blocking(_sample_shrinks, content):
        return Body(length=content.size, pieces=content.pieces)
    return Body(
        length=None,
        pieces=lambda: compress_pieces(content.pieces(), content.size),
        encoding="zstd",
    )


async def in_memory_body(data: BytesLike) -> Body:
    """Return the body for data in memory: one frame, if that is clearly smaller."""
    is_quick = len(data) < _WORTH_A_THREAD
    frame = compress_frame(data) if is_quick else await threads.run(compress_frame, data)
    return Body.of(bytes(data)) if frame is None else Body.of(frame, "zstd")


def _sample_shrinks(content: HashedContent) -> bool:
    sample = bytes(next(content.pieces(), b""))
    return compress_frame(sample[:SAMPLE]) is not None


def compress_frame(data: BytesLike) -> bytes | None:
    """Return `data` as one frame with its size and checksum, or None if that is not clearly smaller."""
    if len(data) < WORTHWHILE:
        return None
    compressor = _compressor()
    compressor.set_pledged_input_size(len(data))  # then the header gives the content's size
    frame = compressor.compress(data, compressor.FLUSH_FRAME)
    return frame if len(frame) < _GAIN * len(data) else None


def compress_pieces(pieces: Iterable[BytesLike], size: int) -> Iterator[bytes]:
    """Yield the bytes of one long frame, for `size` bytes of content given in pieces."""
    stream = zstd.ZstdCompressor(options=_OPTIONS)
    stream.set_pledged_input_size(size)
    for piece in pieces:
        if data := stream.compress(piece):
            yield data
    yield stream.flush()


def _compressor() -> zstd.ZstdCompressor:
    """Return this thread's compressor: making its tables anew for each frame costs 8 microseconds."""
    if not hasattr(_local, "compressor"):
        _local.compressor = zstd.ZstdCompressor(options=_OPTIONS)
    compressor: zstd.ZstdCompressor = _local.compressor
    return compressor


class FrameDecoder:
    """Decodes a sequence of frames that arrives in arbitrary pieces.

    Every frame must say how large its content is; that and its window must be at most `MAX_FRAME`.
    A piece that comes out has at most `PIECE_SIZE` bytes. Raises `ProtocolError`.
    """

    def __init__(self) -> None:
        self._frame: zstd.ZstdDecompressor | None = None
        self._pending: bytes = b""

    def decode(self, data: bytes) -> Iterator[bytes]:
        """Decode the content that `data` completes, lazily, at most one piece at a time."""
        self._pending += data
        while self._pending and (frame := self._open_frame()):
            yield from self._pieces(frame)
            if frame.eof:
                self._frame, self._pending = None, frame.unused_data

    def _open_frame(self) -> zstd.ZstdDecompressor | None:
        """Return the open frame; open the next one once its header is here."""
        if self._frame is None and self._is_header_here():
            self._frame = zstd.ZstdDecompressor(options=_LIMITS)
        return self._frame

    def _is_header_here(self) -> bool:
        try:
            size = zstd.get_frame_info(self._pending).decompressed_size
        except zstd.ZstdError as error:  # also raised for a header that is still incomplete
            if len(self._pending) < _LONGEST_HEADER:
                return False
            raise ProtocolError(f"the answer is not the zstd that it claims to be: {error}") from error
        if size is None or size > MAX_FRAME:
            raise ProtocolError(f"the answer holds a frame of no declared size up to {MAX_FRAME} bytes")
        return True

    def _pieces(self, frame: zstd.ZstdDecompressor) -> Iterator[bytes]:
        data, self._pending = self._pending, b""
        try:
            while content := frame.decompress(data, PIECE_SIZE):
                yield content
                if frame.eof or frame.needs_input:
                    return
                data = b""
        except zstd.ZstdError as error:
            raise ProtocolError(f"the answer cannot be decoded: {error}") from error
