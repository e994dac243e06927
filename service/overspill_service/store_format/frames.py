"""Cut content into zstd frames that decode one by one, and decode them.

    ┌────────────────────────┬────────────────────────┬─────────┐
    │ frame: ~576 KiB        │ frame: ~576 KiB        │ frame   │
    └────────────────────────┴────────────────────────┴─────────┘

A frame ends after the last newline of its second half. If there is none, it ends as late as it can without
cutting a UTF-8 character. Each frame holds its content's size and, in its last four bytes, the checksum of
its content. The index records the checksum too, which ties a frame to its place in its capture: a frame of
another capture or of another place is detected. This module knows nothing of objects, segments or where bytes
come from.
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
"""The most bytes of content in one frame. All frames together are a few percent larger than one frame would
be.
"""
STORED_SIZE_LIMIT: Final = FRAME_SIZE + FRAME_SIZE // 256 + 64
"""The most bytes that zstd makes of `FRAME_SIZE` incompressible bytes, and some more (ZSTD_compressBound)."""
WINDOW_LOG: Final = 20
WINDOW_LIMIT: Final = 1 << WINDOW_LOG
"""The largest window in bytes that a decoder may need: the power of two that holds `FRAME_SIZE`."""
CHECKSUM: Final = struct.Struct("<I")
"""The end of a zstd frame with a checksum: the low half of the XXH64 of its content (RFC 8878, 3.1.1)."""
LEVEL: Final = 3
FAST_LEVEL: Final = 1
"""The level of what is compressed while its producer waits."""
TABLES: Final = {FAST_LEVEL: {"hash_log": 13}, LEVEL: {"hash_log": 18, "chain_log": 17}}
"""Sizes of the tables, by level, that are not zstd's own.

At level 1 the table is half as large, so it stays in a core's nearest cache: a tenth less time, for some four
percent more bytes of code and usual logs, and ten of words at random. At level 3 zstd's own tables are a step
too small for a frame.
"""
NEWLINE: Final = 0x0A
FIRST_NOT_ASCII: Final = 0x80
CUT_BYTES: Final = 3
"""The most bytes of a character that is cut."""
BLOCK_BYTES: Final = 128 * 1024
"""Bytes in which newlines are counted at once: what that takes in memory is used again and again."""


class Frame(Struct, frozen=True, array_like=True):
    """One frame: the size of its bytes in the object, and what is known of its content."""

    stored_size: int
    size: int
    newlines: int
    utf8: bool
    """Whether the content is valid UTF-8 by itself."""
    checksum: int
    """The frame's last four bytes."""


class FrameWriter:
    """Cuts a stream of content into frames. CPU work only: call it in a thread, one call at a time.

    It holds less than `FRAME_SIZE` bytes between calls. The cuts depend on the content alone, not on how the
    content is split over calls.
    """

    def __init__(self, level: int = LEVEL) -> None:
        self._level = level
        self._pending = bytearray()

    def write(self, data: bytes) -> list[tuple[Frame, bytes]]:
        """Take more content. Return the frames that are full, each with its stored bytes."""
        done = []
        start = 0
        while len(self._pending) + len(data) - start >= FRAME_SIZE:
            frame, start = self._next(data, start)
            done.append(frame)
        self._pending += memoryview(data)[start:]
        return done

    def finish(self) -> list[tuple[Frame, bytes]]:
        """End the content. Return the last, partial frame if there is one."""
        if not self._pending:
            return []
        last = _encoded(self._pending, 0, len(self._pending), self._level)
        self._pending.clear()
        return [last]

    def _next(self, data: bytes, start: int) -> tuple[tuple[Frame, bytes], int]:
        """Return a full frame of the pending bytes and of `data` from `start`, and where `data` continues.

        Only bytes that join pending bytes in a frame are copied.
        """
        pending_size = len(self._pending)
        if not pending_size:
            stop = _frame_end(data, start)
            return _encoded(data, start, stop, self._level), stop
        self._pending += memoryview(data)[start : start + FRAME_SIZE - pending_size]
        stop = _frame_end(self._pending, 0)
        frame = _encoded(self._pending, 0, stop, self._level)
        del self._pending[max(stop, pending_size) :]
        del self._pending[:stop]
        return frame, start + max(stop - pending_size, 0)


def frames_between(data: bytes, start: int, stop: int, level: int = LEVEL) -> list[tuple[Frame, bytes]]:
    """Return the frames of `data[start:stop]`, each with its stored bytes. CPU work: call it in a thread."""
    done = []
    while start < stop:
        end = _frame_end(data, start) if stop - start >= FRAME_SIZE else stop
        done.append(_encoded(data, start, end, level))
        start = end
    return done


def decode_frame(data: bytes | memoryview, frame: Frame, *, newlines_checked: bool = False) -> bytes:
    """Return the content of one frame. Raises `CaptureDamaged` if `data` is not exactly this frame.

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
    """Raise `CaptureDamaged` if `data` cannot be this stored frame. Nothing is decoded.

    A frame of other content passes with a probability of 1 in 2**32. A changed byte inside the frame is not
    found here: decoding finds it, by the same checksum.
    """
    if len(data) != frame.stored_size:
        raise CaptureDamaged(f"a frame of {frame.stored_size} stored bytes came with {len(data)}")
    if (found := _checksum_of(data)) != frame.checksum:
        raise CaptureDamaged(
            f"a frame has the checksum {found:08x} where its index says {frame.checksum:08x}"
        )


def compress(content: bytes | memoryview, level: int = LEVEL) -> bytes:
    """Return the content as one zstd frame with content size and checksum."""
    if level not in _contexts.compressors:
        _contexts.compressors[level] = zstandard.ZstdCompressor(compression_params=_parameters(level))
    stored = _contexts.compressors[level].compress(content)
    # Copy it: the compressor shrinks a buffer of the worst-case size, and the process keeps the rest of it.
    return memoryview(stored).tobytes()


def accept_frame(data: bytes) -> tuple[Frame, bytes] | None:
    """Return the frame and its content if `data` may be stored as it is, else None.

    It must be one frame, no larger than a `FrameWriter` makes them, with size and checksum, without a
    dictionary, and with a window that covers its content and is at most `WINDOW_LIMIT`. Every decoder decodes
    such a frame in little memory and to the same bytes.
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
    """Return the content size in the header of the zstd frame at the start of `data`.

    Not positive: unknown.
    """
    try:
        return int(zstandard.frame_content_size(data))
    except zstandard.ZstdError:
        return 0


def decompress(data: bytes | memoryview, limit: int) -> bytes:
    """Decode one zstd frame as `accept_frame` describes it, to at most `limit` bytes.

    Raises `CaptureDamaged` for any other bytes. Nothing is allocated before the header was checked.
    """
    try:
        _check_header(zstandard.get_frame_parameters(data), limit)
        return _contexts.decompressor.decompress(data, allow_extra_data=False)  # exactly one frame
    except zstandard.ZstdError as error:
        raise CaptureDamaged(f"a frame does not decode: {error}") from error


def _check_header(header: zstandard.FrameParameters, limit: int) -> None:
    if not 0 < header.content_size <= limit:
        raise CaptureDamaged(f"a frame says that it holds {header.content_size} bytes, not 1 to {limit}")
    if not header.has_checksum:
        raise CaptureDamaged("a frame lacks its checksum")
    if header.dict_id:
        raise CaptureDamaged(f"a frame needs the dictionary {header.dict_id}")
    # FORMAT.md promises both bounds to every reader.
    if not header.content_size <= header.window_size <= max(limit, WINDOW_LIMIT):
        raise CaptureDamaged(f"a frame of {header.content_size} bytes has a window of {header.window_size}")


def check_listed(rows: Iterable[tuple[int, int, int]]) -> None:
    """Raise `CaptureDamaged` if no `FrameWriter` could have made the listed frames.

    A row is a frame's stored size, size and newlines.
    """
    for frame, (stored_size, size, newlines) in enumerate(rows):
        if not (0 < stored_size <= STORED_SIZE_LIMIT and 0 < size <= FRAME_SIZE and 0 <= newlines <= size):
            raise CaptureDamaged(
                f"frame {frame} cannot be: {stored_size} stored bytes, {size} bytes, {newlines} newlines"
            )


def _encoded(content: bytes | bytearray, start: int, stop: int, level: int) -> tuple[Frame, bytes]:
    with memoryview(content) as whole, whole[start:stop] as view:
        stored = compress(view, level)
        return _describe(view, stored), stored


def _describe(content: bytes | memoryview, stored: bytes) -> Frame:
    return Frame(len(stored), len(content), count_newlines(content), is_utf8(content), _checksum_of(stored))


def _checksum_of(stored: bytes | memoryview) -> int:
    """Return the last four bytes of a frame, 0 if there are fewer. No frame is that short."""
    return int(CHECKSUM.unpack(stored[-CHECKSUM.size :])[0]) if len(stored) >= CHECKSUM.size else 0


def count_newlines(content: bytes | bytearray | memoryview) -> int:
    data = np.frombuffer(content, np.uint8)
    blocks = (data[start : start + BLOCK_BYTES] for start in range(0, len(data), BLOCK_BYTES))
    return sum(int(np.count_nonzero(block == NEWLINE)) for block in blocks)


def is_utf8(content: bytes | bytearray | memoryview) -> bool:
    if not content or np.frombuffer(content, np.uint8).max() < FIRST_NOT_ASCII:  # without a copy
        return True
    try:
        codecs.utf_8_decode(content, "strict", True)
    except UnicodeDecodeError:
        return False
    return True


def _frame_end(content: bytes | bytearray, start: int) -> int:
    """Return where the frame that begins at `start` ends.

    `content` has at least `FRAME_SIZE` bytes from there.
    """
    stop = start + FRAME_SIZE
    # Only the second half: a cut at an early newline would make many small frames.
    newline = content.rfind(b"\n", start + FRAME_SIZE // 2, stop)
    return stop - incomplete_character(content[stop - CUT_BYTES : stop]) if newline < 0 else newline + 1


def incomplete_character(last: bytes | bytearray) -> int:
    """Return how many of these bytes, the last ones of a text, begin a UTF-8 character that is cut."""
    return len(last) - codecs.utf_8_decode(last, "ignore", False)[1]


def _parameters(level: int) -> zstandard.ZstdCompressionParameters:
    return zstandard.ZstdCompressionParameters.from_level(
        level,
        source_size=FRAME_SIZE,
        window_log=WINDOW_LOG,
        write_checksum=True,
        write_content_size=True,
        **TABLES.get(level, {}),
    )


class _Contexts(threading.local):
    """One thread's contexts. They are costly to make, and must never be used by two threads at once."""

    def __init__(self) -> None:
        self.compressors: dict[int, zstandard.ZstdCompressor] = {}
        self.decompressor = zstandard.ZstdDecompressor()


_contexts = _Contexts()
