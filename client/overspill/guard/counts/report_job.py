"""Reports a guard's counts to the service in the background."""

from __future__ import annotations

import os
import weakref
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Final

from overspill.guard.counts.reporter import INTERVAL, SOON, Reporter
from overspill.spools.backlog import backlog_of
from overspill.transfer.sync import background_client

if TYPE_CHECKING:
    from overspill.delivery.background import Job
    from overspill.delivery.storage import Storage
    from overspill.guard.counts.cohorts import CohortTally
    from overspill.guard.counts.tally import Tally
    from overspill.transfer.sync import SyncClient

LAST_REPORT: Final = 2.0
"""Seconds that a last report may take."""
_numbers: Final = count(1)


class ReportJob:
    """Reports counts from the first counted output on, in each process. Without a client it sends nothing."""

    def __init__(self, storage: Storage, tally: Tally, cohorts: CohortTally | None = None) -> None:
        self._storage = storage
        self._reporter = Reporter(tally, cohorts, backlog=partial(backlog_of, storage.partition))
        self._name = f"counts {next(_numbers)}"
        self._process = 0
        self._end: weakref.finalize[..., ReportJob] | None = None

    def start(self) -> None:
        """Make sure that reports are scheduled in this process. Takes almost no time if they are."""
        if self._process == os.getpid():
            return
        self._process = os.getpid()
        self._storage.upload_leftovers()
        background = self._storage.uploads.background
        if background is not None:
            background.register(self._name, _job(weakref.ref(self._reporter)))
            background.schedule(self._name, after=INTERVAL)
            self._detach()
            self._end = weakref.finalize(self, background.forget, self._name)
            self._end.atexit = False

    def _detach(self) -> None:
        if self._end is not None:
            self._end.detach()

    def hurry(self) -> None:
        """Report soon: an output has spilled, so there is a connection anyway."""
        background = self._storage.uploads.background
        if background is not None:
            background.schedule(self._name, after=SOON)

    def close(self) -> None:
        """Make a last report, for `LAST_REPORT` seconds at most. Counting may go on afterwards.

        A service that is left alone after a failure gets no report.
        """
        background = self._storage.uploads.background
        if background is None or self._process != os.getpid():
            return
        self._process = 0
        self._detach()
        background.unregister(self._name)
        health = self._storage.health
        if health is None or health.is_away:
            return
        with background_client(background.address, LAST_REPORT) as client:
            if not self._reporter.finish(client, LAST_REPORT):
                health.failed(f"the service took no report within {LAST_REPORT:g} s", slow=True)


def _job(reporter: weakref.ref[Reporter]) -> Job:
    """Return the job. It ends by itself when the guard is gone, because it does not keep the reporter."""

    def deliver(client: SyncClient) -> float | None:
        found = reporter()
        return None if found is None else found.deliver(client)

    return deliver
