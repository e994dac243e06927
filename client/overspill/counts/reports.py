"""Counts of a guard on their way to the service, whenever the sender goes."""

from __future__ import annotations

import os
import weakref
from itertools import count
from typing import TYPE_CHECKING, Final

from overspill.counts.observations import INTERVAL, LAST_REPORT, SOON, Reporter
from overspill.sync import SyncClient

if TYPE_CHECKING:
    from overspill.counts.tally import Tally
    from overspill.sender import Job
    from overspill.storage import Storage

_numbers: Final = count(1)


class Reports:
    """Starts with the first output that is counted, in each process; without a client nothing is sent."""

    def __init__(self, storage: Storage, tally: Tally) -> None:
        self._storage = storage
        self._reporter = Reporter(tally)
        self._name = f"counts {next(_numbers)}"
        self._process = 0

    def start(self) -> None:
        """See that the sender comes; costs next to nothing where it does."""
        if self._process == os.getpid():
            return
        self._process = os.getpid()
        sender = self._storage.sender
        if sender is not None:
            sender.register(self._name, _job(weakref.ref(self._reporter)))
            sender.wake(self._name, after=INTERVAL)

    def hurry(self) -> None:
        """An output has spilled: there is a connection anyway."""
        sender = self._storage.sender
        if sender is not None:
            sender.wake(self._name, after=SOON)

    def close(self) -> None:
        """A last report, which takes no more than `LAST_REPORT` seconds. Counting may go on afterwards."""
        sender = self._storage.sender
        if sender is None or self._process != os.getpid():
            return
        self._process = 0
        sender.unregister(self._name)
        at = sender.address
        with SyncClient(
            at.url, at.key, timeout=LAST_REPORT, connect_timeout=LAST_REPORT, retries=0
        ) as client:
            self._reporter.finish(client)


def _job(reporter: weakref.ref[Reporter]) -> Job:
    """Ends by itself when the guard is gone."""

    def deliver(client: SyncClient) -> float | None:
        found = reporter()
        return None if found is None else found.deliver(client)

    return deliver
