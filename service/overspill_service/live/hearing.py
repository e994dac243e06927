"""Which producers of live captures are gone: those not heard of for long, by a clock that can be believed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from overspill_service.errors import ClockJumped, ClockSkewed

if TYPE_CHECKING:
    from overspill_service.archive.archive import Archive
    from overspill_service.catalog.live import LiveRecord

JUMP_SECONDS: Final = 10.0
"""By how much the clock and a steady one may drift apart between two looks. More is a jump."""


class Hearing:
    """What one process hears. A producer is gone after `timeout` seconds of silence."""

    def __init__(self, archive: Archive, timeout: float) -> None:
        self._archive, self._timeout = archive, timeout
        self.begun = archive.clock()
        """When this process began to hear producers, by a clock that has not jumped since."""
        self._ahead_of_steady = self._measured_ahead()

    async def has_lost(self, record: LiveRecord) -> bool:
        """Return whether the producer is gone, by clocks that agree.

        While nobody could hear it, it is not: before this process began, and in a catalog that is older than
        what it has appended. Nor is it by a clock that has just jumped, or was just set right.
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
        """If the clock has jumped, begin to hear anew: what was noted before is by another clock."""
        before, self._ahead_of_steady = self._ahead_of_steady, self._measured_ahead()
        if abs(self._ahead_of_steady - before) > JUMP_SECONDS:
            self.begun = self._archive.clock()

    def _is_silent(self, record: LiveRecord) -> bool:
        return self._archive.clock() - max(record.active, self.begun) > self._timeout

    def _measured_ahead(self) -> float:
        return self._archive.shared_clock.now() - time.monotonic()
