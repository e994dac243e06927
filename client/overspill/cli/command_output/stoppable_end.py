"""The end of a command's output: signals may cut the storing of the rest short."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from overspill import wire
from overspill.cli.exit_codes import CommandFailure
from overspill.cli.live_end import handling_signals, hurrying_signals, unstored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from overspill.agent_tools.live_upload import LiveUpload
    from overspill.cli.stop_signals import StopSignals
    from overspill.guard.guarded import Guarded


@contextmanager
def stoppable_end(upload: LiveUpload) -> Iterator[StoppableEnd]:
    """Take signals in the block, except while the command gets them.

    After the first one the output is stored without the service: in the spool. A second one ends that too:
    the block then raises `CommandFailure`, which says what is stored.
    """
    signals = hurrying_signals(upload.hurry)
    end = StoppableEnd(upload, signals)
    with handling_signals(signals, upload.leave, end.failure):
        yield end


class StoppableEnd:
    """Stores an output when its command has ended, and knows how much is stored if signals come."""

    def __init__(self, upload: LiveUpload, signals: StopSignals) -> None:
        self._upload, self._signals = upload, signals
        self._guarded: Guarded | None = None
        self._is_all_stored = False

    def upload_ended(self, *, status: str, exit_code: int) -> wire.Entry | None:
        """Return what `LiveUpload.ended` returns. After a signal the service has 2 seconds for the rest."""
        with self._signals.deliverable():
            return self._upload.ended(status=status, exit_code=exit_code)

    def stored(self, store: Callable[[], Guarded], keep: Callable[[], Guarded]) -> Guarded:
        """Return what `store` returns; after a signal what `keep` returns, which does not ask the service.

        A signal that comes later lets `store` end: it asks no longer than the policy allows.
        """
        with self._signals.deliverable():
            guarded = self._guarded = store() if self._signals.number is None else keep()
            self._is_all_stored = True
        return guarded

    def is_printed(self) -> None:
        """Say that nothing is left to be stored: a signal now ends the command line."""
        self._is_all_stored = True
        self._signals.first = self.raise_if_stopped

    def raise_if_stopped(self) -> None:
        """Raise `CommandFailure` if a signal has come."""
        if self._signals.number is not None:
            raise self.failure()

    def failure(self) -> CommandFailure:
        """Return the error that says what is stored."""
        message = f"ended by {self._signals.name}"
        if not self._is_all_stored:
            message = unstored(*self._upload.accepted)
        elif self._guarded is not None and self._guarded.outcome is wire.Outcome.TRUNCATED:
            message += f"; {unstored(*self._upload.accepted)}"
        return CommandFailure(message, self._signals.code)
