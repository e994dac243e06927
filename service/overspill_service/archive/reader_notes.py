"""Notes who reads captures. The maintenance job writes the notes to the catalog every few seconds.

No read waits for that. A process that is killed loses the notes that it has not written yet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.reading.latest import Latest

from overspill_service.catalog.readers import ReadNote
from overspill_service.resources.tasks import fan_out

if TYPE_CHECKING:
    from overspill_service.catalog import Readers
    from overspill_service.catalog.records import Entry
    from overspill_service.tenants.directory import Principal

NOTE_SECONDS: Final = 120.0
"""Seconds in which one reader of one capture is noted at most once: the precision of the last read."""
MAX_REMEMBERED: Final = 10_000
"""How many recent notes this process remembers. If there are more, it forgets them, and notes again."""
MAX_WAITING: Final = 10_000
"""The most notes that wait. One tenant may have half of them."""
BATCH: Final = 50
"""Notes that the catalog takes in one step, which lasts about a millisecond."""
CONCURRENCY: Final = 4
METADATA_SHARE: Final = 8
"""The readers of a tenant's captures may take what its entries may take, divided by this."""

_Name = tuple[str, str, bool]
"""An upload, a reader's name, and whether it was on the page."""


@dataclass(slots=True)
class _Waiting:
    """The notes of one tenant that wait, and the most bytes that its readers may take; 0 is no limit."""

    max_bytes: int = 0
    notes: dict[_Name, ReadNote] = field(default_factory=dict)


class _Batch(NamedTuple):
    tenant: str
    own: _Waiting
    notes: list[tuple[_Name, ReadNote]]


class ReaderNotes:
    """The readers that this process has noted lately, and the notes that the catalog does not have yet."""

    def __init__(self, catalog: Readers) -> None:
        self._catalog = catalog
        self._noted: Latest[_Name, float] = Latest(MAX_REMEMBERED)
        """When each reader of a capture was last noted."""
        self._tenants: dict[str, _Waiting] = {}
        self._count = 0

    def note(self, entry: Entry, reader: Principal, at: float, *, on_page: bool) -> None:
        """Note that a request has read a capture, unless this reader was noted a moment ago."""
        name = entry.upload, reader.name, on_page
        if abs(at - self._noted.get(name, -math.inf)) < NOTE_SECONDS:
            return
        own = self._tenants.setdefault(entry.tenant, _Waiting())
        if self._count >= MAX_WAITING or len(own.notes) >= MAX_WAITING // 2:
            return
        self._noted[name] = at
        own.max_bytes = _share(reader.tenant.limits.max_metadata_size)
        self._count += name not in own.notes
        own.notes[name] = ReadNote(entry.id, entry.upload, reader.name, on_page, at)

    async def report(self) -> None:
        """Write the notes to the catalog. Notes that fail are written again next time.

        Raises what `note_readers` raises.
        """
        await fan_out(self._tell, self._batches(), concurrency=CONCURRENCY)
        self._tenants = {tenant: own for tenant, own in self._tenants.items() if own.notes}

    def _batches(self) -> list[_Batch]:
        waiting = [(tenant, own, [*own.notes.items()]) for tenant, own in self._tenants.items()]
        return [
            _Batch(tenant, own, notes[start : start + BATCH])
            for tenant, own, notes in waiting
            for start in range(0, len(notes), BATCH)
        ]

    async def _tell(self, batch: _Batch) -> None:
        tenant, own, notes = batch
        await self._catalog.note_readers(tenant, [note for _, note in notes], max_bytes=own.max_bytes)
        for name, _ in notes:
            self._count -= own.notes.pop(name, None) is not None


def _share(max_metadata_size: int) -> int:
    return max_metadata_size and max(1, max_metadata_size // METADATA_SHARE)
