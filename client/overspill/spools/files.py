"""Files of one directory, reached through the directory's own descriptor. No symbolic link is followed."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NO_LINKS: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_DIRECTORY: Final = NO_LINKS | getattr(os, "O_DIRECTORY", 0)


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """Open a directory for the block. Raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | _DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def create(directory: int, name: str, mode: int) -> int:
    """Return the descriptor of a new file. Raises `FileExistsError` and other `OSError`s."""
    return os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_LINKS, mode, dir_fd=directory)


def open_regular(directory: int, name: str) -> IO[bytes]:
    """Open a file to read it. Raises `FileNotFoundError` for anything but a regular file."""
    descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | NO_LINKS, dir_fd=directory)
    file = os.fdopen(descriptor, "rb", buffering=0)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise FileNotFoundError(name)
    return file


def exists(directory: int, name: str) -> bool:
    """Return whether `directory`, a descriptor, has a file of this name. Raises `OSError`."""
    return found(directory, name) is not None


def size(directory: int, name: str) -> int:
    """Return the bytes of a file; 0 if there is none."""
    status = found(directory, name)
    return 0 if status is None else status.st_size


def found(directory: int, name: str) -> os.stat_result | None:
    """Return the status of a file; None if there is none."""
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def remove(directory: int, name: str) -> int:
    """Remove a file and return its bytes; 0 if there was none."""
    freed = size(directory, name)
    try:
        os.unlink(name, dir_fd=directory)
    except FileNotFoundError:
        return 0
    return freed
