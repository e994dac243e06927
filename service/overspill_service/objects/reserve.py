"""Room on a nearly full disk that is kept for removals, which must be recorded before objects are deleted.

    {folder}/reserve~      8 MiB, or an eighth of a small disk

The file is made once less than a GiB is free. A removal that finds the disk full empties it, so that the
catalog on the same disk can record the removal too. Until the file is whole again, other objects are refused.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

NAME: Final = "reserve~"
BYTES: Final = 8 * 2**20
"""Twice as much as the log of SQLite grows to before it is written over."""
PART: Final = 8
"""The reserve takes at most the size of its disk, divided by this."""
SHORT_BYTES: Final = 2**30
"""With less free room than this the reserve is kept. A disk with more has no need of one."""
REMOVAL_SECONDS: Final = 10.0
"""How long a removal that emptied the reserve may need the room."""
NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


class _Room(NamedTuple):
    """Bytes of a disk."""

    free: int
    target: int
    """The bytes that the reserve should have."""


class Reserve:
    """The reserve in one folder. All processes that use the folder share it."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._lock = threading.Lock()

    def keep(self) -> None:
        """Fill the reserve if the disk is nearly full. Raises `OSError` if it has no room for that."""
        room = self._room()
        if room.free > SHORT_BYTES or self._held() >= room.target:
            return
        if room.free < 2 * room.target and self._was_just_given():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        try:
            with self._lock:
                self._fill(room.target)
        except OSError as error:
            if error.errno in NO_ROOM:
                raise
            # Whoever writes an object meets other limits, such as one on the size of files, too.

    def give(self) -> None:
        """Empty the reserve if the disk has less free room than the reserve should have."""
        with suppress(FileNotFoundError):
            room = self._room()
            if room.free < room.target:
                os.truncate(self._path, 0)

    def _room(self) -> _Room:
        status = os.statvfs(self._path.parent)
        size = status.f_blocks * status.f_frsize
        return _Room(status.f_bavail * status.f_frsize, min(BYTES, size // PART))

    def _held(self) -> int:
        try:
            return self._path.stat().st_size
        except FileNotFoundError:
            return 0

    def _was_just_given(self) -> bool:
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return False
        return status.st_size == 0 and abs(time.time() - status.st_mtime) < REMOVAL_SECONDS

    def _fill(self, target: int) -> None:
        """Write up to the wanted size. If this raises `OSError`, the bytes for which there was room stay."""
        with open(self._path, "ab", buffering=0, opener=_private) as file:
            while (missing := target - file.tell()) > 0:
                # Zeros would take no room on a disk that compresses.
                file.write(os.urandom(missing))


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
