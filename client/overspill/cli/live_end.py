"""The end of a live capture that a command stores: what it waits for, and what signals leave of it."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from overspill.cli import output
from overspill.cli.exit_codes import CommandFailure
from overspill.cli.stop_signals import StoppedAtOnce, StopSignals
from overspill.errors import OverspillError
from overspill.errors.client_errors import NotSpooled
from overspill.text.quantities import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from overspill.live.sync_capture import SyncLiveCapture

_HURRIED_SECONDS: Final = 2.0
"""How long the service may still take something once a signal has asked for the end."""
_QUIET_SECONDS: Final = 1.0
_WAITS: Final = "waiting for the service to take the rest"
_KEPT_THEN: Final = "; after a minute without it, or soon after Ctrl-C, that is kept on this machine"


@contextmanager
def note_if_slow(signals: StopSignals, *, has_spool: bool) -> Iterator[None]:
    """Say so if the block takes long, and with a spool that what the service does not take goes there."""

    def say() -> None:
        if signals.number is None:
            output.say(_WAITS + (_KEPT_THEN if has_spool else ""))

    timer = threading.Timer(_QUIET_SECONDS, say)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def hurrying_signals(hurry: Callable[[float], object]) -> StopSignals:
    """Return signals of which the first gives the service 2 seconds to take the rest."""
    return StopSignals(partial(hurry, _HURRIED_SECONDS))


@contextmanager
def handling_signals(
    signals: StopSignals, leave: Callable[[], object], failure: Callable[[], CommandFailure]
) -> Iterator[None]:
    """Take the signals in the block. The second one ends it at once: `leave` is called, `failure` raised."""
    try:
        with signals:
            yield
    except StoppedAtOnce:
        leave()
        raise failure() from None


@contextmanager
def ended_by_signals(capture: SyncLiveCapture, leave: Callable[[], object]) -> Iterator[StopSignals]:
    """Within the block, the first signal that asks for the end gives the service 2 seconds to take the rest.

    What it has not taken then goes to the spool, if there is one. The second signal calls `leave`, and ends
    the block at once. After a signal, raises `CommandFailure`, which says what is stored.
    """

    def failure(detail: str = "") -> CommandFailure:
        return CommandFailure(unstored(capture.id, capture.accepted) + detail, signals.code)

    signals = hurrying_signals(capture.hurry)
    with handling_signals(signals, leave, failure):
        try:
            yield signals
        except (OverspillError, NotSpooled, OSError) as error:
            if signals.number is None:
                raise
            raise failure(f": {error}") from None
    if signals.number is not None:
        raise CommandFailure(f"ended by {signals.name}; {_outcome(capture)}", signals.code)


def unstored(handle: str, accepted: int) -> str:
    """Return what is stored under a handle of which the service says to have so many bytes."""
    if not handle:
        return "nothing of it is stored"
    if not accepted:
        return f"the rest is NOT stored: {handle} has nothing, or a beginning that was not confirmed"
    return f"the rest is NOT stored: {handle} has at least the first {plural(accepted, 'byte')}"


def _outcome(capture: SyncLiveCapture) -> str:
    if capture.spooled:
        return f"{capture.id} is on this machine only, until it is uploaded: {capture.spooled}"
    if capture.entry is None:
        return unstored(capture.id, capture.accepted)
    return f"{capture.id} has all that came until then"
