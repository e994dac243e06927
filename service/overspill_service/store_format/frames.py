"""Content as a row of zstd frames that decode one by one, and back.

    ┌────────────────────────┬────────────────────────┬─────────┐
    │ frame: ~576 KiB        │ frame: ~576 KiB        │ frame   │
    └────────────────────────┴────────────────────────┴─────────┘

A frame ends behind the last newline of its second half, or where there is none, as late as it can
without cutting a UTF-8 character. Each carries its content's size and, as its last four bytes, the
checksum of its content. An index records that checksum too, which ties a frame to its place in its
capture: a frame of another capture, or of another place, never passes for it. This module knows
nothing of objects, segments or where bytes come from.
"""

from __future__ import annotations

import codecs
import struct
import threading
from typing import TYPE_CHECKING, Final

import numpy as np
import zstandard
from msgspec import Struct

from overspill_service.errors import CaptureDamaged

if TYPE_CHECKING:
    from collections.abc import Iterable

FRAME_SIZE: Final = 576 * 1024
"""The most content that one frame holds, in bytes: all frames together are a few percent larger than one."""
STORED_SIZE_LIMIT: Final = FRAME_SIZE + FRAME_SIZE // 256 + 64
"""More than zstd makes of `FRAME_SIZE` bytes that do not compress (ZSTD_compressBound)."""
WINDOW_LOG: Final = 20
WINDOW_LIMIT: Final = 1 << WINDOW_LOG
"""The largest window, in bytes, that a decoder may need: the power of two that holds `FRAME_SIZE`."""
CHECKSUM: Final = struct.Struct("<I")
"""How a zstd frame with a checksum ends: the low half of the XXH64 of its content (RFC 8878, 3.1.1)."""
LEVEL: Final = 3
NEWLINE: Final = 0x0A


class Frame(Struct, frozen=True, array_like=True):
    """One frame: its bytes in the object, its bytes of content, and what those are."""

    stored_size: int
    size: int
    newlines: int
    utf8: bool
    """The content is valid UTF-8 by itself."""
    checksum: int
    """The frame's last four bytes."""


class FrameWriter:
    """Cuts a stream of content into frames. Pure CPU: call it in a thread, one at a time.

    It holds less than `FRAME_SIZE` bytes between calls. The cuts depend on the content alone, not on how
    it is dealt out over calls.
    """

    def __init__(self, level: int = LEVEL) -> None:
        self._level = level
        self._pending = bytearray()

    def write(self, data: bytes) -> list[tuple[Frame, bytes]]:
        """Take more content; return the frames that are full, each with its stored bytes."""
        done = []
        start = 0
        while len(self._pending) + len(data) - start >= FRAME_SIZE:
            frame, start = self._next(data, start)
            done.append(frame)
        self._pending += memoryview(data)[start:]
        return done

    def finish(self) -> list[tuple[Frame, bytes]]:
        """End the content; return the frame that was not full, if there is one."""
        if not self._pending:
            return []
        last = self._encode(self._pending, 0, len(self._pending))
        self._pending.clear()
        return [last]

    def _next(self, data: bytes, start: int) -> tuple[tuple[Frame, bytes], int]:
        """A full frame of what is pending and `data` from `start` on, and where in `data` to go on.

        Only what the frame takes of `data` besides what is pending is copied; nothing where nothing is.
        """
        held = len(self._pending)
        if not held:
            stop = _frame_end(data, start)
            return self._encode(data, start, stop), stop
        self._pending += memoryview(data)[start : start + FRAME_SIZE - held]
        stop = _frame_end(self._pending, 0)
        frame = self._encode(self._pending, 0, stop)
        del self._pending[max(stop, held) :]
        del self._pending[:stop]
        return frame, start + max(stop - held, 0)

    def _encode(self, content: bytes | bytearray, start: int, stop: int) -> tuple[Frame, bytes]:
        with memoryview(content) as whole, whole[start:stop] as view:
            stored = compress(view, self._level)
            return _describe(view, stored), stored


def decode_frame(data: bytes | memoryview, frame: Frame, *, newlines_checked: bool = False) -> bytes:
    """The content of one frame; raises `CaptureDamaged` where `data` is not exactly this frame.

    It allocates no more than `frame.size` bytes, whatever size the stored frame claims. `newlines_checked`
    says that an earlier call has counted the newlines, so they are not counted again.
    """
    check_stored(data, frame)
    content = decompress(data, min(frame.size, FRAME_SIZE))
    if len(content) != frame.size:
        raise CaptureDamaged(f"a frame holds {len(content)} bytes where its index says {frame.size}")
    if not newlines_checked and (newlines := count_newlines(content)) != frame.newlines:
        raise CaptureDamaged(f"a frame holds {newlines} newlines where its index says {frame.newlines}")
    return content


def check_stored(data: bytes | memoryview, frame: Frame) -> None:
    """Raise `CaptureDamaged` where `data` cannot be this frame as stored, judged without decoding it.

    A frame of other content fails here but for one chance in 2**32. A changed byte inside the frame does
    not: whoever decodes the frame finds that, by the same checksum.
    """
    if len(data) != frame.stored_size:
        raise CaptureDamaged(f"a frame of {frame.stored_size} stored bytes came with {len(data)}")
    if (found := _checksum_of(data)) != frame.checksum:
        raise CaptureDamaged(
            f"a frame has the checksum {found:08x} where its index says {frame.checksum:08x}"
        )


def compress(content: bytes | memoryview, level: int = LEVEL) -> bytes:
    """One zstd frame with content size and checksum."""
    if level not in _contexts.compressors:
        _contexts.compressors[level] = zstandard.ZstdCompressor(compression_params=_parameters(level))
    stored = _contexts.compressors[level].compress(content)
    # A copy: the compressor shrinks a buffer for the worst case, and what it gives up stays with the process.
    return memoryview(stored).tobytes()


def adopt(data: bytes) -> tuple[Frame, bytes] | None:
    """Return the frame and its content if `data` may be stored as it is, else None.

    It may if it is one frame, no larger than a `FrameWriter` makes them, with size and checksum, without a
    dictionary, and with a window that covers its content and is no larger than `WINDOW_LIMIT`. Every
    decoder decodes such a frame, in little memory and to the same bytes.
    """
    if len(data) > STORED_SIZE_LIMIT:
        return None
    try:
        content = decompress(data, FRAME_SIZE)
    except CaptureDamaged:
        return None
    if not content:
        return None
    return _describe(content, data), content


def content_size(data: bytes) -> int:
    """How many bytes the zstd frame at the start of `data` says it holds; 0 or less if it does not say."""
    try:
        return int(zstandard.frame_content_size(data))
    except zstandard.ZstdError:
        return 0


def decompress(data: bytes | memoryview, limit: int) -> bytes:
    """Decode `data`, one zstd frame as `adopt` describes it, to `limit` bytes at most.

    Raises `CaptureDamaged` where it is anything else; allocates nothing before it has seen the size.
    """
    try:
        _check_header(zstandard.get_frame_parameters(data), limit)
        return _contexts.decompressor.decompress(data, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise CaptureDamaged(f"a frame does not decode: {error}") from error


def _check_header(header: zstandard.FrameParameters, limit: int) -> None:
    if not 0 < header.content_size <= limit:
        raise CaptureDamaged(f"a frame says that it holds {header.content_size} bytes, not 1 to {limit}")
    if not header.has_checksum:
        raise CaptureDamaged("a frame lacks its checksum")
    if header.dict_id:
        raise CaptureDamaged(f"a frame needs the dictionary {header.dict_id}")
    if not header.content_size <= header.window_size <= max(limit, WINDOW_LIMIT):
        raise CaptureDamaged(f"a frame of {header.content_size} bytes has a window of {header.window_size}")


def check_listed(rows: Iterable[tuple[int, int, int]]) -> None:
    """Raise `CaptureDamaged` where frames are listed that no `FrameWriter` could have made.

    A row is a frame's stored size, size and newlines.
    """
    for frame, (stored_size, size, newlines) in enumerate(rows):
        if not (0 < stored_size <= STORED_SIZE_LIMIT and 0 < size <= FRAME_SIZE and 0 <= newlines <= size):
            raise CaptureDamaged(
                f"frame {frame} cannot be: {stored_size} stored bytes, {size} bytes, {newlines} newlines"
            )


def _describe(content: bytes | memoryview, stored: bytes) -> Frame:
    return Frame(len(stored), len(content), count_newlines(content), is_utf8(content), _checksum_of(stored))


def _checksum_of(stored: bytes | memoryview) -> int:
    """The last four bytes of a frame; 0 where there are fewer, as no frame has."""
    return int(CHECKSUM.unpack(stored[-CHECKSUM.size :])[0]) if len(stored) >= CHECKSUM.size else 0


def count_newlines(content: bytes | bytearray | memoryview) -> int:
    return int(np.count_nonzero(np.frombuffer(content, np.uint8) == NEWLINE))


def is_utf8(content: bytes | bytearray | memoryview) -> bool:
    try:
        codecs.utf_8_decode(content, "strict", True)
    except UnicodeDecodeError:
        return False
    return True


def _frame_end(content: bytes | bytearray, start: int) -> int:
    """Where the frame that begins at `start` ends; `content` goes on for `FRAME_SIZE` bytes at least."""
    stop = start + FRAME_SIZE
    newline = content.rfind(b"\n", start + FRAME_SIZE // 2, stop)
    return stop - _incomplete_character(content[stop - 3 : stop]) if newline < 0 else newline + 1


def _incomplete_character(last: bytes | bytearray) -> int:
    """How many of these last bytes begin a UTF-8 character that they do not end."""
    return len(last) - codecs.utf_8_decode(last, "ignore", False)[1]


def _parameters(level: int) -> zstandard.ZstdCompressionParameters:
    """Those of the level, with tables that fit the size of a frame where zstd's own are a step too small."""
    tables = {"hash_log": 18, "chain_log": 17} if level == LEVEL else {}
    return zstandard.ZstdCompressionParameters.from_level(
        level,
        source_size=FRAME_SIZE,
        window_log=WINDOW_LOG,
        write_checksum=True,
        write_content_size=True,
        **tables,
    )


class _Contexts(threading.local):
    """A thread's own: they are costly to make, and one must never serve two threads at once."""

    def __init__(self) -> None:
        self.compressors: dict[int, zstandard.ZstdCompressor] = {}
        self.decompressor = zstandard.ZstdDecompressor()


_contexts = _Contexts()
