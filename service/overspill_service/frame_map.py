"""Where in a capture's objects its bytes and lines lie: arithmetic over all frames of all segments."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final, Self

import msgspec
import numpy as np
import zstandard
from msgspec import Struct

from overspill_service import frames
from overspill_service.errors import CaptureDamaged
from overspill_service.frames import Frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Column = np.ndarray[tuple[int], np.dtype[np.int64]]
    Table = np.ndarray[tuple[int, int], np.dtype[np.int64]]

VERSION: Final = 1
UNPACKED_LIMIT: Final = 64 * 1024 * 1024


class Span(Struct, frozen=True):
    """Consecutive frames of one segment: bytes `start` up to `start + length` of its object."""

    segment: int
    start: int
    length: int
    frames: range


class _Packed(Struct, array_like=True):
    version: int
    counts: list[int]
    columns: bytes


class FrameMap:
    """All frames of a capture, numbered from 0 across its segments."""

    def __init__(self, counts: Sequence[int], frames: Table) -> None:
        """`counts` says how many frames each segment has; `frames` has a row for each."""
        self._counts = list(counts)
        self._frames = frames
        self._raw = _cumulated(frames[:, 1])
        self._newlines = _cumulated(frames[:, 2])
        self._stored = _cumulated(frames[:, 0])
        self._firsts = _cumulated(np.array(self._counts, np.int64))

    @classmethod
    def of(cls, segments: Iterable[Iterable[Frame]]) -> Self:
        """The map of these segments' frames, in order."""
        lists = [list(segment) for segment in segments]
        rows = [(f.stored_size, f.size, f.newlines, f.utf8) for f in chain.from_iterable(lists)]
        return cls([len(each) for each in lists], np.array(rows, np.int64).reshape(-1, 4))

    def __len__(self) -> int:
        return len(self._frames)

    def __getitem__(self, frame: int) -> Frame:
        stored_size, size, newlines, utf8 = self._frames[frame].tolist()
        return Frame(stored_size, size, newlines, bool(utf8))

    @property
    def size(self) -> int:
        return int(self._raw[-1])

    @property
    def newlines(self) -> int:
        return int(self._newlines[-1])

    def raw_start(self, frame: int) -> int:
        """The offset in the content where a frame begins; `len(self)` gives the size."""
        return int(self._raw[frame])

    def first_newline(self, frame: int) -> int:
        """How many newlines lie before a frame; `len(self)` gives all."""
        return int(self._newlines[frame])

    def frames_of_bytes(self, start: int, stop: int) -> range:
        """The frames that hold the bytes from `start` up to `stop` of the content."""
        if not 0 <= start < min(stop, self.size):
            return range(0)
        first = int(np.searchsorted(self._raw, start, "right")) - 1
        return range(first, int(np.searchsorted(self._raw, min(stop, self.size), "left")))

    def frame_at_newline(self, n: int) -> int:
        """The frame that holds the `n`-th newline of the content, counted from 1.

        Raises `IndexError` where there is no such newline.
        """
        if not 1 <= n <= self.newlines:
            raise IndexError(f"newline {n} of {self.newlines}")
        return int(np.searchsorted(self._newlines, n, "left")) - 1

    def spans(self, frames: range) -> list[Span]:
        """Where these frames lie: one span for each segment that they touch, in order."""
        spans = []
        for segment, count in enumerate(self._counts):
            first = int(self._firsts[segment])
            part = range(max(frames.start, first), min(frames.stop, first + count))
            if part:
                start = int(self._stored[part.start] - self._stored[first])
                length = int(self._stored[part.stop] - self._stored[part.start])
                spans.append(Span(segment, start, length, part))
        return spans

    def pack(self) -> bytes:
        """The map in few bytes; `unpack` reads them."""
        columns = np.ascontiguousarray(self._frames.astype("<u4").view(np.uint8).T).tobytes()
        packed = msgspec.msgpack.encode(_Packed(VERSION, self._counts, columns))
        return zstandard.ZstdCompressor(write_checksum=True).compress(packed)

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """The map that was packed; raises `CaptureDamaged` where `data` is not one."""
        try:
            packed = msgspec.msgpack.decode(frames.decompress(data, UNPACKED_LIMIT), type=_Packed)
        except msgspec.DecodeError as error:
            raise CaptureDamaged(f"the frame map does not decode: {error}") from error
        if packed.version != VERSION or len(packed.columns) != 16 * sum(packed.counts):
            raise CaptureDamaged("the frame map is not one")
        planes = np.frombuffer(packed.columns, np.uint8).reshape(16, -1)
        table = np.ascontiguousarray(planes.T).view("<u4").astype(np.int64)
        return cls(packed.counts, table)


def _cumulated(column: Column) -> Column:
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(column, dtype=np.int64)))
