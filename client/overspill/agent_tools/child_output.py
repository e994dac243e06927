"""Reads what a child process prints, until it has ended."""

from __future__ import annotations

import fcntl
import os
import select
import struct
import subprocess
import termios
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_READ_BYTES: Final = 256 * 1024
_LITTLE_BYTES: Final = 32 * 1024
_GATHER_SECONDS: Final = 0.002
"""How long the pipe may fill after a read of few bytes: otherwise a program that prints much in small pieces
would be read in as many pieces."""
_POLL_MILLISECONDS: Final = 20
"""Milliseconds between two checks whether the command has ended, on systems without a pidfd."""
_DRAIN: Final = "cat"
"""Reads on and drops it. Not Python: `sys.executable` is the agent itself in a program that was frozen."""
_drains: Final[list[subprocess.Popen[bytes]]] = []
"""The processes that drop what is left behind. Those that have ended are waited for when one is started."""


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

    A command that closes its output is not waited for.
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
    """Take what is in the pipe now. What the command has left behind may write on, and nobody keeps it."""
    left = struct.unpack("i", fcntl.ioctl(reader, termios.FIONREAD, b"\0" * 4))[0]
    while left > 0:
        data = os.read(reader, left)
        take(data)
        left -= len(data)
    drop_rest(reader)


def drop_rest(reader: int) -> None:
    """Let what still writes to a pipe or a terminal write on: nobody keeps it."""
    poll = select.poll()
    poll.register(reader, 0)
    if not poll.poll(0):  # one without writers reports a hang-up, asked or not
        _start_drain(reader)


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


def _start_drain(reader: int) -> None:
    """Start a process that reads until the pipe ends and drops what it reads.

    Without a reader the system kills what the command left behind, as soon as that prints something.
    """
    _drains[:] = [each for each in _drains if each.poll() is None]
    with suppress(OSError):
        drain = subprocess.Popen(  # noqa: S603  (no word of it is given)
            [_DRAIN],
            stdin=reader,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        _drains.append(drain)
