"""The signals that ask a command to end while it stores something. The first asks, the second ends it."""

from __future__ import annotations

import os
import select
import signal
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, Self

from overspill.cli.signal_handlers import handled
from overspill.execution.child_programs import shell_exit_code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

_ASKING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LOOK_SECONDS: Final = 0.1


class StoppedAtOnce(KeyboardInterrupt):
    """A second signal came: what is not stored yet is given up."""


class StopSignals:
    """Takes these signals in a `with` block of the main thread. Those that are ignored stay ignored.

    The first one calls `first`, which may raise. Each after it raises `StoppedAtOnce`, wherever the main
    thread is.
    """

    def __init__(self, first: Callable[[], object]) -> None:
        self.number: signal.Signals | None = None
        """The first one that came."""
        self.first: Callable[[], object] = first

    def __enter__(self) -> Self:
        self._news, self._writer = os.pipe()
        os.set_blocking(self._news, False)
        os.set_blocking(self._writer, False)
        self._woken_before = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        taken = [number for number in _ASKING if signal.getsignal(number) is not signal.SIG_IGN]
        self._before = {number: signal.signal(number, self._take) for number in taken}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._woken_before)
        os.close(self._news)
        os.close(self._writer)

    @property
    def name(self) -> str:
        """The name of the first one, as SIGTERM."""
        return "" if self.number is None else self.number.name

    @property
    def code(self) -> int:
        """The exit code of a command that such a signal ended."""
        return shell_exit_code(-(self.number or 0))

    def wait_for_input(self, descriptor: int) -> bool:
        """Wait until `descriptor` can be read, and return True. Once a signal came, do not wait for it."""
        while self.number is None:
            ready, _, _ = select.select([descriptor, self._news], [], [])
            if descriptor in ready:
                return True
            with suppress(BlockingIOError):
                os.read(self._news, 64)
        return bool(select.select([descriptor], [], [], 0)[0])

    @contextmanager
    def deliverable(self) -> Iterator[None]:
        """Let the signals reach the main thread in the block, although it sleeps.

        If several come at once, the system may give all of them to another thread, and wake only that one.
        """
        with handled({signal.SIGALRM: _wake}):
            signal.setitimer(signal.ITIMER_REAL, _LOOK_SECONDS, _LOOK_SECONDS)
            try:
                yield
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)

    def _take(self, number: int, _: FrameType | None) -> None:
        if self.number is not None:
            raise StoppedAtOnce
        self.number = signal.Signals(number)
        self.first()


def _wake(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: it is enough that the main thread looks for signals."""
