"""A directory that nobody but its owner can change, and locks among processes."""

from __future__ import annotations

import errno
import itertools
import os
import stat
import threading
import time
import weakref
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Final, Self

from overspill.errors.client_errors import NotSpooled
from overspill.execution import forks
from overspill.execution.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOCK_TIMEOUT_SECONDS: Final = 2.0
"""Seconds that a change waits for other threads and processes, unless the caller gives another time."""
_BUSY: Final = "others keep the local spool busy"
_BACKOFF: Final = Backoff(first=0.0005, longest=0.02)


class _Own:
    """A lock for each lock file, for the threads of this process: only processes have to poll."""

    def __init__(self) -> None:
        self.reset_after_fork()
        forks.register(self)

    def reset_after_fork(self) -> None:
        self._locks: weakref.WeakValueDictionary[Path, threading.Lock] = weakref.WeakValueDictionary()
        """The locks that somebody holds or waits for."""

    def lock(self, path: Path) -> threading.Lock:
        return self._locks.setdefault(path, threading.Lock())


_own: Final = _Own()


class LockedFile:
    """An open file that nobody else can lock until it is closed.

    A forked child closes its copy at once: that would hold the lock and disk space.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        forks.register(self)

    @classmethod
    def of(cls, file: IO[bytes]) -> Self | None:
        """Lock an unbuffered file. If somebody else has it locked, close it and return None."""
        locked = cls(file)
        if lock(file.fileno()):
            return locked
        file.close()
        return None

    def __enter__(self) -> IO[bytes]:
        return self.file

    def __exit__(self, *_: object) -> None:
        self.close()

    def reset_after_fork(self) -> None:
        """Close the copy of the descriptor in a forked child. The parent keeps the lock."""
        self.file.close()

    def close(self) -> None:
        """Release the lock and close the file. Does nothing the second time."""
        if not self.file.closed:
            lock(self.file.fileno(), shut=False)  # a process started meanwhile may have the file too
        self.file.close()


class Busy(NotSpooled):
    """Other threads or processes held a lock for longer than the caller waits."""


def exists(path: Path) -> bool:
    """Return whether a directory is there. Raises `NotSpooled` if other users could change its files."""
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise NotSpooled(disk_reason(error)) from error
    _check(path, found)
    return True


def is_directory(path: Path) -> bool:
    """Return whether there is a directory, and not a symbolic link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def _check(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISDIR(found.st_mode):
        kind = "a symbolic link" if stat.S_ISLNK(found.st_mode) else "no directory"
        raise NotSpooled(f"the local spool {path} is {kind}: name a directory with OVERSPILL_SPOOL")
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        raise NotSpooled(f"the local spool {path} belongs to another user: name another with OVERSPILL_SPOOL")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise NotSpooled(f"other users can write to the local spool {path}: chmod 700 makes it safe")


@contextmanager
def locked(
    path: Path, lock_timeout: float = LOCK_TIMEOUT_SECONDS, *, may_create: bool = True
) -> Iterator[int]:
    """Lock a file against all threads and processes for the block, which gets its descriptor.

    Raises `Busy` if others hold the lock for more than `lock_timeout` seconds, and `OSError`;
    `FileNotFoundError` if there is no file and `may_create` is false.
    """
    until = time.monotonic() + lock_timeout
    own = _own.lock(path)
    if not own.acquire(timeout=max(0.0, lock_timeout)):
        raise Busy(_BUSY)
    try:
        with _locked_file(path, until, os.O_CREAT if may_create else 0) as descriptor:
            yield descriptor
    finally:
        own.release()


@contextmanager
def _locked_file(path: Path, until: float, create: int) -> Iterator[int]:
    flags = os.O_RDWR | create | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    with LockedFile(os.fdopen(os.open(path, flags, 0o600), "r+b", buffering=0)) as file:
        _wait_for(file.fileno(), until)
        yield file.fileno()


def _wait_for(descriptor: int, until: float) -> None:
    """Ask again and again: no system call waits for a lock for a limited time."""
    for failures in itertools.count():
        if lock(descriptor):
            return
        if time.monotonic() > until:
            raise Busy(_BUSY)
        time.sleep(_BACKOFF.pause(failures))


def lock(descriptor: int, *, shut: bool = True) -> bool:
    """Lock an open file, or unlock it with `shut=False`. Return False if somebody else has it locked.

    The lock ends with the process at the latest. Raises `NotSpooled` if the system has no such locks.
    """
    try:
        import fcntl  # noqa: PLC0415  (not on every system)
    except ImportError:
        raise NotSpooled("this system cannot lock files, which the local spool needs") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB if shut else fcntl.LOCK_UN)
    except BlockingIOError:
        return False
    return True


def disk_reason(error: OSError) -> str:
    """Say why the spool's disk failed, in words for a notice."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "the disk of the local spool is full"
    where = f" {error.filename}:" if isinstance(error.filename, (str, os.PathLike)) else ""
    return f"the local spool cannot be used:{where} {error.strerror or error}"
