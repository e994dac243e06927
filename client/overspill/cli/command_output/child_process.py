"""Runs a command as a child process: passes on its output and its signals, and returns its exit code."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import termios
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

NOT_FOUND: Final = 127
NOT_EXECUTABLE: Final = 126
_SIGNAL_BASE: Final = 128
_READ_BYTES: Final = 64 * 1024
_POLL_MILLISECONDS: Final = 20
"""Milliseconds between two checks whether the command has ended, on systems without a pidfd."""
_FROM_TERMINAL: Final = {signal.SIGINT, signal.SIGQUIT}
_PASSED_ON: Final = (*_FROM_TERMINAL, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_DRAIN_SCRIPT: Final = "import os\nwhile os.read(0, 65536):\n    pass"


class CommandNotStarted(Exception):
    """The command could not be started. `code` is the exit code that a shell would give."""

    def __init__(self, command: str, error: OSError) -> None:
        super().__init__(f"{command}: {error.strerror or error}")
        self.code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE


def run_command(words: Sequence[str], take: Callable[[bytes], None]) -> int:
    """Run `words` and return the exit code, 128 + n for signal n. The command inherits all open files.

    `take` gets what the command prints on either output, in the order of writing; it must not raise.
    Signals to this process go on to the command, which decides what becomes of them; those that are ignored
    stay ignored, as in a shell. Raises `CommandNotStarted`.
    """
    reader, writer = os.pipe()
    try:
        with _signals_relayed() as relay:
            try:
                child = subprocess.Popen(words, stdout=writer, stderr=writer, close_fds=False)  # noqa: S603  (as asked)
            except OSError as error:
                raise CommandNotStarted(words[0], error) from error
            finally:
                os.close(writer)
            relay.connect(child)
            code = _drain(child, reader, take)
    finally:
        os.close(reader)
    return code if code >= 0 else _SIGNAL_BASE - code


def _drain(child: subprocess.Popen[bytes], reader: int, take: Callable[[bytes], None]) -> int:
    """Read until the command has ended and all its output is read. Return the exit code of `Popen`.

    Processes that it leaves behind may hold the pipe for as long as they like.
    """
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    is_open = True
    with _end_descriptor(child) as ended:
        if ended is not None:
            poll.register(ended, select.POLLIN)
        while is_open and child.returncode is None:
            ready = {
                descriptor for descriptor, _ in poll.poll(None if ended is not None else _POLL_MILLISECONDS)
            }
            if reader in ready:
                is_open = _read(reader, _READ_BYTES, take)
            if ended is None or ended in ready:
                child.poll()
    if is_open and _read_rest(reader, take):
        _start_drain(reader)
    return child.wait()


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


def _read(reader: int, size: int, take: Callable[[bytes], None]) -> bool:
    """Take up to `size` bytes. Return whether the pipe goes on."""
    data = os.read(reader, size)
    if data:
        take(data)
    return bool(data)


def _read_rest(reader: int, take: Callable[[bytes], None]) -> bool:
    """Take what is in the pipe now. Return whether somebody can still write into it."""
    left = struct.unpack("i", fcntl.ioctl(reader, termios.FIONREAD, b"\0" * 4))[0]
    while left > 0:
        data = os.read(reader, left)
        take(data)
        left -= len(data)
    poll = select.poll()
    poll.register(reader, 0)
    return not poll.poll(0)  # a pipe without writers reports a hang-up, asked or not


def _start_drain(reader: int) -> None:
    """Start a process that reads until the pipe ends and drops what it reads.

    Without a reader the system kills what the command left behind, as soon as that prints something.
    """
    with suppress(OSError):
        subprocess.Popen(  # noqa: S603  (this very interpreter)
            [sys.executable, "-I", "-S", "-c", _DRAIN_SCRIPT],
            stdin=reader,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )


class _Relay:
    """Passes signals on to a child, including those that came before it started."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []

    def take(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002  (as handlers are called)
        if self._child is None:
            self._early.append(number)
        elif not (number in _FROM_TERMINAL and _is_foreground()):
            self._child.send_signal(number)
        # else the terminal has sent it to the child as well

    def connect(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child
        for number in self._early:
            child.send_signal(number)


@contextmanager
def _signals_relayed() -> Iterator[_Relay]:
    """Within the block, signals that would end this process go to the relay. Ignored signals stay ignored."""
    relay = _Relay()
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:  # the system would keep no exit code for us
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    relayed = [number for number in _PASSED_ON if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, relay.take) for number in relayed}
    try:
        yield relay
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_foreground() -> bool:
    """Return whether the terminal sends the signals of its keys to this process and its child."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
