"""A reader's view of a live capture: its segments, and after them every byte that is accepted.

A process remembers the accepted bytes of captures that were read recently, so a reader that comes again costs
the bytes that are new.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from overspill_service.archive.growing import GrowingEntry, Tail
from overspill_service.catalog.live import NO_BYTES
from overspill_service.catalog.records import Entry, instant
from overspill_service.errors import CatalogUnavailable
from overspill_service.live.buffer_memory import BufferMemory
from overspill_service.live.growth import with_content
from overspill_service.store_format.frames import frames_between

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from overspill import wire

    from overspill_service.archive.archive import Archive
    from overspill_service.catalog.live import LiveRecord

CACHED_BYTES: Final = 32 * 2**20
"""The bytes that a process remembers: accepted bytes, the same compressed, and entries."""
LEVEL: Final = 1
TRIES: Final = 6


class _Remembered(Struct):
    opened: int
    """`LiveRecord.opened` of the buffer whose bytes these are."""
    start: int
    data: bytes
    view: GrowingEntry

    @property
    def size(self) -> int:
        return len(self.data) + len(self.view.tail.data) + self.view.metadata_size

    @property
    def stop(self) -> int:
        return self.start + len(self.data)

    def reaches(self, offset: int) -> bool:
        return self.start <= offset <= self.stop

    def between(self, start: int, stop: int) -> bytes:
        return self.data[start - self.start : stop - self.start] if start < stop else b""


class LiveViews:
    """The views of live captures that one process gives."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._remembered: OrderedDict[str, _Remembered] = OrderedDict()
        self._size = 0

    def memory(self, tenant: str) -> BufferMemory:
        """Return memory for one view of a tenant's."""
        return BufferMemory(self._archive.memory.buffers, tenant)

    @asynccontextmanager
    async def held(self, entry: Entry) -> AsyncIterator[Entry]:
        """Yield what `of` returns, with memory of its own for the block."""
        with self.memory(entry.tenant) as memory:
            yield await self.of(entry, memory)

    async def of(self, entry: Entry, memory: BufferMemory) -> Entry:
        """Return the present entry of a capture; a live one with its accepted bytes.

        It may be used until `memory` is closed. Raises `CatalogUnavailable`, `Overloaded`.
        """
        for _ in range(TRIES):
            if not entry.is_live:
                self.forget(entry.upload)
                return entry
            remembered = self._remembered.get(entry.upload)
            since = (
                remembered.stop if remembered is not None and remembered.reaches(entry.size) else entry.size
            )
            record = await self._archive.catalog.live(entry.tenant, entry.id, since=since, limit=memory.room)
            if record is not None and remembered is not None and _is_another(remembered, record):
                self.forget(entry.upload)
            elif record is not None and (size := record.accepted - entry.size) > memory.room:
                remembered = None  # it would not be counted while it waits
                await memory.cover(size)
            elif record is not None and record.start == since:
                before = remembered.between(entry.size, since) if remembered is not None else b""
                return await self._view(entry, record, before + record.buffer)
            elif (newer := await self._changed(entry)) is not None:
                entry = newer
            else:
                return entry  # the catalog has lost the buffer: what is stored is all that there is
        raise CatalogUnavailable("the capture changes faster than it can be read")

    async def _changed(self, entry: Entry) -> Entry | None:
        """Return the catalog's present entry of the capture.

        None if that is still `entry`, or if there is none.
        """
        found = await self._archive.catalog.get(entry.tenant, entry.id)
        return found if isinstance(found, Entry) and found != entry else None

    async def shown(self, entry: Entry) -> wire.Entry:
        """Return a live capture as a listing shows it: its accepted bytes, but the lines of stored ones."""
        record = await self._archive.catalog.live(entry.tenant, entry.id, since=NO_BYTES)
        if record is None:
            return entry.to_wire()
        active = instant(record.active)
        size = max(entry.size, record.accepted)
        return replace(entry.to_wire(), size=size, durable=entry.size, last_append=active)

    async def _view(self, entry: Entry, record: LiveRecord, data: bytes) -> GrowingEntry:
        remembered = self._remembered.get(entry.upload)
        if remembered is not None and _is_same(remembered.view, entry, record):
            self._remembered.move_to_end(entry.upload)
            return remembered.view
        tail = await self._archive.cpu.run(_compressed, data) if data else Tail([], b"")
        grown = with_content(entry, record, data, tail.frames)
        view = GrowingEntry(**asdict(grown), stored=entry, tail=tail, active=record.active)
        self._remember(entry.upload, _Remembered(record.opened, entry.size, data, view))
        return view

    def _remember(self, upload: str, remembered: _Remembered) -> None:
        self.forget(upload)
        self._remembered[upload] = remembered
        self._size += remembered.size
        while self._size > CACHED_BYTES:
            self.forget(next(iter(self._remembered)))

    def forget(self, upload: str) -> None:
        remembered = self._remembered.pop(upload, None)
        if remembered is not None:
            self._size -= remembered.size


def _is_another(remembered: _Remembered, record: LiveRecord) -> bool:
    """Return whether the catalog has lost the bytes since, and perhaps has others in their place."""
    return remembered.opened != record.opened or remembered.stop > record.accepted


def _is_same(view: GrowingEntry, entry: Entry, record: LiveRecord) -> bool:
    return view.stored == entry and view.size == record.accepted and view.active == record.active


def _compressed(data: bytes) -> Tail:
    framed = frames_between(data, 0, len(data), LEVEL)
    return Tail([frame for frame, _ in framed], b"".join(stored for _, stored in framed))
