"""Decides which producers of live captures are gone: those silent for longer than a timeout.

A clock that has jumped, or that replicas disagree about, does not count.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from overspill_service.errors import ClockJumped, ClockSkewed

if TYPE_CHECKING:
    from overspill_service.archive.archive import Archive
    from overspill_service.catalog.live import LiveRecord

JUMP_SECONDS: Final = 10.0
"""Seconds that the clock may move against a steady one between two looks.

If it moves further, it has jumped.
"""


class ProducerWatch:
    """One process's watch over all producers. A producer is gone after `timeout` seconds of silence."""

    def __init__(self, archive: Archive, timeout: float) -> None:
        self._archive, self._timeout = archive, timeout
        self.begun = archive.clock()
        """When this process began to watch, by a clock that has not jumped since."""
        self._ahead_of_steady = self._measured_ahead()

    async def is_gone(self, record: LiveRecord) -> bool:
        """Return whether the producer has been silent for too long, by clocks that agree.

        Silence counts only while somebody could hear the producer: not before this process began to watch,
        not while the catalog took nothing or this process was not ready, and not in a catalog that lost what
        the producer appended. After a jump of the clock it counts anew.
        """
        self.note_jump()
        if not self._is_silent(record) or not await self._archive.catalog.is_complete():
            return False
        try:
            await self._archive.shared_clock.require_agreement()
        except (ClockSkewed, ClockJumped):
            return False
        self.note_jump()  # the clocks were compared, so this one may have been set
        return self._is_silent(record)

    def note_jump(self) -> None:
        """Start to watch again if the clock has jumped: the times noted before are those of another clock."""
        before, self._ahead_of_steady = self._ahead_of_steady, self._measured_ahead()
        if abs(self._ahead_of_steady - before) > JUMP_SECONDS:
            self.begin()

    def begin(self) -> None:
        """Begin to watch: nobody could be heard before."""
        self.begun = self._archive.clock()

    def _is_silent(self, record: LiveRecord) -> bool:
        return self._archive.clock() - max(record.active, self.begun) > self._timeout

    def _measured_ahead(self) -> float:
        return self._archive.shared_clock.now() - time.monotonic()
