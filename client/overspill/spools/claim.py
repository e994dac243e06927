"""Decides whether an attempt to write an output succeeds or is given up, when both happen at once."""

from __future__ import annotations

import threading


class Claim:
    """Belongs to the first that takes it: the attempt just before it publishes, or the waiter that gives up.

    So an output that was given up is never found on the disk afterwards, and an output on the disk is never
    given up.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Take the claim. Return False if somebody else has it."""
        return self._lock.acquire(blocking=False)
