"""One upload: a body becomes segments in the object store, with flat memory.

While one segment is being stored the next is being compressed; no more than two are ever in memory. Where
memory is short, segments are smaller, and each is stored before the next one is begun. An upload that fails
or is cancelled takes its segments away again; what a crash leaves behind is an orphan.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final

from overspill_service.archive.retention import MIN_ORPHAN_AGE
from overspill_service.archive.upload_memory import READ_BATCH_BYTES, SMALL_SEGMENT_BYTES
from overspill_service.catalog.records import Segment
from overspill_service.errors import StoreUnavailable
from overspill_service.store_format.index import Index, trailer
from overspill_service.store_format.object_keys import capture_prefix, segment_key

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from overspill_service.archive.upload_memory import UploadMemory
    from overspill_service.objects import ObjectStore
    from overspill_service.resources.cpu import CpuThreads
    from overspill_service.store_format.frames import Frame
    from overspill_service.store_format.ingest import Framed, Ingest

SEGMENT_SIZE: Final = 16 * 2**20
"""Stored bytes after which a segment is closed and another begun."""
SEGMENT_FRAMES: Final = 3072
"""Frames after which a segment is closed however well they compress: its index stays quick to read."""
COPY_BYTES: Final = 2 * 2**20
"""Bytes of a segment that are read at once to store it under another key: a read may need twice its size."""
CLEANUP_SECONDS: Final = 10.0
"""How long a failed upload waits for the segment on its way, and then for what it stored to be deleted."""

log = logging.getLogger(__name__)


class Upload:
    """Segments of one capture under `{tenant}/{capture}/{upload}`; used once, by one task."""

    def __init__(
        self,
        store: ObjectStore,
        cpu: CpuThreads,
        memory: UploadMemory,
        *,
        tenant: str,
        capture: str,
        upload: str,
        is_rekeyed: bool = False,
    ) -> None:
        """`is_rekeyed`: the capture's id is known at the end only, so room to copy a segment is kept."""
        self._store, self._cpu, self._memory, self._is_rekeyed = store, cpu, memory, is_rekeyed
        self.tenant, self.capture, self.name = tenant, capture, upload
        self._previous_keys: list[str] = []
        """Keys that the segments had under another capture id, as long as they may be there."""
        self._frames: list[Framed] = []
        self._stored = 0
        self._size = 0
        self._newlines = 0
        self._copy_reserve = 0
        """Bytes of memory that are kept to copy the largest segment."""
        self._started = time.monotonic()
        self.frames: list[list[Frame]] = []
        self._put_task: asyncio.Task[None] | None = None
        self.segments: list[Segment] = []
        """The objects stored so far; `frames` are theirs."""

    @property
    def keys(self) -> list[str]:
        return [self._key(number) for number in range(len(self.segments))]

    @property
    def newlines(self) -> int:
        return self._newlines + sum(frame.newlines for frame, _ in self._frames)

    async def fill(self, ingest: Ingest, body: AsyncIterator[bytes]) -> None:
        """Take the whole body; every segment but the last is in the store or on its way afterwards."""
        async for chunks, is_last in read_batches(body):
            steps = ingest.take(chunks, is_last=is_last)
            more, runs_inline = True, ingest.runs_inline(chunks, is_last=is_last)
            while more:
                frames, more = next(steps) if runs_inline else await self._cpu.run(next, steps)
                runs_inline = False
                if ingest.is_refused_as_frame:
                    await self._memory.decode()
                for frame in frames:
                    await self._add(frame)

    async def seal(self, entry: bytes) -> None:
        """Store the last segment, which holds the whole entry: the commit to the object store."""
        await self._put(entry, is_last=True)
        await self._wait_for_put()
        if time.monotonic() - self._started > MIN_ORPHAN_AGE:
            await self._require_all_segments()

    async def rekey(self, capture: str) -> None:
        """Give the segments stored so far the keys of another capture id, one segment in memory at a time."""
        await self._wait_for_put()
        self._previous_keys, self.capture = self.keys, capture
        for number, previous in enumerate(self._previous_keys):
            size = self.segments[number].stored_size
            starts = range(0, size, COPY_BYTES)
            pieces = [await self._store.read(previous, at, min(COPY_BYTES, size - at)) for at in starts]
            await self._store.put(self._key(number), pieces)
        await self._store.delete(self._previous_keys)
        self._previous_keys = []

    async def discard(self) -> None:
        """Stop, and take away what was stored. What cannot be removed now is left to the sweep."""
        await self._stop()
        if not self.segments:
            return
        try:
            async with asyncio.timeout(CLEANUP_SECONDS):
                await self._store.delete([*self.keys, *self._previous_keys])
        except (StoreUnavailable, TimeoutError) as error:
            log.warning("left %d segments of an abandoned upload to the sweep: %s", len(self.segments), error)

    async def _stop(self) -> None:
        """Let the segment on its way arrive, or a deletion might overtake it; give up one that does not."""
        if self._put_task is None:
            return
        try:
            await asyncio.wait([self._put_task], timeout=CLEANUP_SECONDS)
        finally:
            self._put_task.cancel()
        await asyncio.wait([self._put_task])
        if not self._put_task.cancelled():
            self._put_task.exception()  # it failed too, which changes nothing

    async def _add(self, framed: Framed) -> None:
        size = SMALL_SEGMENT_BYTES if self._memory.is_short else SEGMENT_SIZE
        if self._stored >= size or len(self._frames) >= SEGMENT_FRAMES:
            await self._put(b"", is_last=False)
        while not self._memory.segments.try_use(framed[0].stored_size):
            await self._make_room()
        self._frames.append(framed)
        self._stored += framed[0].stored_size

    async def _make_room(self) -> None:
        """Wait until the segment on its way is stored; where none is, store the frames that there are."""
        if self._put_task is None:
            if not self._frames:
                raise RuntimeError("an upload has no memory for one frame")
            await self._put(b"", is_last=False)
        await self._wait_for_put()

    async def _put(self, entry: bytes, *, is_last: bool) -> None:
        frames = [frame for frame, _ in self._frames]
        number = len(self.segments)
        index = Index(
            number=number,
            last=is_last,
            first_offset=self._size,
            first_newline=self._newlines,
            frames=frames,
            entry=entry,
            upload=self.name,
        )
        pieces = [data for _, data in self._frames]
        pieces.append(await self._cpu.run_for_frames(len(frames), trailer, index))
        size, newlines = sum(f.size for f in frames), sum(f.newlines for f in frames)
        await self._wait_for_put()
        self.segments.append(Segment(sum(map(len, pieces)), size, newlines))
        self.frames.append(frames)
        self._size, self._newlines = self._size + size, self._newlines + newlines
        held, self._frames, self._stored = self._stored, [], 0
        self._put_task = asyncio.ensure_future(self._store_segment(self._key(number), pieces, held))

    async def _store_segment(self, key: str, pieces: list[bytes], held: int) -> None:
        """Store a segment whose frames hold so much memory, and give that back."""
        try:
            await self._store.put(key, pieces)
        finally:
            reserve = max(self._copy_reserve, held) if self._is_rekeyed else 0
            self._memory.segments.release(held + self._copy_reserve - reserve)
            self._copy_reserve = reserve

    async def _require_all_segments(self) -> None:
        """Raise `StoreUnavailable` where a sweep has taken segments of this slow upload for orphans."""
        prefix = f"{capture_prefix(self.tenant, self.capture)}{self.name}-"
        listed = {stored.key async for stored in self._store.list(prefix)}
        if not listed.issuperset(self.keys):
            raise StoreUnavailable("segments of this upload were removed: it took too long; send it again")

    def _key(self, number: int) -> str:
        return segment_key(self.tenant, self.capture, self.name, number)

    async def _wait_for_put(self) -> None:
        """Wait for the segment that is on its way."""
        if self._put_task is not None:
            await asyncio.wait([self._put_task])  # to await it itself would cancel it with its caller
            arrived, self._put_task = self._put_task, None
            arrived.result()


async def read_batches(body: AsyncIterator[bytes]) -> AsyncIterator[tuple[list[bytes], bool]]:
    """The body in lists of chunks of about `READ_BATCH_BYTES` bytes, each with whether it is the last."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in body:
        if size >= READ_BATCH_BYTES:
            yield chunks, False
            chunks, size = [], 0
        chunks.append(chunk)
        size += len(chunk)
    yield chunks, True
