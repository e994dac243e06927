"""What was decided on each capture first, so that an output shown again has the same notice to the byte."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from overspill.execution import forks
from overspill.wire import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.previews.notice import Kept


class Decision(NamedTuple):
    """What became of a capture, and which earlier one of its session has the same bytes, if any has."""

    kept: Kept
    same_as: str | None = None


class Decisions:
    """Remembers the last `most` captures, for any thread. `clock` gives seconds since the epoch."""

    def __init__(self, most: int = 10_000, clock: Callable[[], float] = time.time) -> None:
        self._most = most
        self._clock = clock
        self._firsts: OrderedDict[str, Decision] = OrderedDict()
        self.reset_after_fork()
        forks.register(self)

    def reset_after_fork(self) -> None:
        """In a forked child, make a new lock: a thread of the parent may hold the old one."""
        self._lock = threading.RLock()

    def first(self, id: str, now: Decision) -> Decision:  # noqa: A002  (the field's own name)
        """Return the first decision on a capture, and remember `now` where there is none.

        A first one that has expired, or that stored nothing where `now` did, is replaced: it would hide a
        capture that can be read. An output without an id is not remembered.
        """
        if not id:
            return now
        with self._lock:
            found = self._firsts.pop(id, now)
            if self._is_replaced(found.kept, now.kept):
                found = now
            self._firsts[id] = found
            while len(self._firsts) > self._most:
                self._firsts.popitem(last=False)
        return found

    def _is_replaced(self, first: Kept, now: Kept) -> bool:
        if first.outcome is Outcome.TRUNCATED:
            return now.outcome is not Outcome.TRUNCATED
        return first.expires is not None and first.expires.timestamp() <= self._clock()
