"""Files that have reached the disk when their writer goes on: written, read and removed. All of it blocks."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, Literal

from overspill_service.errors import CaptureDamaged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

SLICE_BYTES: Final = 2**20
"""The bytes that may be written before they must have reached the disk.

So a small file never waits behind many megabytes of others.
"""
_NO_WAIT: Final = getattr(os, "RWF_NOWAIT", 0)
_AT_ONCE: Final = os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_NOATIME", 0)
"""Opening waits for no writer of a pipe, and reading does not wait until its time is noted."""
CAN_TELL_CACHED: Final = bool(_NO_WAIT)
"""Whether this system can refuse a read of bytes that it does not have in memory. Linux can."""
_SYNCHRONISE_DATA: Final = getattr(os, "fdatasync", os.fsync)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


@contextmanager
def durably_written(path: Path, pieces: Sequence[bytes], mode: Literal["xb", "wb"] = "xb") -> Iterator[None]:
    """Write a file durably. It is locked until the block ends, so that no sweep removes it."""
    with open(path, mode, opener=_private) as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # the system releases it if this process dies
        unsynchronised = 0
        for part in _slices(pieces):
            unsynchronised += file.write(part)
            if unsynchronised >= SLICE_BYTES:
                file.flush()
                _SYNCHRONISE_DATA(file.fileno())
                unsynchronised = 0
        file.flush()
        os.fsync(file.fileno())
        yield


def _slices(pieces: Sequence[bytes]) -> Iterator[memoryview]:
    for piece in pieces:
        with memoryview(piece) as view:
            for start in range(0, len(view), SLICE_BYTES):
                yield view[start : start + SLICE_BYTES]


def synchronise(folder: Path) -> None:
    """Wait until the names in a folder have reached the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_cached(path: Path, start: int, length: int) -> bytes | None:
    """Return the bytes of the range if the system has them in memory.

    Otherwise return None: `read` says more.
    """
    try:
        descriptor = os.open(path, _AT_ONCE)
    except OSError:
        return None
    try:
        data = bytearray(length)
        is_whole = os.preadv(descriptor, [data], start, _NO_WAIT) == length
        return bytes(data) if is_whole else None
    except OSError:  # they are not in memory, or this file system does not tell
        return None
    finally:
        os.close(descriptor)


def read(path: Path, start: int, length: int) -> bytes | None:
    """Return the bytes of the range, None if there is no such file."""
    try:
        file = path.open("rb", buffering=0)
    except FileNotFoundError:
        return None
    with file:
        size = os.fstat(file.fileno()).st_size
        if start < 0:
            start, length = max(0, size + start), min(size, -start)
        if start + length > size:
            raise CaptureDamaged(f"a stored object ends at byte {size}, before byte {start + length}")
        file.seek(start)
        return file.read(length)


def unlink(paths: Iterable[Path]) -> None:
    """Remove files durably. It is not an error if one does not exist."""
    changed = set()
    for path in paths:
        with suppress(FileNotFoundError):
            path.unlink()
            changed.add(path.parent)
    for folder in changed:
        synchronise(folder)
