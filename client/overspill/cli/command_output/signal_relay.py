"""Passes the signals that would end this process on to the command that it runs."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from overspill.cli.signal_handlers import handled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

FROM_TERMINAL: Final = frozenset({signal.SIGINT, signal.SIGQUIT})
"""The signals of a terminal's keys."""
_PASSED_ON: Final = (*FROM_TERMINAL, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


class _Child(Protocol):
    def send_signal(self, number: int, /) -> None: ...


class SignalRelay:
    """Passes signals on to a child, including those that came before it started."""

    def __init__(self, is_known: Callable[[int], bool]) -> None:
        self._is_known = is_known
        self._child: _Child | None = None
        self._early: list[int] = []

    def take(self, number: int, _: FrameType | None) -> None:
        """Pass a signal on: this is the handler."""
        if self._child is None:
            self._early.append(number)
        elif not self._is_known(number):
            self._child.send_signal(number)

    def connect(self, child: _Child) -> None:
        """Name the child, which gets the signals that came until now."""
        self._child = child
        for number in self._early:
            child.send_signal(number)


@contextmanager
def signals_relayed(is_known: Callable[[int], bool] = lambda _: False) -> Iterator[SignalRelay]:
    """Send signals that would end this process to the relay during the block. Ignored ones stay ignored.

    `is_known` says of a signal's number whether the child gets that signal from somebody else as well.
    """
    relay = SignalRelay(is_known)
    relayed = [number for number in _PASSED_ON if signal.getsignal(number) is not signal.SIG_IGN]
    with handled(dict.fromkeys(relayed, relay.take)):
        yield relay
