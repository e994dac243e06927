"""Content as a row of zstd frames that decode one by one, and back.

    ┌────────────────────────┬────────────────────────┬─────────┐
    │ frame: ~512 KiB        │ frame: ~512 KiB        │ frame   │
    └────────────────────────┴────────────────────────┴─────────┘

A frame ends behind the last newline of its second half, or where there is none, as late as it can
without cutting a UTF-8 character. Each carries its content's size and checksum. This module knows
nothing of objects, segments or where bytes come from.
"""

from __future__ import annotations

import codecs
import threading
from typing import TYPE_CHECKING, Final

import numpy as np
import zstandard
from msgspec import Struct

from overspill_service.errors import CaptureDamaged

if TYPE_CHECKING:
    from collections.abc import Iterable

FRAME_SIZE: Final = 512 * 1024
"""The most content that one frame holds, in bytes."""
STORED_SIZE_LIMIT: Final = FRAME_SIZE + FRAME_SIZE // 256 + 64
"""More than zstd makes of `FRAME_SIZE` bytes that do not compress (ZSTD_compressBound)."""
LEVEL: Final = 3
NEWLINE: Final = 0x0A


class Frame(Struct, frozen=True, array_like=True):
    """One frame: its bytes in the object, its bytes of content, and what those are."""

    stored_size: int
    size: int
    newlines: int
    utf8: bool
    """The content is valid UTF-8 by itself."""


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
            held = len(self._pending)
            if held:
                self._pending += memoryview(data)[start : start + FRAME_SIZE - held]
                stop = _cut(self._pending, 0)
                done.append(self._encode(self._pending, 0, stop))
            else:
                stop = _cut(data, start) - start
                done.append(self._encode(data, start, start + stop))
            if stop < held:
                del self._pending[held:], self._pending[:stop]
            else:
                self._pending.clear()
                start += stop - held
        self._pending += memoryview(data)[start:]
        return done

    def finish(self) -> list[tuple[Frame, bytes]]:
        """End the content; return the frame that was not full, if there is one."""
        if not self._pending:
            return []
        last = self._encode(self._pending, 0, len(self._pending))
        self._pending.clear()
        return [last]

    def _encode(self, content: bytes | bytearray, start: int, stop: int) -> tuple[Frame, bytes]:
        with memoryview(content) as whole, whole[start:stop] as view:
            stored = _compressor(self._level).compress(view)
            return Frame(len(stored), len(view), count_newlines(view), is_utf8(view)), stored


def decode_frame(data: bytes | memoryview, frame: Frame) -> bytes:
    """The content of one frame; raises `CaptureDamaged` where `data` is not exactly this frame.

    Never allocates more than `frame.size` for it, whatever the bytes say of themselves.
    """
    if len(data) != frame.stored_size:
        raise CaptureDamaged(f"a frame of {frame.stored_size} stored bytes came with {len(data)}")
    content = decompress(data, min(frame.size, FRAME_SIZE))
    if len(content) != frame.size:
        raise CaptureDamaged(f"a frame holds {len(content)} bytes where its index says {frame.size}")
    newlines = count_newlines(content)
    if newlines != frame.newlines:
        raise CaptureDamaged(f"a frame holds {newlines} newlines where its index says {frame.newlines}")
    return content


def decompress(data: bytes | memoryview, limit: int) -> bytes:
    """The content, `limit` bytes at most, of `data`: one zstd frame with content size and checksum.

    Raises `CaptureDamaged` where it is anything else.
    """
    try:
        header = zstandard.get_frame_parameters(data)
        if header.content_size > limit:
            raise CaptureDamaged(f"a frame says that it holds {header.content_size} bytes, over {limit}")
        if not header.has_checksum:
            raise CaptureDamaged("a frame lacks its checksum")
        return _decompressor().decompress(data, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise CaptureDamaged(f"a frame does not decode: {error}") from error


def check(frames: Iterable[Frame]) -> None:
    """Raise `CaptureDamaged` where a frame is not one that a `FrameWriter` could have made."""
    for frame in frames:
        if not (
            0 < frame.stored_size <= STORED_SIZE_LIMIT
            and 0 < frame.size <= FRAME_SIZE
            and 0 <= frame.newlines <= frame.size
        ):
            raise CaptureDamaged(f"an index lists a frame that cannot be: {frame}")


def count_newlines(content: bytes | bytearray | memoryview) -> int:
    return int(np.count_nonzero(np.frombuffer(content, np.uint8) == NEWLINE))


def is_utf8(content: bytes | bytearray | memoryview) -> bool:
    try:
        codecs.utf_8_decode(content, "strict", True)
    except UnicodeDecodeError:
        return False
    return True


def _cut(content: bytes | bytearray, start: int) -> int:
    """Where the frame that begins at `start` ends; `content` goes on for `FRAME_SIZE` bytes at least."""
    stop = start + FRAME_SIZE
    newline = content.rfind(b"\n", start + FRAME_SIZE // 2, stop)
    return stop - _unfinished(content[stop - 3 : stop]) if newline < 0 else newline + 1


def _unfinished(last: bytes | bytearray) -> int:
    """How many of these last bytes begin a UTF-8 character that they do not end."""
    return len(last) - codecs.utf_8_decode(last, "ignore", False)[1]


class _Local(threading.local):
    """A thread's own contexts: they are costly to make, and must never serve two threads at once."""

    def __init__(self) -> None:
        self.compressors: dict[int, zstandard.ZstdCompressor] = {}
        self.decompressor = zstandard.ZstdDecompressor()


_local = _Local()


def _compressor(level: int) -> zstandard.ZstdCompressor:
    if level not in _local.compressors:
        _local.compressors[level] = zstandard.ZstdCompressor(
            level, write_checksum=True, write_content_size=True
        )
    return _local.compressors[level]


def _decompressor() -> zstandard.ZstdDecompressor:
    return _local.decompressor
