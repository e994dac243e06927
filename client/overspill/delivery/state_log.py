"""Logs what changes about a service: one line for each change, not one for each output or key.

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

    from overspill.previews.notice_facts import StoreResult

log: Final = logging.getLogger("overspill.state")

_QUIET_SECONDS: Final = 60.0
_MAX_KEYS: Final = 1_000
"""Keys of one service that are remembered, so that keys which come and go take no memory."""


class _States:
    """The spools of this process whose outputs do not reach their service, by the service's URL."""

    def __init__(self) -> None:
        self.failing: dict[str, dict[str, Outcome]] = {}
        self.reset_after_fork()
        forks.register(self)

    def reset_after_fork(self) -> None:
        self._lock = threading.RLock()
        self._overfull_until = 0.0

    def is_first(self, url: str, spool: str, outcome: Outcome) -> bool:
        """Note where an output went instead. Return whether it is the first of its service to go there."""
        with self._lock:
            of_url = self.failing.setdefault(url, {})
            is_first = outcome not in of_url.values()
            if len(of_url) >= _MAX_KEYS and spool not in of_url:
                del of_url[next(iter(of_url))]
            of_url[spool] = outcome
            return is_first

    def has_ended(self, url: str, spool: str) -> bool:
        """Note that the service took an output. Return whether outputs of this spool went elsewhere before.

        Then the service is taken to work for all its keys, until one of them says otherwise.
        """
        if url not in self.failing:
            return False
        with self._lock:
            if spool not in self.failing.get(url, ()):
                return False
            del self.failing[url]
            return True

    def is_news(self, seconds: float) -> bool:
        """Return whether the last warning about missing slots is `seconds` old, and note a new one."""
        with self._lock:
            now = time.monotonic()
            is_news = now >= self._overfull_until
            if is_news:
                self._overfull_until = now + seconds
            return is_news


_states: Final = _States()


def note(url: str, result: StoreResult, spool: Path | None) -> None:
    """Log what became of an output for the service at `url`, if that is news.

    `spool` is the folder in which the outputs of one key wait. What fails for many keys is said once.
    """
    if result.outcome is Outcome.CAPTURED:
        if _states.has_ended(url, str(spool)):
            log.info("the service at %s takes outputs again", url)
        return
    if not result.reason or not _states.is_first(url, str(spool), result.outcome):
        return  # the policy sends it there, so nothing is wrong; or it was said
    if result.outcome is Outcome.SPOOLED:
        log.warning("outputs are being spooled in %s, until the service takes them: %s", spool, result.reason)
    else:
        log.warning("outputs are being cut and NOT stored: %s", result.reason)


def note_overfull(reason: str) -> None:
    """Log that outputs get no slot, once a minute at most."""
    if _states.is_news(_QUIET_SECONDS):
        log.warning("more outputs come than the service takes, so some do not wait for it: %s", reason)
