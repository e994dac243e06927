"""The archive: both back ends, the threads, the clock, and a cache of frame maps."""

from __future__ import annotations

import math
import time
from collections import deque
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Final

from overspill_service.archive.frame_map_cache import FrameMapCache
from overspill_service.archive.frame_reader import Reader
from overspill_service.archive.growing import GrowingEntry, GrowingReader
from overspill_service.archive.keyring import Keyring
from overspill_service.archive.lookup_limits import LookupLimits
from overspill_service.audit.log import AuditLog
from overspill_service.errors import CaptureDamaged, ObjectMissing
from overspill_service.resources.tasks import fan_out
from overspill_service.store_format import index
from overspill_service.store_format.frame_map import FrameMap, pack, packed_with
from overspill_service.store_format.object_keys import parse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from overspill.reading.chunks import Chunk

    from overspill_service.archive.shared_clock import SharedClock
    from overspill_service.catalog import Catalog
    from overspill_service.catalog.records import Entry
    from overspill_service.objects import ObjectStore
    from overspill_service.resources.cpu import CpuThreads, Workers
    from overspill_service.resources.memory_budget import MemoryBudget
    from overspill_service.store_format.frames import Frame

INLINE_INDEX: Final = 16 * 1024
"""The largest packed frame map that a catalog's entry holds, in bytes: the map of about 1 GB of content."""
CACHED_MAPS: Final = 8 * 2**20
"""Bytes of frame maps that a process keeps: the maps of about 7,000 captures of a few frames."""
COMPLETE_SECONDS: Final = 5.0
"""How long an answer that the catalog is complete is reused."""
MAX_DAMAGED: Final = 1000
CONCURRENT_TAILS: Final = 8


def inline_index(segments: Sequence[Sequence[Frame]]) -> bytes | None:
    """Return the packed frame map for the catalog's entry, or None if it is too large for one."""
    if sum(map(len, segments)) > INLINE_INDEX:
        return None
    packed = pack(segments)
    return packed if len(packed) <= INLINE_INDEX else None


def grown_index(packed: bytes, frames: Sequence[Frame]) -> bytes | None:
    """Return an entry's packed frame map with one more segment, or None if it is too large for an entry.

    Raises `CaptureDamaged`.
    """
    grown = packed_with(packed, frames)
    return grown if len(grown) <= INLINE_INDEX else None


class Archive:
    """The object store, the catalog, and a cache of frame maps. One for each process."""

    def __init__(
        self,
        store: ObjectStore,
        catalog: Catalog,
        cpu: CpuThreads,
        *,
        clock: SharedClock,
        level: int,
        memory: MemoryBudget,
    ) -> None:
        self.store, self.catalog, self.cpu, self.memory = store, catalog, cpu, memory
        self.shared_clock, self.level = clock, level
        self.clock: Callable[[], float] = clock.now
        self.upload_workers: Callable[[str], Workers] = lambda _: cpu
        """The threads in which a tenant's uploads are hashed and compressed."""
        self.audit = AuditLog()
        """Takes lines about removals that nobody requested."""
        self.keyring = Keyring(store, catalog, clock.now)
        self.lookups = LookupLimits()
        self.damaged: deque[str] = deque(maxlen=MAX_DAMAGED)
        """Uploads that were recently found damaged, so that they are not read again."""
        self.folders: dict[str, Path] = {}
        """The folders of back ends on this machine's disks, by `store` and `catalog`."""
        self.maps = FrameMapCache(CACHED_MAPS)
        self._complete_at = -math.inf

    async def was_complete(self) -> bool:
        """Return whether the catalog was complete within the last seconds.

        Use it only where a wrong answer costs nothing but work.
        """
        now = time.monotonic()
        if now - self._complete_at > COMPLETE_SECONDS and await self.catalog.is_complete():
            self._complete_at = now
        return now - self._complete_at <= COMPLETE_SECONDS

    async def store_time(self) -> float:
        """Return the time by the clock that dates objects, in seconds since the epoch."""
        now = await self.store.now()
        return self.clock() if now is None else now

    async def reader(self, entry: Entry, workers: Workers | None = None) -> Reader:
        """Return a reader of a capture that decodes in `workers`, by default the tenant's of `cpu`.

        Raises `CaptureDamaged`, `StoreUnavailable`.
        """
        parts = self.store, workers or self.cpu.of(entry.tenant), self.memory.reads, entry
        if isinstance(entry, GrowingEntry):
            stored, last = await self._map_of(entry.stored), entry.tail.frames
            frames = await self.cpu.run_for_frames(len(stored) + len(last), stored.with_segment, last)
            return GrowingReader(*parts, frames)
        return Reader(*parts, await self._map_of(entry))

    async def _map_of(self, entry: Entry) -> FrameMap:
        frames = self.maps.get(entry.version)
        if frames is None:
            frames = await self._load(entry)
            self.maps.add(entry.version, frames)
        return frames

    async def verify(self, entry: Entry) -> None:
        """Read everything that is stored for a capture. Raises `CaptureDamaged` if any of it is wrong."""
        for number in range(len(entry.segments)):
            await self.index_of(entry, number)
        reader = await self.reader(entry)
        async with aclosing(reader.map(range(len(reader.frames)), _ignore)) as batches:
            async for _ in batches:
                pass

    async def index_of(self, entry: Entry, number: int) -> index.Index:
        """Return the index of one segment. Raises `CaptureDamaged` if it does not fit the entry."""
        segment = entry.segments[number]
        found = await self.read_index(entry.segment_key(number), segment.stored_size)
        if (found.upload, found.number) != (entry.upload, number) or found.size != segment.size:
            raise CaptureDamaged(f"segment {number} of {entry.id} is not the one that the catalog knows")
        return found

    async def read_index(self, key: str, stored_size: int) -> index.Index:
        """Return the index at the end of a segment of `stored_size` bytes. Raises `CaptureDamaged`."""
        try:
            tail = await self.store.read(key, -index.TAIL_SIZE, index.TAIL_SIZE)
            try:
                return await self._parse(tail, stored_size)
            except index.TailTooShort as more:
                tail = await self.store.read(key, -more.length, more.length)
                return await self._parse(tail, stored_size)
        except index.TailTooShort as more:
            raise CaptureDamaged(f"the object {key} is shorter than its trailer says") from more
        except KeyError as error:
            name = parse(key)
            assert name is not None
            assert name.number is not None
            raise ObjectMissing(name.capture, name.upload, name.number) from error

    async def _parse(self, tail: bytes, stored_size: int) -> index.Index:
        return await self.cpu.run_for_frames(index.listed_frames(tail), index.parse, tail, stored_size)

    async def _load(self, entry: Entry) -> FrameMap:
        if entry.index is not None:
            frames = FrameMap.unpack(entry.index)
        else:
            numbers = range(len(entry.segments))
            found = await fan_out(partial(self.index_of, entry), numbers, concurrency=CONCURRENT_TAILS)
            segments = [each.frames for each in found]
            frames = await self.cpu.run_for_frames(sum(map(len, segments)), FrameMap.of, segments)
        if frames.size != entry.size:
            raise CaptureDamaged(f"the index of {entry.id} covers {frames.size} of {entry.size} bytes")
        return frames


def _ignore(_chunk: Chunk) -> None:
    """Drop a decoded frame: decoding it was the check."""
