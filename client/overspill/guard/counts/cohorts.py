"""Counts by cohort: what an experiment compares."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from overspill.execution import forks
from overspill.reading.latest import Latest
from overspill.wire import CohortCount, CohortSums

if TYPE_CHECKING:
    from overspill.wire import Cohort

_MAX_SESSIONS: Final = 100_000
_LONGEST_NAME: Final = 256


class CohortTally:
    """Counts of guards since the last report, for any number of threads. A forked child begins at zero."""

    def __init__(self) -> None:
        forks.register(self)
        self.reset_after_fork()

    def reset_after_fork(self) -> None:
        """Start a forked child at zero: the parent reports its own counts."""
        self._lock = threading.RLock()
        self._sums: dict[Cohort, dict[str, int]] = {}

    def add(self, cohort: Cohort, **amounts: int) -> None:
        """Add to the figures of a cohort, by their names in `wire.CohortSums`."""
        with self._lock:
            sums = self._sums.setdefault(cohort, {})
            for figure, amount in amounts.items():
                sums[figure] = sums.get(figure, 0) + amount

    def drain(self) -> list[CohortCount]:
        """Return what was counted, and begin at nothing."""
        with self._lock:
            sums_taken, self._sums = self._sums, {}
        return [
            CohortCount(
                experiment=cohort.experiment, arm=cohort.arm, group=cohort.group, sums=CohortSums(**sums)
            )
            for cohort, sums in sums_taken.items()
        ]


class MetSessions:
    """The sessions of this process that were counted, the latest `limit` of them, for any thread.

    A forked child knows those of its parent: they are counted.
    """

    def __init__(self, limit: int = _MAX_SESSIONS) -> None:
        self._met: Latest[tuple[str, str | int], None] = Latest(limit)
        forks.register(self)
        self.reset_after_fork()

    def reset_after_fork(self) -> None:
        """Make a new lock in a forked child: a thread of the parent may hold the old one."""
        self._lock = threading.RLock()

    def is_new(self, experiment: str, session: str) -> bool:
        """Return whether a session is met for the first time in an experiment, and remember it."""
        key = experiment, session if len(session) <= _LONGEST_NAME else hash(session)
        with self._lock:
            is_new = key not in self._met
            self._met[key] = None
        return is_new


met_sessions: Final = MetSessions()
"""Shared by all guards: a session counts once in a process."""
