"""The terminal of the person who started this process: its keys, its size, and stopping as they ask for."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import termios
import tty
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self

from overspill.cli.signal_handlers import handled

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


def is_on_terminal() -> bool:
    """Return whether this process has a terminal for its input and its output, and is in its foreground."""
    streams = (sys.stdin, sys.stdout)
    if not all(stream is not None and not stream.closed and stream.isatty() for stream in streams):
        return False
    try:
        return _is_foreground(sys.stdin.fileno())
    except OSError:
        return False


def terminal_size() -> str:
    """Return the columns and rows of the person's terminal, as `80x24`. Raises `OSError` if there is none."""
    size = os.get_terminal_size(sys.stdout.fileno())
    return f"{size.columns}x{size.lines}"


class PersonTerminal:
    """Standard input and output, in a `with` block, beside a `terminal` that is kept at the same size."""

    def __init__(self, terminal: int) -> None:
        self._keys, self._terminal = sys.stdin.fileno(), terminal
        self._before: list[Any] | None = None
        self._is_taken = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._give_back()

    def copy_settings(self, terminal: int) -> None:
        """Give a terminal the settings and the size of the person's."""
        with suppress(termios.error):
            termios.tcsetattr(terminal, termios.TCSANOW, termios.tcgetattr(self._keys))
        _copy_size(terminal)

    def take(self) -> bool:
        """Pass keys on as they are pressed. Return False in the background, True otherwise.

        A terminal that is gone counts as one in the foreground.
        """
        with suppress(OSError):
            if not _is_foreground(self._keys):
                return False
        if not self._is_taken:
            with suppress(termios.error):
                if self._before is None:
                    self._before = termios.tcgetattr(self._keys)
                tty.setraw(self._keys, termios.TCSADRAIN)  # which keeps the keys that are pressed already
            _copy_size(self._terminal)
            self._is_taken = True
        return True

    def stop(self) -> None:
        """Stop this process and its group, as a key does, until it is continued."""
        self._give_back()
        before = signal.signal(signal.SIGTSTP, signal.SIG_IGN)
        os.kill(0, signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, before)
        signal.raise_signal(signal.SIGTSTP)  # to this thread, so it goes on only once it is continued

    def continued(self, *_: int | FrameType | None) -> None:
        """Note that a shell may have changed the terminal: this is the handler of SIGCONT."""
        self._is_taken = False

    def _give_back(self) -> None:
        if self._before is not None and self._is_taken:
            with suppress(termios.error):
                termios.tcsetattr(self._keys, termios.TCSADRAIN, self._before)
        self._before, self._is_taken = None, False


@contextmanager
def shared(terminal: int) -> Iterator[PersonTerminal]:
    """Give the person's terminal, whose new sizes go to `terminal`, and which is taken anew after a stop."""
    person = PersonTerminal(terminal)
    handlers = {signal.SIGWINCH: lambda *_: _copy_size(terminal), signal.SIGCONT: person.continued}
    with handled(handlers), person:
        yield person


def _is_foreground(terminal: int) -> bool:
    return os.tcgetpgrp(terminal) == os.getpgrp()


def _copy_size(terminal: int) -> None:
    with suppress(OSError):
        size = fcntl.ioctl(sys.stdout.fileno(), termios.TIOCGWINSZ, b"\0" * 8)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)
