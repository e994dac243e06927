"""Reads the output of a child process, until it has ended."""

from __future__ import annotations

import fcntl
import os
import select
import struct
import termios
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from overspill.execution.left_output import drop_rest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

_READ_BYTES: Final = 256 * 1024
_LITTLE_BYTES: Final = 32 * 1024
_GATHER_SECONDS: Final = 0.002
"""Seconds for which the pipe may fill after a read of few bytes.

Otherwise a program that prints much in small pieces would be read in as many pieces."""
_POLL_MILLISECONDS: Final = 20
"""Milliseconds between two checks whether the command has ended, on systems without a pidfd."""


def drain(child: subprocess.Popen[bytes], reader: int, take: Callable[[bytes], None]) -> int:
    """Read until the command has ended and all its output is read. Return the exit code of `Popen`.

    Processes that it leaves behind may hold the pipe for as long as they like.
    """
    read_until_end(child, reader, take)
    leave(reader, take)
    return child.wait()


def read_until_end(
    child: subprocess.Popen[bytes], reader: int, take: Callable[[bytes], None], seconds: float | None = None
) -> bool:
    """Read until the command has ended, for at most `seconds`. Return whether it has ended.

    Do not wait for a command that closes its output.
    """
    until = None if seconds is None else time.monotonic() + seconds
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    is_open = True
    with _end_descriptor(child) as ended:
        if ended is not None:
            poll.register(ended, select.POLLIN)
        while is_open and child.returncode is None:
            left = None if until is None else max(0.0, until - time.monotonic()) * 1000
            if left == 0:
                return False
            ready = {descriptor for descriptor, _ in poll.poll(_pause(left, is_told=ended is not None))}
            if reader in ready:
                data = os.read(reader, _READ_BYTES)
                is_open = bool(data)
                if data:
                    take(data)
                if 0 < len(data) < _LITTLE_BYTES:
                    time.sleep(_GATHER_SECONDS)
            if ended is None or ended in ready:
                child.poll()
    return True


def leave(reader: int, take: Callable[[bytes], None]) -> None:
    """Read the bytes in the pipe now. Processes left behind may write on, and their output is dropped."""
    left = struct.unpack("i", fcntl.ioctl(reader, termios.FIONREAD, b"\0" * 4))[0]
    while left > 0:
        data = os.read(reader, left)
        take(data)
        left -= len(data)
    drop_rest(reader)


def _pause(left: float | None, *, is_told: bool) -> float | None:
    """Return the milliseconds to wait for an event, or None for any time. `is_told`: the end is an event."""
    if is_told:
        return left
    return _POLL_MILLISECONDS if left is None else min(left, _POLL_MILLISECONDS)


@contextmanager
def _end_descriptor(child: subprocess.Popen[bytes]) -> Iterator[int | None]:
    """Give a descriptor that becomes readable when the child ends, or None on systems without one."""
    try:
        descriptor = os.pidfd_open(child.pid)
    except (AttributeError, OSError):
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)
