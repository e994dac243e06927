"""Write the audit log: lines that come together are written together, and none is lost while there is room.

While lines cannot be written they wait in memory, and no change is allowed: what nobody could account for
does not happen.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from overspill_service.errors import AuditUnavailable
from overspill_service.resources.tasks import run_to_completion

if TYPE_CHECKING:
    from overspill_service.audit.events import Event
    from overspill_service.audit.outputs import Output

MAX_WAITING: Final = 10_000
"""Lines that wait while nothing can be written. Later ones are lost, and counted in the log."""

log = logging.getLogger(__name__)


class AuditLog:
    """The audit log of one process. Without an output it takes nothing."""

    def __init__(self, output: Output | None = None) -> None:
        self._output = output
        self._waiting: list[bytes] = []
        self._lost = 0
        self._turn = asyncio.Lock()
        self._failure: OSError | None = None

    @property
    def is_on(self) -> bool:
        return self._output is not None

    async def write(self, event: Event, seconds: float) -> None:
        """Write an event. `seconds` since the epoch is when it happened. A failure is logged, once."""
        if self._output is None:
            return
        if len(self._waiting) < MAX_WAITING:
            self._waiting.append(event.line(seconds))
        else:
            self._lost += 1
        await run_to_completion(self.flush())

    async def require_working(self) -> None:
        """Raise `AuditUnavailable` if the last lines could not be written, and still cannot."""
        if self._failure is not None:
            await run_to_completion(self.flush())
        if self._failure is not None:
            raise AuditUnavailable(
                "nothing is changed while the audit log cannot be written; the operator finds why in the "
                "service's log"
            )

    async def close(self) -> None:
        """Try once more to write what waits, and close the output."""
        await self.flush()
        if self._waiting:
            log.error("%d lines of the audit log could not be written and are lost", len(self._waiting))
        if self._output is not None:
            self._output.close()

    async def flush(self) -> None:
        """Write what waits."""
        async with self._turn:
            if self._output is None or not self._waiting:
                return
            lines, self._waiting = self._waiting, []
            try:
                await asyncio.to_thread(self._output.write, lines)
            except OSError as error:
                self._waiting = lines + self._waiting
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
