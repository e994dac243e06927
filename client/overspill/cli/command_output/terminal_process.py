"""Runs a command on a terminal of its own, between the person's terminal and the command.

    keys ──▶ person's terminal (raw) ──▶ pseudo-terminal ──▶ command
    screen ◀──────────────┬──────────── pseudo-terminal ◀── command
                          └──▶ `take`

The keys of signals, as Ctrl-C, go to the command's own terminal, which sends the signal to the right process.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import subprocess
import sys
import termios
import time
import tty
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from overspill.cli.command_output.child_process import CommandNotStarted
from overspill.cli.command_output.signal_relay import signals_relayed
from overspill.execution.child_environment import child_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_READ_BYTES: Final = 64 * 1024
_SIGNAL_BASE: Final = 128
_POLL_SECONDS: Final = 0.1
"""Seconds between two checks whether the command has ended, while what it left behind holds its terminal."""


def is_on_terminal() -> bool:
    """Return whether this process has a terminal for its input and its output, and is in its foreground."""
    streams = (sys.stdin, sys.stdout)
    if not all(stream is not None and not stream.closed and stream.isatty() for stream in streams):
        return False
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:
        return False


def terminal_size() -> str:
    """Return the columns and rows of the person's terminal, as `80x24`. Raises `OSError` if there is none."""
    size = os.get_terminal_size(sys.stdout.fileno())
    return f"{size.columns}x{size.lines}"


def run_on_terminal(
    words: Sequence[str],
    take: Callable[[bytes], None],
    *,
    show: Callable[[bytes], None],
    variables: Mapping[str, str] | None = None,
) -> int:
    r"""Run `words` on a new terminal and return the exit code, 128 + n for signal n.

    `show` gets all that comes from that terminal. `take` gets it as the command wrote it: with `\n` where
    the terminal made `\r\n` of it. Neither may raise. Raises `CommandNotStarted`.
    """
    ours, theirs = os.openpty()
    with _closing(ours), _sizes_copied(ours), signals_relayed() as signals:
        try:
            _copy_settings(theirs)
            child = subprocess.Popen(  # noqa: S603  (as asked)
                words,
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
                close_fds=True,
                start_new_session=True,
                preexec_fn=_take_terminal,  # noqa: PLW1509  (no threads hold locks that it needs)
                env={**child_environment(), **(variables or {})},
            )
        except OSError as error:
            raise CommandNotStarted(words[0], error) from error
        finally:
            os.close(theirs)
        signals.connect(child)
        with _raw(sys.stdin.fileno()):
            _Relay(child, ours, take, show).run()
    code = child.wait()
    return code if code >= 0 else _SIGNAL_BASE - code


def _take_terminal() -> None:
    """In the child, make standard input the terminal of its new session, whose keys become signals."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class _Relay:
    """Carries bytes between the two terminals until the command has ended."""

    def __init__(
        self,
        child: subprocess.Popen[bytes],
        terminal: int,
        take: Callable[[bytes], None],
        show: Callable[[bytes], None],
    ) -> None:
        self._child, self._terminal = child, terminal
        self._take, self._show = LineEnds(take), show
        self._keys: int | None = sys.stdin.fileno()
        self._unsent = b""

    def run(self) -> None:
        while self._pump(None if self._child.poll() is None else 0.0):
            pass
        self._take.end()

    def _pump(self, timeout: float | None) -> bool:
        """Carry what is there. Return False once the command has ended and its output is read."""
        reading = [self._terminal] if self._keys is None else [self._terminal, self._keys]
        writing = [self._terminal] if self._unsent else []
        ready, sendable, _ = select.select(
            reading, writing, [], _POLL_SECONDS if timeout is None else timeout
        )
        if self._keys in ready:
            self._read_keys()
        if sendable:
            self._send_keys()
        if self._terminal in ready:
            return self._read_screen()
        return timeout is None

    def _read_screen(self) -> bool:
        try:
            data = os.read(self._terminal, _READ_BYTES)
        except OSError:  # Linux reports the end of a terminal as an error
            data = b""
        if data:
            self._show(data)
            self._take.feed(data)
        elif self._child.poll() is None:  # it closed its terminal and runs on
            time.sleep(_POLL_SECONDS)
            return True
        return bool(data)

    def _read_keys(self) -> None:
        assert self._keys is not None
        try:
            data = os.read(self._keys, _READ_BYTES)
        except OSError:
            data = b""
        if not data:  # the person's terminal is gone
            self._keys = None
            self._child.send_signal(signal.SIGHUP)
        self._unsent += data

    def _send_keys(self) -> None:
        with suppress(BlockingIOError):
            sent = os.write(self._terminal, self._unsent[:1024])
            self._unsent = self._unsent[sent:]


class LineEnds:
    r"""Gives on what came from a terminal with `\n` for each `\r\n`, in whatever pieces it comes."""

    def __init__(self, take: Callable[[bytes], None]) -> None:
        self._take = take
        self._held = b""

    def feed(self, data: bytes) -> None:
        r"""Take a piece. A `\r` at its end waits for what follows it."""
        data = self._held + data
        self._held = b"\r" if data.endswith(b"\r") else b""
        if data := data.removesuffix(self._held).replace(b"\r\n", b"\n"):
            self._take(data)

    def end(self) -> None:
        """Give on what waits."""
        if self._held:
            self._take(self._held)


def _copy_settings(terminal: int) -> None:
    """Give a terminal the settings and the size of the person's."""
    with suppress(termios.error):
        termios.tcsetattr(terminal, termios.TCSANOW, termios.tcgetattr(sys.stdin.fileno()))
    _copy_size(terminal)


def _copy_size(terminal: int) -> None:
    with suppress(OSError):
        size = fcntl.ioctl(sys.stdout.fileno(), termios.TIOCGWINSZ, b"\0" * 8)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)


@contextmanager
def _raw(terminal: int) -> Iterator[None]:
    """Within the block, keys come as they are pressed, and what is written is shown as it is."""
    try:
        before = termios.tcgetattr(terminal)
    except termios.error:
        yield
        return
    tty.setraw(terminal, termios.TCSADRAIN)  # which keeps the keys that are pressed already
    try:
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)


@contextmanager
def _sizes_copied(terminal: int) -> Iterator[None]:
    """Within the block, a new size of the person's terminal goes to the command's."""
    before = signal.signal(signal.SIGWINCH, lambda *_: _copy_size(terminal))
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)


@contextmanager
def _closing(descriptor: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(descriptor)
