"""Reports a tally to the service, in batches that count once however often they are sent.

A report that fails is tried again later, or lost; the agent never hears of it.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill import wire
from overspill.errors import BadRequest, OverspillError, Refused, TooManyRequests
from overspill.execution import forks, tracing
from overspill.execution.backoff import Backoff
from overspill.guard.counts.tally import OutputCount

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.guard.counts.cohorts import CohortTally
    from overspill.guard.counts.tally import Tally
    from overspill.transfer.sync import SyncClient
    from overspill.wire import Outcome

INTERVAL: Final = 60.0
"""Seconds between reports."""
SOON: Final = 5.0
"""Seconds between reports while outputs spill, because then there is a connection anyway."""
_BACKOFF: Final = Backoff(first=INTERVAL, longest=16 * INTERVAL)
"""The pauses between reports that fail."""
_MAX_OBSERVATIONS: Final = 250
"""Observations in a batch. With the longest tool names it is still below what the service reads."""


class _Batch(NamedTuple):
    content: wire.Observations
    made: float


class Reporter:
    """Sends what `tally` and `cohorts` have counted since the last report. At most one is on its way.

    `backlog` says what waits in the guard's spool. For any number of threads. A forked child leaves its
    parent's report to the parent.
    """

    def __init__(
        self,
        tally: Tally,
        cohorts: CohortTally | None = None,
        *,
        backlog: Callable[[], wire.SpoolBacklog | None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tally = tally
        self._cohorts = cohorts
        self._backlog = backlog
        self._clock = clock
        self.reset_after_fork()
        forks.register(self)

    def reset_after_fork(self) -> None:
        """Start a forked child with nothing to report: the parent reports its own counts."""
        self._sending = threading.Lock()
        self._batches: deque[_Batch] = deque()
        self._reported: dict[tuple[str, Outcome], OutputCount] = {}
        self._spilled = 0
        self._had_backlog = False
        self._failures = 0
        self._last = self._clock()

    def due(self) -> bool:
        """Return whether it is time for a report. Takes almost no time."""
        return self.pause() == 0

    def pause(self) -> float:
        """Return the seconds until a report is due. Outputs that spill before then make it due sooner."""
        wait = _BACKOFF.bound(self._failures)
        if self._failures == 0 and self._tally.spilled != self._spilled:
            wait = min(SOON, wait)
        return max(0.0, self._last + wait - self._clock())

    def deliver(self, client: SyncClient) -> float:
        """Report if it is time. Return the seconds until the next report."""
        if self.due():
            self.send(client)
        return self.pause()

    def send(self, client: SyncClient, *, wait: float = 0.0) -> None:
        """Report what is new; this may block. Raises nothing of its own.

        If another thread is reporting, wait `wait` seconds for it, and otherwise leave it to that thread.
        """
        if not self._sending.acquire(timeout=wait):
            return
        try:
            self._failures = 0 if self._report(client) else self._failures + 1
            self._last = self._clock()
        finally:
            self._sending.release()

    def finish(self, client: SyncClient, within: float) -> bool:
        """Make a last report. Return whether it ended `within` these seconds."""
        last = threading.Thread(
            target=self.send, args=[client], kwargs={"wait": within}, name="overspill-report", daemon=True
        )
        try:
            last.start()
        except RuntimeError:  # the interpreter is ending, or can start no more threads
            return True
        last.join(within)
        return not last.is_alive()

    def _report(self, client: SyncClient) -> bool:
        """Send the rest of the last report, and then the counts since."""
        if not self._send_batches(client):
            return False
        self._collect()
        return self._send_batches(client)

    def _collect(self) -> None:
        self._spilled, counts = self._tally.spilled, self._tally.counts()
        seen = []
        for (tool, outcome), count in counts.items():
            new = count - self._reported.get((tool, outcome), OutputCount())
            if new.count:  # a burst waits for the next output, which its observation counts
                seen.append(_observation(tool, outcome, new))
                self._reported[tool, outcome] = count
        cohorts = [] if self._cohorts is None else self._cohorts.drain()
        backlog = self._new_backlog()
        for start in range(0, max(len(seen), len(cohorts), backlog is not None), _MAX_OBSERVATIONS):
            content = wire.Observations(
                batch=secrets.token_hex(16),
                observations=seen[start : start + _MAX_OBSERVATIONS],
                cohorts=cohorts,
                backlog=backlog,
            )
            cohorts, backlog = [], None
            self._batches.append(_Batch(content, self._clock()))

    def _new_backlog(self) -> wire.SpoolBacklog | None:
        """Return the captures that wait in the spool. None if none do, and the last report said so."""
        backlog = self._backlog()
        had, self._had_backlog = self._had_backlog, backlog is not None and backlog.captures > 0
        return backlog if had or self._had_backlog else None

    def _send_batches(self, client: SyncClient) -> bool:
        while self._batches:
            if not self._send_batch(self._batches[0], client):
                return False
            self._batches.popleft()
        return True

    def _send_batch(self, batch: _Batch, client: SyncClient) -> bool:
        """Send a batch. Return whether it is finished: accepted, refused for good, or too old to be sent.

        The service may have counted it although no answer came. So the batch is not sent again once the
        service may have forgotten its id: it would count twice.
        """
        if self._clock() - batch.made > wire.BATCH_MEMORY / 2:
            return True
        try:
            with tracing.untraced():
                client.observe(batch.content)
        except TooManyRequests:
            return False
        except (BadRequest, Refused):
            return True
        except (OverspillError, RuntimeError):  # RuntimeError: the client was closed meanwhile
            return False
        return True


def _observation(tool: str, outcome: Outcome, new: OutputCount) -> wire.Observation:
    return wire.Observation(
        tool=tool,
        outcome=outcome,
        count=new.count,
        bytes_before=new.bytes_before,
        bytes_after=new.bytes_after,
        sizes=new.sizes,
        tokens_kept_out=new.tokens_kept_out,
        identical=new.identical,
        bursts=new.bursts,
    )
