"""Logs what changes about a service: one line for each change, not one for each output.

A warning says that outputs are being spooled, or lost, and why. An info line says that the service takes them
again. No line has anything of an output. The logger is `overspill.state`, so a program can silence it alone.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Final

from overspill.execution import forks
from overspill.wire import Outcome

if TYPE_CHECKING:
    from pathlib import Path

    from overspill.previews.notice_facts import Kept

log: Final = logging.getLogger("overspill.state")


class _States:
    """Where the last output for each service went, in this process."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], Outcome] = {}
        self.reset_after_fork()
        forks.register(self)

    def reset_after_fork(self) -> None:
        self._lock = threading.RLock()
        self._overfull_until = 0.0

    def replaced(self, key: tuple[str, str], outcome: Outcome) -> Outcome:
        """Remember the outcome; return the one before it."""
        with self._lock:
            before = self._last.pop(key, Outcome.CAPTURED)
            if outcome is not Outcome.CAPTURED:  # so keys that come and go leave nothing
                self._last[key] = outcome
        return before

    def is_news(self, seconds: float) -> bool:
        """Return whether the last warning about missing slots is `seconds` old, and note a new one."""
        with self._lock:
            now = time.monotonic()
            is_news = now >= self._overfull_until
            if is_news:
                self._overfull_until = now + seconds
            return is_news


_states: Final = _States()
_QUIET_SECONDS: Final = 60.0


def note(url: str, kept: Kept, spool: Path | None) -> None:
    """Log what became of an output for the service at `url`, if it differs from the output before.

    `spool` is the folder in which outputs wait.
    """
    if not kept.reason and kept.outcome is not Outcome.CAPTURED:
        return  # the policy sends it there, so nothing is wrong
    before = _states.replaced((url, str(spool)), kept.outcome)
    if before is kept.outcome:
        return
    if kept.outcome is Outcome.SPOOLED:
        log.warning("outputs are being spooled in %s, until the service takes them: %s", spool, kept.reason)
    elif kept.outcome is Outcome.TRUNCATED:
        log.warning("outputs are being cut and NOT stored: %s", kept.reason)
    else:
        log.info("the service at %s takes outputs again", url)


def note_overfull(why: str) -> None:
    """Log that outputs get no slot, once a minute at most."""
    if _states.is_news(_QUIET_SECONDS):
        log.warning("more outputs come than the service takes, so some do not wait for it: %s", why)
