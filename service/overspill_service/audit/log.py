"""Write the audit log: lines that come together are written together, and none is lost while there is room.

While lines cannot be written they wait in memory, and no change is allowed: what nobody could account for
does not happen. Then writing is tried every few seconds, not by each request: none waits for an output that
hangs longer than for one try.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from typing import TYPE_CHECKING, Final

from overspill_service.audit.events import ITSELF, Outcome
from overspill_service.audit.outputs import PartlyWritten
from overspill_service.errors import AuditUnavailable
from overspill_service.resources.tasks import run_to_completion

if TYPE_CHECKING:
    from collections.abc import Iterable

    from overspill_service.audit.events import Event
    from overspill_service.audit.outputs import Output

MAX_WAITING: Final = 10_000
"""Lines that wait while nothing can be written. Later ones are lost, and counted in the log."""
MAX_FAILURES: Final = 5_000
"""How many of them may say that nothing was changed, or that something has expired.

So whoever sends refused requests displaces no change that was asked for.
"""
RETRY_SECONDS: Final = 5.0
"""How long after a failure writing is not tried again."""

log = logging.getLogger(__name__)


class AuditLog:
    """The audit log of one process. Without an output it takes nothing."""

    def __init__(self, output: Output | None = None) -> None:
        self._output = output
        self._waiting: list[bytes] = []
        self._lost = 0
        self._writing = asyncio.Lock()
        self._failure: OSError | None = None
        self._failed_at = -math.inf

    @property
    def is_on(self) -> bool:
        return self._output is not None

    async def write(self, event: Event, seconds: float) -> None:
        """Write an event. `seconds` since the epoch is when it happened. A failure is logged, once."""
        await self.write_all([event], seconds)

    async def write_all(self, events: Iterable[Event], seconds: float) -> None:
        """Write events that happened at the same time, as `write` does."""
        if self._output is None:
            return
        for event in events:
            if len(self._waiting) < (MAX_FAILURES if _is_lesser(event) else MAX_WAITING):
                self._waiting.append(event.line(seconds))
            else:
                self._lost += 1
        await run_to_completion(self.flush())

    async def probe(self) -> None:
        """Find out whether lines can be written, before the first one has to be."""
        await self.flush(is_probe=True)

    async def require_working(self) -> None:
        """Raise `AuditUnavailable` if the last lines could not be written, and still cannot."""
        if self._failure is not None:
            await run_to_completion(self.flush(is_probe=True))
        if self._failure is not None:
            raise AuditUnavailable(
                "nothing is changed while the audit log cannot be written; the operator finds why in the "
                "service's log"
            )

    async def close(self) -> None:
        """Try once more to write what waits, and close the output."""
        self._failed_at = -math.inf
        await self.flush()
        if self._waiting:
            log.error("%d lines of the audit log could not be written and are lost", len(self._waiting))
        if self._output is not None:
            self._output.close()

    async def flush(self, *, is_probe: bool = False) -> None:
        """Write what waits, if anything does, unless that has just failed."""
        async with self._writing:
            has_just_failed = time.monotonic() < self._failed_at + RETRY_SECONDS
            if self._output is None or has_just_failed or not (self._waiting or is_probe):
                return
            lines, self._waiting = self._waiting, []
            try:
                await asyncio.to_thread(self._output.write, lines)
            except OSError as error:
                written = error.count if isinstance(error, PartlyWritten) else 0
                self._waiting = lines[written:] + self._waiting
                self._failed_at = time.monotonic()
                self._note(error)
            else:
                self._note(None)

    def _note(self, failure: OSError | None) -> None:
        """Log that writing has begun to fail, or works again."""
        if failure is not None and self._failure is None:
            log.error("the audit log cannot be written, changes are refused: %s", failure)
        if failure is None and self._failure is not None:
            log.warning("the audit log can be written again; %d lines were lost meanwhile", self._lost)
            self._lost = 0
        self._failure = failure


def _is_lesser(event: Event) -> bool:
    return event.outcome is Outcome.FAILURE or event.user == ITSELF
