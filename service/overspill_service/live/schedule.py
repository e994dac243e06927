"""Schedules when live captures are looked at: which are due now, and when each is due next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from overspill_service.catalog.live import NO_BYTES
from overspill_service.live.producer_watch import JUMP_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from overspill_service.archive.archive import Archive
    from overspill_service.catalog.records import Entry

LOOK_SECONDS: Final = 1.0
"""How often a process looks for captures that are due."""
DUE_PAGE: Final = 10_000
"""How many due captures are read at once."""
MAX_AGE_SECONDS: Final = 60.0
SEGMENTS_PER_EXTRA_SECOND: Final = 4
"""A capture with many segments waits longer for its next one: one second more for this many segments."""

_MIN_LIFE: Final = 10.0


class Schedule:
    """The schedule of all processes, in the catalog. `age` and `timeout` in seconds, as the settings say."""

    def __init__(self, archive: Archive, age: float, timeout: float) -> None:
        self.least_life = 2 * age + _MIN_LIFE
        """The shortest life of a live capture in seconds. It is looked at, and renewed, before that ends."""
        self._archive, self._age, self._timeout = archive, age, timeout
        self._latest = max(timeout, age, MAX_AGE_SECONDS) + JUMP_SECONDS
        """How far ahead a capture may be scheduled."""

    async def due(self) -> AsyncIterator[tuple[str, str]]:
        """Yield the tenant and id of each capture that is due, even if the clock was set back meanwhile."""
        now, skip, is_last = self._archive.clock(), 0, False
        # Nothing is scheduled that far ahead, unless the clock has been set back since.
        for name in await self._archive.catalog.scheduled_after(now + self._latest, DUE_PAGE):
            yield name
        while not is_last:
            page = await self._archive.catalog.due(now, DUE_PAGE, skip=skip)
            for name in page:
                yield name
            skip, is_last = skip + len(page), len(page) < DUE_PAGE

    async def after(self, seconds: float, tenant: str, capture: str) -> None:
        """Look at a capture after `seconds`."""
        await self._archive.catalog.schedule(tenant, capture, self._archive.clock() + seconds)

    async def begin(self, entry: Entry) -> None:
        """Look at a new capture when its producer is late, or when half of its life is over."""
        await self.after(min(self._timeout, entry.life / 2), entry.tenant, entry.id)

    async def after_first_bytes(self, tenant: str, capture: str) -> None:
        """Look at a capture when the bytes that have just come are old. Call it if no others wait."""
        await self.after(self._age, tenant, capture)

    async def look_again(self, entry: Entry, active: float) -> None:
        """Look at a capture when its bytes are old, half of its life is over, or its producer is late.

        `active` is when the producer was last heard.
        """
        catalog, now = self._archive.catalog, self._archive.clock()
        half = entry.expires - entry.life / 2
        late = min(min(active, now) + self._timeout, half)
        await catalog.schedule(entry.tenant, entry.id, max(late, now + LOOK_SECONDS))
        # Looked up after that: bytes that came before may have been scheduled for an earlier time.
        record = await catalog.live(entry.tenant, entry.id, since=NO_BYTES)
        if record is not None and record.accepted > record.durable:
            extra = len(entry.segments) / SEGMENTS_PER_EXTRA_SECOND
            age = min(max(self._age, MAX_AGE_SECONDS), self._age + extra)
            await catalog.schedule(entry.tenant, entry.id, max(min(now + age, half), now + LOOK_SECONDS))
