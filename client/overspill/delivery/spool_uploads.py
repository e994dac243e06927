"""Uploads what waits in the spool: in the background, and for a short time at the end of a guard."""

from __future__ import annotations

import threading
import weakref
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from overspill.delivery.backgrounds import backgrounds
from overspill.errors.client_errors import NotSpooled
from overspill.execution import forks, threads
from overspill.spools import flush_job
from overspill.transfer.sync import background_client

if TYPE_CHECKING:
    from overspill.delivery.background import Background
    from overspill.spools.partition import Partition
    from overspill.transfer.client import Client
    from overspill.transfer.sync import SyncClient

_JOB: Final = "spool {}"


class SpoolUploads:
    """The uploads from one partition, for one guard. Without a client, or if not `is_on`, there are none."""

    def __init__(
        self, client: Client | SyncClient | None, partition: Partition | None, *, is_on: bool
    ) -> None:
        self._client, self._partition = client, partition
        self.is_on = is_on
        self._background: Background | None = None
        self._end: weakref.finalize[..., SpoolUploads] | None = None
        self.reset_after_fork()
        forks.register(self)

    def reset_after_fork(self) -> None:
        """Use a new lock in a forked child."""
        self._lock = threading.RLock()

    @property
    def background(self) -> Background | None:
        """The thread that sends reports and spooled captures, shared by all guards of a service.

        None without a client.
        """
        if self._client is None:
            return None
        with self._lock:
            if self._background is None:
                self._background = backgrounds.acquire(self._client.address)
                self._end = weakref.finalize(self, backgrounds.abandon, self._background)
                self._end.atexit = False
                if self._partition is not None and self.is_on:
                    self._background.register(
                        _JOB.format(self._partition.folder.path), partial(flush_job.job, self._partition)
                    )
            return self._background

    def begin(self, after: float) -> None:
        """Upload from the spool `after` seconds, in the background. A spool without a service is tidied."""
        if self._partition is not None and self.is_on and self.background is not None:
            self.background.schedule(_JOB.format(self._partition.folder.path), after=after)
        elif self._partition is not None:
            threads.begin_blocking(self._partition.tidy_if_due)

    def begin_if_any(self) -> None:
        """Upload in the background what waits in the spool already, if anything does. Raises nothing."""
        with suppress(NotSpooled, OSError):
            if self._partition is not None and not self._partition.is_empty():
                self.begin(0.0)

    def leave(self) -> bool:
        """Leave the background thread. Return whether no other guard of this process uses it."""
        with self._lock:
            background, self._background = self._background, None
            end, self._end = self._end, None
        if end is not None:
            end.detach()
        return background is None or backgrounds.release(background)

    def finish(self, seconds: float) -> None:
        """Upload what waits in the spool, for at most `seconds`. Raises nothing."""
        if self._partition is None or self._client is None or seconds <= 0:
            return
        with background_client(self._client.address, seconds) as client:
            flush_job.flush_shortly(self._partition, client, seconds, lock_timeout=seconds)
