"""The one table from failures of the operating system to errors of the service, with advice for the operator.

An adapter that catches an `OSError` calls `failure`. The outermost handler of a request calls
`resource_failure` for uncaught errors, because memory, threads and descriptors may run out anywhere.
"""

from __future__ import annotations

import errno
import os
import threading
from traceback import walk_tb
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from overspill_service.errors import OutOfResources, ServiceError, StoreFull, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_CAUSES: Final = 8
"""Errors of a chain that are examined."""


class FailureRow(Struct, frozen=True):
    """One kind of failure. `{place}` in `advice` stands for what failed."""

    name: str
    """One word for logs and metrics."""
    error: type[ServiceError]
    advice: str


MEMORY: Final = FailureRow(
    "memory", OutOfResources, "this process has no memory left; grant it more, or lower `max_uploads`"
)
THREADS: Final = FailureRow(
    "threads",
    OutOfResources,
    "no thread can be started; raise the limit on processes and threads (ulimit -u, a container's pids)",
)
DESCRIPTORS: Final = FailureRow(
    "descriptors",
    OutOfResources,
    "no file descriptor is free; raise the limit on open files (ulimit -n, LimitNOFILE=)",
)
FULL: Final = FailureRow("full", StoreFull, "{place} is full; delete files on it or enlarge it")
INODES: Final = FailureRow(
    "inodes",
    StoreFull,
    "{place} has no free inodes: too many files; delete files on it, or use a file system with more inodes",
)
FILE_SIZE: Final = FailureRow(
    "file_size",
    StoreFull,
    "a file on {place} would pass the limit on the size of files; raise it (ulimit -f, LimitFSIZE=)",
)

ROWS: Final = {
    errno.ENOMEM: MEMORY,
    errno.EMFILE: DESCRIPTORS,
    errno.ENFILE: DESCRIPTORS,
    errno.ENOSPC: FULL,
    errno.EDQUOT: FailureRow(
        "quota", StoreFull, "the disk quota on {place} is used up; raise it or delete files on it"
    ),
    errno.EFBIG: FILE_SIZE,
    errno.EROFS: FailureRow(
        "read_only",
        StoreUnavailable,
        "{place} is read-only; the system's log says why: mend it and mount it for writing",
    ),
    errno.EACCES: (
        DENIED := FailureRow(
            "denied",
            StoreUnavailable,
            "{place} may not be used by the user that runs the service; give the folder to this user",
        )
    ),
    errno.EPERM: DENIED,
    errno.EIO: FailureRow(
        "failing", StoreUnavailable, "{place} fails to read or write; look into the system's log"
    ),
}
PROCESS_ROWS: Final = frozenset({MEMORY, THREADS, DESCRIPTORS})
"""Rows about this process. They count wherever they are met."""


def row_of(error: BaseException) -> FailureRow | None:
    """Return the row of the error itself, without its causes."""
    if isinstance(error, MemoryError):
        return MEMORY
    if isinstance(error, RuntimeError):
        return THREADS if _comes_from_thread_start(error) else None
    return ROWS.get(error.errno or 0) if isinstance(error, OSError) else None


def _comes_from_thread_start(error: RuntimeError) -> bool:
    """Return whether a thread could not be started.

    CPython raises a bare `RuntimeError` for that. So the frame that raised it decides: it is `Thread.start`
    of a thread that has no identity, because it never ran.
    """
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    if not frames or frames[-1].f_code is not threading.Thread.start.__code__:
        return False
    return frames[-1].f_locals["self"].ident is None


def resource_failure(error: BaseException) -> ServiceError | None:
    """Return the error to answer with if memory, threads or descriptors ran out, None for other failures.

    The causes of the error count too.
    """
    row = next((row for each in _chain(error) if (row := row_of(each)) in PROCESS_ROWS), None)
    return _error(row, "") if row else None


def failure(error: OSError, place: str, folder: Path | None = None) -> ServiceError | None:
    """Return the error to answer with if `place` failed, None if the table has no row for the failure.

    `folder` on the disk tells whether bytes or inodes are used up.
    """
    row = row_of(error)
    if row is FULL and folder is not None and has_no_inodes(folder):
        row = INODES
    return _error(row, place) if row else None


def _error(row: FailureRow, place: str) -> ServiceError:
    error = row.error(row.advice.format(place=place))
    error.failure_name = row.name
    return error


def has_no_inodes(folder: Path) -> bool:
    """Return whether a file system that limits its inodes has none left."""
    try:
        status = os.statvfs(folder)
    except OSError:  # unknown
        return False
    return status.f_files > 0 and status.f_favail == 0


def _chain(error: BaseException) -> Iterator[BaseException]:
    each: BaseException | None = error
    for _ in range(MAX_CAUSES):
        if each is None:
            return
        yield each
        each = each.__cause__ or each.__context__
