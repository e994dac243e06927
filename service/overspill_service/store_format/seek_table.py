"""The seek table of the zstd seekable format: a skippable frame at the end of an object.

All numbers are little-endian; see `contrib/seekable_format` in the zstd sources, version 0.1.0.

    u32  magic             0x184D2A5E, a skippable frame
    u32  length            of everything below
    then, for each frame of the object, in order:
      u32  stored size     as it lies in the object
      u32  size            of its content; 0 for a frame without any
      u32  checksum        the low half of the XXH64 of its content, as the frame itself ends in
    u32  number of frames
    u8   descriptor        bit 7: entries carry a checksum (ours do); bits 2 to 6: reserved, 0
    u32  seekable magic    0x8F92EAB1
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from overspill_service.errors import CaptureDamaged

if TYPE_CHECKING:
    from collections.abc import Sequence

TableEntry = tuple[int, int, int]
"""Of one frame: stored size, size, checksum."""

HEADER: Final = struct.Struct("<II")
ENTRY: Final = struct.Struct("<III")
FOOTER: Final = struct.Struct("<IBI")
MAGIC: Final = 0x184D2A5E
SEEKABLE_MAGIC: Final = 0x8F92EAB1
DESCRIPTOR: Final = 0x80
NO_CONTENT: Final = 0x51D8E999
"""The checksum of a frame without content."""
OVERHEAD: Final = HEADER.size + FOOTER.size


def encode(entries: Sequence[TableEntry]) -> bytes:
    """Return the whole seek table frame for these entries."""
    length = len(entries) * ENTRY.size + FOOTER.size
    return b"".join(
        (
            HEADER.pack(MAGIC, length),
            *(ENTRY.pack(*entry) for entry in entries),
            FOOTER.pack(len(entries), DESCRIPTOR, SEEKABLE_MAGIC),
        )
    )


def count(tail: bytes | memoryview) -> int:
    """Return how many entries the table at the end of `tail` claims. `tail` holds at least the footer.

    Raises `CaptureDamaged` if no seek table of ours ends there.
    """
    frames, descriptor, magic = FOOTER.unpack(tail[-FOOTER.size :])
    if magic != SEEKABLE_MAGIC:
        raise CaptureDamaged("the object does not end in a seek table")
    if descriptor != DESCRIPTOR:
        raise CaptureDamaged(f"the seek table's descriptor is {descriptor:#04x}, not {DESCRIPTOR:#04x}")
    return int(frames)


def last_entry(tail: bytes | memoryview) -> TableEntry:
    """Return the last entry of the table at the end of `tail`."""
    stored_size, size, checksum = ENTRY.unpack(tail[-FOOTER.size - ENTRY.size : -FOOTER.size])
    return stored_size, size, checksum


def size_of(entries: int) -> int:
    """Return how many bytes a table with this many entries has."""
    return OVERHEAD + entries * ENTRY.size


def decode(table: bytes | memoryview) -> list[TableEntry]:
    """Return the entries of a whole seek table frame.

    Raises `CaptureDamaged` if `table` is anything but exactly one.
    """
    if len(table) < OVERHEAD:
        raise CaptureDamaged(f"a seek table of {len(table)} bytes; the smallest has {OVERHEAD}")
    frames = count(table)
    magic, length = HEADER.unpack(table[: HEADER.size])
    if magic != MAGIC:
        raise CaptureDamaged(f"the seek table begins with {magic:#010x}, not {MAGIC:#010x}")
    if not length + HEADER.size == len(table) == size_of(frames):
        raise CaptureDamaged(f"a seek table of {len(table)} bytes says {length} bytes and {frames} frames")
    return list(ENTRY.iter_unpack(table[HEADER.size : -FOOTER.size]))
