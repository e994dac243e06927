"""The times at which bytes of a live capture were accepted: marks of a moment and an offset.

The bytes from a mark's offset on came at its moment or later. Packed, a timeline is msgpack of the first
moment (ms), the first offset, and one zstd frame of two little-endian u32 columns: the distances in time and
in bytes.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy as np

from overspill_service.catalog.live import MARK, MARK_MILLISECONDS, MARKS_BY_AGE
from overspill_service.errors import CaptureDamaged
from overspill_service.store_format.frames import compress, decompress

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_PACKED: Final = 16 * 1024
"""Bytes of a packed timeline, at most. One that is larger loses every second mark."""
MAX_UNPACKED: Final = 2**20
_COLUMN: Final = np.dtype("<u4")
_MAX_VALUE: Final = np.iinfo(_COLUMN).max


class Mark(NamedTuple):
    """`moment` in milliseconds since the epoch."""

    moment: int
    offset: int


class _Packed(msgspec.Struct, array_like=True):
    moment: int
    offset: int
    distances: bytes


def of_record(marks: bytes) -> list[Mark]:
    """Return the marks of a catalog's record."""
    return [Mark(*each) for each in MARK.iter_unpack(marks)]


def joined(earlier: Sequence[Mark], later: Sequence[Mark]) -> list[Mark]:
    """Return both timelines as one, in order."""
    end = earlier[-1] if earlier else Mark(-1, -1)
    return [*earlier, *(each for each in later if each.offset > end.offset and each.moment >= end.moment)]


def with_mark(marks: bytes, began: int, mark: Mark) -> bytes:
    """Return the marks of a catalog's record with one more, unless the last is too near. `began` in ms."""
    *_, last = [Mark(0, 0), *of_record(marks)]
    gap = max(MARK_MILLISECONDS, (mark.moment - began) / MARKS_BY_AGE)
    return marks if mark.moment - last.moment < gap else marks + MARK.pack(*mark)


def pack(marks: Sequence[Mark]) -> bytes:
    """Return the marks in at most `MAX_PACKED` bytes."""
    if not marks:
        return b""
    rows = np.array(marks, np.int64)
    distances = np.diff(rows, axis=0).clip(0, _MAX_VALUE).astype(_COLUMN).T.tobytes()
    moment, offset = map(int, rows[0])
    packed = msgspec.msgpack.encode(_Packed(moment, offset, compress(distances) if distances else b""))
    return packed if len(packed) <= MAX_PACKED else pack(marks[::2])


def unpack(packed: bytes) -> list[Mark]:
    """Return the marks of a packed timeline. Raises `CaptureDamaged`."""
    if not packed:
        return []
    try:
        first = msgspec.msgpack.decode(packed, type=_Packed)
    except msgspec.DecodeError as error:
        raise CaptureDamaged(f"the timeline does not decode: {error}") from error
    data = decompress(first.distances, MAX_UNPACKED) if first.distances else b""
    columns = np.frombuffer(data, _COLUMN).astype(np.int64).reshape(2, -1)
    sums = np.concatenate([[[first.moment], [first.offset]], columns], axis=1).cumsum(axis=1)
    return [Mark(*map(int, row)) for row in sums.T]


def offset_since(marks: Sequence[Mark], instant: float, size: int) -> int:
    """Return an offset before which everything was accepted before `instant` (seconds since the epoch).

    What follows may be a little older than the instant: as much as two marks are apart. `size` is returned if
    nothing came since.
    """
    moment = instant * 1000
    at = bisect_right(marks, moment, key=lambda mark: mark.moment)
    if at == 0:
        return 0
    if at == len(marks):  # bytes behind the last mark may have come until the next one was due
        return marks[-1].offset if moment - marks[-1].moment < _gap(marks) else size
    return marks[at - 1].offset if moment - marks[at - 1].moment < _gap(marks) else marks[at].offset


def _gap(marks: Sequence[Mark]) -> float:
    """Return how far apart two marks may be at the timeline's end, in milliseconds."""
    return max(MARK_MILLISECONDS, 2 * (marks[-1].moment - marks[0].moment) / MARKS_BY_AGE)
