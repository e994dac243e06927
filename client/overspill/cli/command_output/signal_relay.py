"""Passes the signals that would end this process on to the command that it runs."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

from overspill.cli.signal_handlers import handled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import FrameType

FROM_TERMINAL: Final = frozenset({signal.SIGINT, signal.SIGQUIT})
"""The signals of a terminal's keys."""
_PASSED_ON: Final = (*FROM_TERMINAL, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


class _Child(Protocol):
    """A process that signals are passed on to."""

    @property
    def pid(self) -> int: ...

    def send_signal(self, number: int, /) -> None:
        """Send it a signal by its number."""


class SignalRelay:
    """Passes signals on to a child, including those that came before it started.

    One that comes after its end goes to the handler that there was before: it is for what happens next.
    """

    def __init__(self, is_known: Callable[[int], bool], before: Mapping[signal.Signals, Any]) -> None:
        self._is_known, self._before = is_known, before
        self._child: _Child | None = None
        self._early: list[int] = []

    def take(self, number: int, frame: FrameType | None) -> None:
        """Pass a signal on: this is the handler."""
        if self._child is None:
            self._early.append(number)
        elif self._is_known(number):
            return
        elif not _has_ended(self._child.pid):
            self._child.send_signal(number)
        elif callable(handler := self._before[signal.Signals(number)]):
            handler(number, frame)

    def connect(self, child: _Child) -> None:
        """Set the child. It gets the signals that came until now."""
        self._child = child
        for number in self._early:
            child.send_signal(number)


@contextmanager
def signals_relayed(is_known: Callable[[int], bool] = lambda _: False) -> Iterator[SignalRelay]:
    """Send signals that would end this process to the relay during the block. Ignored ones stay ignored.

    `is_known` says of a signal's number whether the child gets that signal from somebody else as well.
    """
    before = {number: signal.getsignal(number) for number in _PASSED_ON}
    relay = SignalRelay(is_known, before)
    relayed = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    with handled(dict.fromkeys(relayed, relay.take)):
        yield relay


def _has_ended(process: int) -> bool:
    """Return whether a child has ended, without taking its exit code from those who wait for it."""
    try:
        return os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # somebody has its exit code already
        return True
    except AttributeError:  # macOS before Python 3.13
        return False
