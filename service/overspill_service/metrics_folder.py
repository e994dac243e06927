"""The folder in which the workers of one service add up their figures, and its removal after a crash.

A lock on the file `lock` in it says that a process of its service lives: the supervisor holds it, and so does
every worker, which inherits it. The kernel gives it back when the last of them has ended, however it ended.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX: Final = "overspill-metrics-"
LOCK: Final = "lock"


class MetricsFolder(NamedTuple):
    path: str
    descriptor: int
    """The open lock: pass it on to each worker."""


@contextmanager
def metrics_folder() -> Iterator[MetricsFolder]:
    """Make a locked folder, and remove it at the end; folders that crashed services left go first."""
    remove_stale()
    folder = _made()
    try:
        yield folder
    finally:
        shutil.rmtree(folder.path)
        os.close(folder.descriptor)


def remove_stale() -> None:
    """Remove the folders whose lock nobody holds. Those of other users are left to them."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            descriptor = os.open(path / LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                if _is_taken(descriptor):
                    shutil.rmtree(path)
            finally:
                os.close(descriptor)


def _made() -> MetricsFolder:
    """A new folder with its lock; made again if another service took it for stale before it was locked."""
    while True:
        path = tempfile.mkdtemp(prefix=PREFIX)
        with suppress(FileNotFoundError):
            descriptor = os.open(Path(path) / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            if _is_taken(descriptor) and (Path(path) / LOCK).exists():
                return MetricsFolder(path, descriptor)
            os.close(descriptor)


def _is_taken(descriptor: int) -> bool:
    """Whether this process could take the lock."""
    import fcntl  # noqa: PLC0415  (there is none on Windows, where one process serves)

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
