"""Ends the live captures of synchronous code whose block is not left when the process ends.

That is after all threads but the daemons have ended, for they may still write, and before the clients of the
captures are closed.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

from overspill.execution.waiting import wait_blocking
from overspill.live.live_capture import CANCELLED_SECONDS

if TYPE_CHECKING:
    from overspill.execution.waiting import Reply

_STATUS: Final = "its process ended"

log: Final = logging.getLogger("overspill")


class Unfinished(Protocol):
    """A live capture that has begun."""

    @property
    def id(self) -> str:
        """The handle."""

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""

    @property
    def is_stored(self) -> bool:
        """Whether all that was written is in the service, or in the spool."""

    def give_up(self, status: str) -> Reply[None]:
        """Begin to end it as partial, within a few seconds. Raises `RuntimeError` if its client is closed."""


_all: Final[weakref.WeakSet[Unfinished]] = weakref.WeakSet()
_hook: Final = threading.Lock()
"""Taken for good by whoever has registered the hook; a forked child inherits both."""


def end_with_process(capture: Unfinished) -> None:
    """End this capture with the process, unless it has ended before."""
    _all.add(capture)
    if _hook.acquire(blocking=False):  # only now: what closes its client is registered, and called after this
        atexit.register(_end_all)


def _end_all() -> None:
    unfinished = [capture for capture in list(_all) if capture.is_open]
    replies = []
    for capture in unfinished:
        with suppress(RuntimeError):
            replies.append(capture.give_up(_STATUS))
    until = time.monotonic() + CANCELLED_SECONDS
    for reply in replies:
        wait_blocking(reply, max(0.0, until - time.monotonic()))
    for capture in unfinished:
        if not capture.is_stored:
            log.warning("the end of the live capture %s is not stored: its process ended first", capture.id)
