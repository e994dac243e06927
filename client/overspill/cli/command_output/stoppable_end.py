"""The end of a command's output: what signals cut short while the rest is stored, and what they leave."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Self

from overspill import wire
from overspill.cli.exit_codes import CommandFailure
from overspill.cli.live_end import HURRIED_SECONDS, unstored
from overspill.cli.stop_signals import StoppedAtOnce, StopSignals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from overspill.guard.guarded import Guarded
    from overspill.live.upload import LiveUpload


class StoppableEnd:
    """Takes signals in a `with` block, except while the command gets them.

    After the first one the output is stored without the service: in the spool. A second one ends that too:
    what runs then raises `CommandFailure`, which says what is stored.
    """

    def __init__(self, upload: LiveUpload) -> None:
        self._upload = upload
        self._signals = StopSignals(partial(upload.hurry, HURRIED_SECONDS))

    def __enter__(self) -> Self:
        self._signals.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._signals.__exit__()

    def upload_ended(self, *, status: str, exit_code: int) -> wire.Entry | None:
        """Return what `LiveUpload.ended` returns. After a signal the service has 2 seconds for the rest."""
        with self._given_up():
            return self._upload.ended(status=status, exit_code=exit_code)

    def stored(self, store: Callable[[], Guarded], keep: Callable[[], Guarded]) -> Guarded:
        """Return what `store` returns; after a signal what `keep` returns, which does not ask the service.

        A signal that comes later lets `store` end: it asks no longer than the policy allows.
        """
        with self._given_up():
            return store() if self._signals.number is None else keep()

    def is_printed(self) -> None:
        """Say that nothing is left to be stored: a signal now ends the command line."""
        self._signals.first = self._interrupted

    def raise_if_stopped(self, guarded: Guarded | None) -> None:
        """Raise `CommandFailure` if a signal has come. `guarded` is what became of a long output."""
        if self._signals.number is None:
            return
        what = f"ended by {self._signals.name}"
        if guarded is not None and guarded.outcome is wire.Outcome.TRUNCATED:
            what += f"; {unstored(*self._upload.accepted)}"
        raise CommandFailure(what, self._signals.code)

    @contextmanager
    def _given_up(self) -> Iterator[None]:
        """Raise `CommandFailure` if a second signal ends the block."""
        try:
            with self._signals.heeded():
                yield
        except StoppedAtOnce:
            self._upload.leave()
            raise CommandFailure(unstored(*self._upload.accepted), self._signals.code) from None

    def _interrupted(self) -> None:
        raise CommandFailure(f"ended by {self._signals.name}", self._signals.code)
