"""Finds bytes and lines of a capture in its objects: arithmetic over all frames of all segments.

Frames are numbered from 0 across the segments. A packed map is one zstd frame of this msgpack array:

    version    2
    counts     array: the frames of each segment
    columns    bytes: per frame five little-endian u32 (stored size, size, newlines, 1 where UTF-8,
               checksum), transposed: first the first byte of every frame's 20, then the second, …

Transposed, the bytes that hardly change lie side by side, and compress to nearly nothing.
The checksums do not compress: they are four of the map's nine bytes for a frame of text.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Final, Self

import msgspec
from msgspec import Struct

from overspill_service.errors import CaptureDamaged
from overspill_service.store_format.frames import CHECKSUM, Frame, check_listed, compress, decompress

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

VERSION: Final = 2
ROW: Final = struct.Struct("<5I")
ROW_SIZE: Final = ROW.size
MAX_SPAN_FRAMES: Final = 256
"""Frames in one span. Frames that compress well are so small that bytes alone do not limit their number."""
OBJECT_OVERHEAD: Final = 1024
"""Bytes of memory for the Python objects of a map, and its place in a cache."""
UNPACKED_LIMIT: Final = 64 * 1024 * 1024
"""Bytes that a packed map may decode to: 3 million frames, more than a TiB of content."""


FrameRow = tuple[int, int, int, int, int]
"""Of one frame: stored size, size, newlines, whether it is UTF-8, checksum."""
NO_FRAMES: Final[tuple[tuple[int, ...], ...]] = ((),) * 5


class Span(Struct, frozen=True):
    """Consecutive frames of one segment: `length` bytes of its object, from `start`."""

    segment: int
    start: int
    length: int
    frames: range


class _Packed(Struct, array_like=True, forbid_unknown_fields=True):
    version: int
    counts: list[int]
    columns: bytes


class FrameMap:
    """The positions of all frames of a capture, in bytes, stored bytes and newlines."""

    __slots__ = (
        "_checksums",
        "_firsts",
        "_largest",
        "_newlines",
        "_raw",
        "_stored",
        "_utf8",
        "newlines_checked",
    )

    def __init__(self, counts: Sequence[int], rows: Iterable[FrameRow]) -> None:
        """`counts` has the number of frames of each segment, `rows` all frames in order."""
        stored_sizes, sizes, newlines, utf8, checksums = zip(*rows, strict=True) if sum(counts) else NO_FRAMES
        self._firsts = _running_sums(counts)
        self._stored, self._raw, self._newlines = map(_running_sums, (stored_sizes, sizes, newlines))
        self._largest = max(stored_sizes, default=0), max(sizes, default=0)
        self._utf8 = bytes(map(bool, utf8))
        self._checksums = array("I", checksums)
        self.newlines_checked = bytearray(len(utf8))
        """1 for each frame whose newlines a reader has counted and found right."""

    @classmethod
    def of(cls, segments: Iterable[Sequence[Frame]]) -> Self:
        """Return the map of these segments' frames. Segments and frames are in order."""
        lists = list(segments)
        return cls([len(each) for each in lists], map(_row_of, chain.from_iterable(lists)))

    @property
    def segments(self) -> list[list[Frame]]:
        """The frames of each segment."""
        return [[self[frame] for frame in range(*pair)] for pair in pairwise(self._firsts)]

    def with_segment(self, frames: Sequence[Frame]) -> Self:
        """Return the map with one more segment."""
        return self.of([*self.segments, frames])

    def __len__(self) -> int:
        return len(self._utf8)

    def __getitem__(self, frame: int) -> Frame:
        stored_size, size, newlines = (
            sums[frame + 1] - sums[frame] for sums in (self._stored, self._raw, self._newlines)
        )
        return Frame(stored_size, size, newlines, bool(self._utf8[frame]), self._checksums[frame])

    @property
    def memory_size(self) -> int:
        """Bytes of memory that the map takes."""
        columns = self._firsts, self._stored, self._raw, self._newlines, self._checksums
        arrays = sum(column.itemsize * len(column) for column in columns)
        return OBJECT_OVERHEAD + arrays + len(self._utf8) + len(self.newlines_checked)

    @property
    def size(self) -> int:
        return self._raw[-1]

    @property
    def newlines(self) -> int:
        return self._newlines[-1]

    def raw_start(self, frame: int) -> int:
        """Return the offset in the content where a frame begins.

        For frame `len(self)` it is the content's size.
        """
        return self._raw[frame]

    def stored_start(self, frame: int) -> int:
        """Return the number of stored bytes of all frames before this one."""
        return self._stored[frame]

    def first_newline(self, frame: int) -> int:
        """Return the number of newlines before a frame. For frame `len(self)` it is all newlines."""
        return self._newlines[frame]

    def frames_of_bytes(self, start: int, stop: int) -> range:
        """Return the frames that hold the bytes from `start` up to `stop`, or to the content's end."""
        stop = min(stop, self.size)
        if not 0 <= start < stop:
            return range(0)
        first = bisect_right(self._raw, start) - 1
        return range(first, bisect_left(self._raw, stop))

    def frame_at_newline(self, n: int) -> int:
        """Return the frame that holds the `n`-th newline of the content, counted from 1.

        Raises `IndexError` if there are fewer newlines.
        """
        if not 1 <= n <= self.newlines:
            raise IndexError(f"newline {n} of {self.newlines}")
        return bisect_left(self._newlines, n) - 1

    def size_of(self, frames: range) -> int:
        """Return the bytes of content of consecutive frames. The range may run in either direction."""
        return self.raw_start(max(frames[0], frames[-1]) + 1) - self.raw_start(min(frames[0], frames[-1]))

    def largest(self, frames: range) -> tuple[int, int]:
        """Return upper bounds of the stored bytes and of the bytes of content of any one of these frames."""
        if not frames:
            return 0, 0
        stored = self._stored[frames.stop] - self._stored[frames.start]
        return min(stored, self._largest[0]), min(self.size_of(frames), self._largest[1])

    def span(self, frames: range, size: int, *, is_reversed: bool = False) -> Span:
        """Return the first of these frames, or the last if `is_reversed`, as one span of one segment.

        The span has as few frames as make up `size` stored bytes: at least one, at most `MAX_SPAN_FRAMES`.
        """
        edge = frames.stop - 1 if is_reversed else frames.start
        segment = bisect_right(self._firsts, edge) - 1
        if is_reversed:
            low = max(frames.start, self._firsts[segment], frames.stop - MAX_SPAN_FRAMES)
            limit_reached = bisect_right(self._stored, self._stored[frames.stop] - size) - 1
            return self._span(segment, range(max(low, limit_reached), frames.stop))
        high = min(frames.stop, self._firsts[segment + 1], frames.start + MAX_SPAN_FRAMES)
        limit_reached = bisect_left(self._stored, self._stored[edge] + size)
        return self._span(segment, range(edge, min(high, limit_reached)))

    def check_stored(self, frames: range, data: bytes) -> None:
        """Raise `CaptureDamaged` if `data` cannot be these stored frames. Nothing is decoded.

        The docstring of `frames.check_stored` says what that proves.
        """
        start = self._stored[frames.start]
        size = self._stored[frames.stop] - start
        if len(data) != size:
            raise CaptureDamaged(f"frames of {size} stored bytes came with {len(data)}")
        for frame in frames:
            (found,) = CHECKSUM.unpack_from(data, self._stored[frame + 1] - start - CHECKSUM.size)
            if found != self._checksums[frame]:
                raise CaptureDamaged(f"frame {frame} has another checksum than its index says")

    def _span(self, segment: int, frames: range) -> Span:
        start = self._stored[frames.start] - self._stored[self._firsts[segment]]
        length = self._stored[frames.stop] - self._stored[frames.start]
        return Span(segment, start, length, frames)

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """Return the map that was packed. Raises `CaptureDamaged` if `data` is not a packed map."""
        packed = _decoded(data)
        rows = [*ROW.iter_unpack(_transposed(packed.columns))]
        check_listed(row[:3] for row in rows)
        return cls(packed.counts, rows)


def _decoded(data: bytes) -> _Packed:
    """Return what was packed, with as many columns as its segments have frames. Raises `CaptureDamaged`."""
    try:
        packed = msgspec.msgpack.decode(decompress(data, UNPACKED_LIMIT), type=_Packed)
    except msgspec.DecodeError as error:
        raise CaptureDamaged(f"the frame map does not decode: {error}") from error
    if packed.version != VERSION:
        raise CaptureDamaged(f"the frame map has version {packed.version}; this service reads {VERSION}")
    if min(packed.counts, default=0) < 0 or len(packed.columns) != ROW_SIZE * sum(packed.counts):
        raise CaptureDamaged("the frame map's segments and columns disagree on the number of frames")
    return packed


def _transposed(columns: bytes) -> bytearray:
    """Return the rows of columns of bytes: the reverse of the transposition in `pack`."""
    count = len(columns) // ROW_SIZE
    rows = bytearray(len(columns))
    for place in range(ROW_SIZE):
        rows[place::ROW_SIZE] = columns[place * count : (place + 1) * count]
    return rows


def pack(segments: Sequence[Sequence[Frame]]) -> bytes:
    """Return the packed map of these segments' frames: about 9 bytes for each frame of text."""
    columns = b"".join(_columns(chain.from_iterable(segments)))
    return compress(msgspec.msgpack.encode(_Packed(VERSION, [*map(len, segments)], columns)))


def packed_with(data: bytes, frames: Sequence[Frame]) -> bytes:
    """Return a packed map with one more segment. The frames that it has cost next to nothing.

    Raises `CaptureDamaged` if `data` is not a packed map. Whether its frames can be, `FrameMap.unpack` finds.
    """
    packed = _decoded(data)
    count = sum(packed.counts)
    before = (packed.columns[place * count : (place + 1) * count] for place in range(ROW_SIZE))
    columns = b"".join(chain.from_iterable(zip(before, _columns(frames), strict=True)))
    return compress(msgspec.msgpack.encode(_Packed(VERSION, [*packed.counts, len(frames)], columns)))


def _columns(frames: Iterable[Frame]) -> list[bytes]:
    """Return the columns of bytes: the first byte of each frame's row, then the second, and so on."""
    rows = b"".join(ROW.pack(*_row_of(frame)) for frame in frames)
    return [rows[place::ROW_SIZE] for place in range(ROW_SIZE)]


def _row_of(frame: Frame) -> FrameRow:
    return frame.stored_size, frame.size, frame.newlines, frame.utf8, frame.checksum


def _running_sums(column: Iterable[int]) -> array[int]:
    return array("q", [*accumulate(column, initial=0)])
