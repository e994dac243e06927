"""The end of an object: what its frames hold, where they belong in the capture, and the capture's entry.

    ┌────────┬────────┬─────────────┬────────────┐
    │ frame  │ frame… │ index frame │ seek table │
    └────────┴────────┴─────────────┴────────────┘
                      └───── the trailer ────────┘

The index frame is a skippable frame, so `zstd -d` reads over it. Numbers are little-endian:

    u32  magic     0x184D2A5D, a skippable frame
    u32  length    of everything below
    4    "OVSI"
    u8   version   2
    3    zeros
    16   digest    the first half of SHA-256 over the body and the whole seek table frame
    …    body      msgpack

The seek table holds each frame's sizes and checksum, and has a last entry for the index frame itself, of
size 0.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Final

import msgspec
import numpy as np
from msgspec import Struct

from overspill_service.errors import CaptureDamaged
from overspill_service.store_format import seek_table
from overspill_service.store_format.frames import Frame, check_listed

TAIL_SIZE: Final = 64 * 1024
"""Bytes of an object's end to read first: the whole trailer of nearly every object."""
MAX_FRAMES: Final = 1 << 16
"""The most frames in one object: 32 GiB of content."""
MAX_INDEX_SIZE: Final = 4 * 1024 * 1024
"""The most bytes of an index frame."""
MAGIC: Final = 0x184D2A5D
VERSION: Final = 2
HEADER: Final = struct.Struct("<II4sB3s16s")
SKIPPABLE_HEADER_SIZE: Final = 8
SIGNATURE: Final = b"OVSI"
ZEROS: Final = bytes(3)
DIGEST_SIZE: Final = 16
NEWLINES_TYPE: Final = np.dtype("<u4")
NOT_UTF8: Final = 1 << 31
"""Set in a frame's newline count if its content is not valid UTF-8."""
MAX_OFFSET: Final = 2**63 - 1


class TailTooShort(Exception):
    """The tail does not hold the whole trailer: read the last `length` bytes of the object instead.

    If the tail was that long already, the object is shorter than its trailer, and damaged.
    """

    def __init__(self, length: int) -> None:
        super().__init__(f"the trailer takes the last {length} bytes")
        self.length = length


class Index(Struct, frozen=True, kw_only=True):
    """The index of one segment: the description that it has of itself."""

    upload: str
    number: int
    """The segment's number within its upload, from 0."""
    last: bool
    first_offset: int
    """Bytes of content in the segments before this one."""
    first_newline: int
    """Newlines in the segments before this one."""
    frames: list[Frame]
    entry: bytes
    """The capture's entry (msgpack), opaque here. It is complete in the last segment."""

    @property
    def size(self) -> int:
        return sum(frame.size for frame in self.frames)

    @property
    def newlines(self) -> int:
        return sum(frame.newlines for frame in self.frames)


class _IndexBody(Struct, kw_only=True, forbid_unknown_fields=True):
    upload: str
    number: int
    last: bool
    first_offset: int
    first_newline: int
    newlines: bytes
    """Per frame a u32: its newlines, plus `NOT_UTF8`."""
    entry: bytes


def trailer(index: Index) -> bytes:
    """Return the bytes behind the segment's last frame: the index frame and the seek table."""
    packed = [frame.newlines | (0 if frame.utf8 else NOT_UTF8) for frame in index.frames]
    body = msgspec.msgpack.encode(
        _IndexBody(
            upload=index.upload,
            number=index.number,
            last=index.last,
            first_offset=index.first_offset,
            first_newline=index.first_newline,
            newlines=np.array(packed, NEWLINES_TYPE).tobytes(),
            entry=index.entry,
        )
    )
    if len(index.frames) > MAX_FRAMES or HEADER.size + len(body) > MAX_INDEX_SIZE:
        raise ValueError(f"an index of {len(index.frames)} frames and {len(body)} bytes is too large")
    entries = [(frame.stored_size, frame.size, frame.checksum) for frame in index.frames]
    table = seek_table.encode([*entries, (HEADER.size + len(body), 0, seek_table.NO_CONTENT)])
    length = HEADER.size - SKIPPABLE_HEADER_SIZE + len(body)
    return HEADER.pack(MAGIC, length, SIGNATURE, VERSION, ZEROS, _digest(body, table)) + body + table


def parse(tail: bytes, stored_size: int | None = None) -> Index:
    """Return the index of the object that ends in `tail`. `stored_size` is the object's size, if known.

    Raises `TailTooShort` if `tail` does not hold the whole trailer, `CaptureDamaged` if the trailer is wrong.
    """
    index_size, table_size = _sizes(tail, stored_size)
    trailer_size = index_size + table_size
    table = tail[-table_size:]
    entries = seek_table.decode(table)
    body = _body(tail[-trailer_size:-table_size], table)
    index = _index(body, entries[:-1])
    if stored_size not in (None, trailer_size + sum(entry[0] for entry in entries[:-1])):
        raise CaptureDamaged(f"an object of {stored_size} bytes whose seek table adds up to another size")
    return index


def listed_frames(tail: bytes) -> int:
    """Return how many frames the seek table at the end of `tail` claims, 0 if its footer is cut.

    Raises `CaptureDamaged` if no seek table of ours ends there.
    """
    return seek_table.count(tail) if len(tail) >= seek_table.FOOTER.size else 0


def _sizes(tail: bytes, stored_size: int | None) -> tuple[int, int]:
    """Return the bytes of the index frame and of the seek table at the end of `tail`."""
    smallest = seek_table.size_of(1) + HEADER.size
    _require_bytes(tail, smallest, stored_size)
    count = seek_table.count(tail)
    index_size, *content = seek_table.last_entry(tail)
    is_empty = content == [0, seek_table.NO_CONTENT]
    # The sizes come from the object and are not verified yet: limit them before anything is read by them.
    if not (1 <= count <= MAX_FRAMES + 1 and HEADER.size < index_size <= MAX_INDEX_SIZE and is_empty):
        raise CaptureDamaged(f"a seek table of {count} frames, the last of {index_size} bytes, is not ours")
    table_size = seek_table.size_of(count)
    _require_bytes(tail, index_size + table_size, stored_size)
    return index_size, table_size


def _require_bytes(tail: bytes, length: int, stored_size: int | None) -> None:
    if len(tail) >= length:
        return
    if stored_size is not None and stored_size < length:
        raise CaptureDamaged(f"an object of {stored_size} bytes is too short for its trailer of {length}")
    raise TailTooShort(length)


def _body(index: bytes, table: bytes) -> _IndexBody:
    """Return the body of an index frame. Raises `CaptureDamaged` if a field around it is wrong."""
    magic, length, name, version, zeros, digest = HEADER.unpack_from(index)
    if magic != MAGIC or length != len(index) - SKIPPABLE_HEADER_SIZE or name != SIGNATURE or zeros != ZEROS:
        raise CaptureDamaged("the object has no index frame where its seek table says")
    if version != VERSION:
        raise CaptureDamaged(f"the index has version {version}; this service reads {VERSION}")
    body = index[HEADER.size :]
    if digest != _digest(body, table):
        raise CaptureDamaged("the digest of the index is wrong")
    try:
        return msgspec.msgpack.decode(body, type=_IndexBody)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CaptureDamaged(f"the index does not decode: {error}") from error


def _index(body: _IndexBody, entries: list[seek_table.TableEntry]) -> Index:
    if len(body.newlines) != len(entries) * NEWLINES_TYPE.itemsize:
        raise CaptureDamaged("the index and the seek table disagree on the number of frames")
    stored_sizes, sizes, checksums = np.array(entries, np.int64).reshape(-1, 3).T
    packed = np.frombuffer(body.newlines, NEWLINES_TYPE).astype(np.int64)
    newlines, utf8 = packed & ~NOT_UTF8, packed & NOT_UTF8 == 0
    columns = [column.tolist() for column in (stored_sizes, sizes, newlines, utf8, checksums)]
    check_listed(zip(*columns[:3], strict=True))
    index = Index(
        upload=body.upload,
        number=body.number,
        last=body.last,
        first_offset=body.first_offset,
        first_newline=body.first_newline,
        frames=[Frame(*row) for row in zip(*columns, strict=True)],
        entry=body.entry,
    )
    _check_position(index)
    return index


def _check_position(index: Index) -> None:
    if index.number < 0 or not 0 <= index.first_newline <= index.first_offset <= MAX_OFFSET - index.size:
        raise CaptureDamaged(
            f"segment {index.number} cannot begin at byte {index.first_offset}, newline {index.first_newline}"
        )


def _digest(body: bytes, table: bytes) -> bytes:
    return hashlib.sha256(body + table).digest()[:DIGEST_SIZE]
