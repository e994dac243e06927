"""Who has the last word on one attempt to keep an output: the attempt, or whoever waits for it."""

from __future__ import annotations

import threading


class Claim:
    """Goes to whoever takes it first: the attempt just before it publishes, the waiter when it gives up.

    So an output that was given up is never found on the disk afterwards, and one that is on the disk is
    never given up.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Return whether nobody else has it."""
        return self._lock.acquire(blocking=False)
