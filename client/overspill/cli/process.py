"""One command as a child process: its output in a file, its signals, its exit code as a shell reports it."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

NOT_FOUND: Final = 127
NOT_EXECUTABLE: Final = 126
_SIGNALLED: Final = 128
_FROM_TERMINAL: Final = {signal.SIGINT, signal.SIGQUIT}
_PASSED_ON: Final = (*_FROM_TERMINAL, signal.SIGTERM, signal.SIGHUP)


class Unstartable(Exception):
    """The command could not be started; `code` is what a shell would exit with."""

    def __init__(self, command: str, error: OSError) -> None:
        super().__init__(f"{command}: {error.strerror or error}")
        self.code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE


def run_into(file: IO[bytes], command: Sequence[str]) -> int:
    """Run `command` with both its outputs in `file`, in their order; its exit code, 128 + n for signal n.

    Signals to this process go on to the command, which decides what becomes of them. Raises `Unstartable`.
    """
    with _signals_kept() as relay:
        try:
            child = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)  # noqa: S603  (as asked)
        except OSError as error:
            raise Unstartable(command[0], error) from error
        relay.connect(child)
        code = child.wait()
    return code if code >= 0 else _SIGNALLED - code


class _Relay:
    """Passes signals on to a child, those too that came before it was there."""

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
def _signals_kept() -> Iterator[_Relay]:
    """Within the block, signals that would end this process go to the relay; ignored ones stay ignored."""
    relay = _Relay()
    heeded = [number for number in _PASSED_ON if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, relay.take) for number in heeded}
    try:
        yield relay
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_foreground() -> bool:
    """Whether this process and its child are what the terminal's keys signal."""
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
