"""Shares the background work of this process: one `Background` for each service and key."""

from __future__ import annotations

import threading
from collections import Counter, deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from overspill.delivery.background import Background, JobThread
from overspill.execution import forks

if TYPE_CHECKING:
    from overspill.transfer.address import Address


class Backgrounds:
    """All background work of this process, with the number of its users."""

    def __init__(self) -> None:
        self.of_addresses: dict[Address, Background] = {}
        self.users: Counter[Address] = Counter()
        self._job_threads: dict[str, JobThread] = {}
        self._abandoned: deque[Background] = deque()
        self.reset_after_fork()
        forks.register(self)

    def reset_after_fork(self) -> None:
        """Use a new lock in a forked child."""
        self._lock = threading.RLock()

    def acquire(self, address: Address) -> Background:
        """Return the background work for a service and a key. `release` it afterwards."""
        with self._lock:
            if address not in self.of_addresses:
                job_thread = self._job_threads.setdefault(address.url, JobThread())
                self.of_addresses[address] = Background(address, job_thread)
            self.users[address] += 1
            background = self.of_addresses[address]
        self._release_abandoned()
        return background

    def release(self, background: Background) -> bool:
        """Close the background work if nobody else needs it. Return whether nobody does."""
        address = background.address
        with self._lock:
            self.users[address] -= 1
            is_needed = self.users[address] > 0
            if not is_needed:
                self.of_addresses.pop(address, None)
                del self.users[address]
                if not any(each.url == address.url for each in self.of_addresses):
                    self._job_threads.pop(address.url, None)
        if not is_needed:
            background.close()
        return not is_needed

    def abandon(self, background: Background) -> None:
        """Release it soon, without taking a lock: the garbage collector may call this at any moment."""
        self._abandoned.append(background)

    def _release_abandoned(self) -> None:
        with suppress(IndexError):
            while True:
                self.release(self._abandoned.popleft())


backgrounds: Final = Backgrounds()
