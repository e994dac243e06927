"""One upload: turn a body into segments in the object store, with constant memory.

One segment is stored while the next is compressed; no more than two are in memory. While memory is short,
segments are smaller, and each is stored before the next one begins. A segment is stored only if the tenant's
quota has room for it. An upload that fails or is cancelled deletes its segments. What a crash leaves behind
is an orphan.
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
from overspill_service.resources.tasks import fan_out
from overspill_service.store_format.index import Index, trailer
from overspill_service.store_format.object_keys import capture_prefix, segment_key

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from overspill_service.archive.reservations import Reservation
    from overspill_service.archive.upload_memory import UploadMemory
    from overspill_service.objects import ObjectStore
    from overspill_service.resources.cpu import CpuThreads, Workers
    from overspill_service.store_format.frames import Frame
    from overspill_service.store_format.ingest import Framed, Ingest

SEGMENT_SIZE: Final = 16 * 2**20
"""Stored bytes after which a segment is closed."""
SEGMENT_FRAMES: Final = 3072
"""Frames after which a segment is closed, however small they are: then its index stays quick to read."""
CONCURRENT_COPIES: Final = 4
"""Segments that are copied to another key at the same time."""
CLEANUP_SECONDS: Final = 10.0
"""How long a failed upload waits for the segment that is being stored, and then for the deletion."""
SWEPT: Final = "segments of this upload were removed: it took too long; send it again"

log = logging.getLogger(__name__)


class Upload:
    """Segments of one capture under `{tenant}/{capture}/{upload}`. Used once, by one task."""

    def __init__(
        self,
        store: ObjectStore,
        cpu: CpuThreads,
        memory: UploadMemory,
        reservation: Reservation,
        *,
        capture: str,
    ) -> None:
        self._store, self._cpu, self._memory = store, cpu, memory
        self.tenant, self.capture, self.name = reservation.tenant, capture, reservation.upload
        self.reservation = reservation
        self._previous_keys: list[str] = []
        """Keys of the segments under the previous capture id, while objects may exist there."""
        self._frames: list[Framed] = []
        self._stored = 0
        self._size = 0
        self._newlines = 0
        self._started = time.monotonic()
        self.frames: list[list[Frame]] = []
        self._put_task: asyncio.Task[None] | None = None
        self.segments: list[Segment] = []
        """The objects stored so far. `frames` has their frames."""

    @property
    def keys(self) -> list[str]:
        return [self._key(number) for number in range(len(self.segments))]

    @property
    def _stored_in_all(self) -> int:
        return sum(segment.stored_size for segment in self.segments)

    @property
    def newlines(self) -> int:
        return self._newlines + sum(frame.newlines for frame, _ in self._frames)

    async def fill(self, ingest: Ingest, body: AsyncIterator[bytes], workers: Workers | None = None) -> None:
        """Take the whole body. Afterwards every segment except the last is stored, or on its way.

        `workers` decode, hash and compress it; by default the threads that the upload was made with.
        """
        threads = workers or self._cpu
        async for chunks, is_last in read_batches(body):
            steps = ingest.take(chunks, is_last=is_last)
            more, runs_inline = True, ingest.runs_inline(chunks, is_last=is_last)
            while more:
                frames, more = next(steps) if runs_inline else await threads.run(next, steps)
                runs_inline = False
                if ingest.is_refused_as_frame:  # it has to be decoded, for which no memory was taken
                    await self._memory.decode()
                for frame in frames:
                    await self.add(frame)

    async def seal(self, entry: bytes) -> None:
        """Store the last segment. It holds the whole entry, so this commits the capture to the store."""
        await self._put(entry, is_last=True)
        await self._wait_for_put()
        if time.monotonic() - self._started > MIN_ORPHAN_AGE:
            await self._require_all_segments()

    async def rekey(self, capture: str) -> None:
        """Move the stored segments to keys of another capture id. The store copies them."""
        await self._wait_for_put()
        self._previous_keys, self.capture = self.keys, capture
        moves = zip(self._previous_keys, self.keys, strict=True)
        try:
            await fan_out(lambda move: self._store.copy(*move), moves, concurrency=CONCURRENT_COPIES)
        except KeyError as error:
            raise StoreUnavailable(SWEPT) from error
        await self._store.delete(self._previous_keys)
        self._previous_keys = []

    async def discard(self) -> None:
        """Stop, and delete what was stored. What cannot be deleted now is left to the sweep."""
        await self._stop()
        await self.reservation.free()
        if not self.segments:
            return
        try:
            async with asyncio.timeout(CLEANUP_SECONDS):
                await self._store.delete([*self.keys, *self._previous_keys])
        except (StoreUnavailable, TimeoutError) as error:
            log.warning("left %d segments of an abandoned upload to the sweep: %s", len(self.segments), error)

    async def _stop(self) -> None:
        """Wait for the segment that is being stored: a deletion must not overtake it.

        Cancel it after a while.
        """
        if self._put_task is None:
            return
        try:
            await asyncio.wait([self._put_task], timeout=CLEANUP_SECONDS)
        finally:
            self._put_task.cancel()
        await asyncio.wait([self._put_task])
        if not self._put_task.cancelled():
            self._put_task.exception()  # read its failure, or asyncio reports it as never retrieved

    async def add(self, framed: Framed) -> None:
        """Take one more frame. If the segment is full with it, it is stored in the background."""
        size = SMALL_SEGMENT_BYTES if self._memory.is_short else SEGMENT_SIZE
        if self._stored >= size or len(self._frames) >= SEGMENT_FRAMES:
            await self._put(b"", is_last=False)
        while not self._memory.segments.try_use(framed[0].stored_size):
            await self._make_room()
        self._frames.append(framed)
        self._stored += framed[0].stored_size

    async def _make_room(self) -> None:
        """Wait until the segment that is being stored is done. If there is none, store the frames so far."""
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
        size, newlines = sum(each.size for each in frames), sum(each.newlines for each in frames)
        await self._wait_for_put()
        stored_size = sum(map(len, pieces))
        await self.reservation.cover(size=self._size + size, stored_size=self._stored_in_all + stored_size)
        self.segments.append(Segment(stored_size, size, newlines))
        self.frames.append(frames)
        self._size, self._newlines = self._size + size, self._newlines + newlines
        held_size, self._frames, self._stored = self._stored, [], 0
        self._put_task = asyncio.ensure_future(self._store_segment(self._key(number), pieces, held_size))

    async def _store_segment(self, key: str, pieces: list[bytes], held_size: int) -> None:
        """Store a segment, then give back the `held_size` bytes of memory of its frames."""
        try:
            await self._store.put(key, pieces)
        finally:
            self._memory.segments.release(held_size)

    async def _require_all_segments(self) -> None:
        """Raise `StoreUnavailable` if a sweep has deleted segments of this slow upload as orphans."""
        prefix = f"{capture_prefix(self.tenant, self.capture)}{self.name}-"
        listed = {stored.key async for stored in self._store.list(prefix)}
        if not listed.issuperset(self.keys):
            raise StoreUnavailable(SWEPT)

    def _key(self, number: int) -> str:
        return segment_key(self.tenant, self.capture, self.name, number)

    async def _wait_for_put(self) -> None:
        """Wait for the segment that is being stored, and raise its failure."""
        if self._put_task is not None:
            # Not awaited itself: that would cancel the put with its caller.
            await asyncio.wait([self._put_task])
            arrived, self._put_task = self._put_task, None
            arrived.result()


async def read_batches(body: AsyncIterator[bytes]) -> AsyncIterator[tuple[list[bytes], bool]]:
    """Yield the body in lists of about `READ_BATCH_BYTES`, each with whether it is the last."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in body:
        if size >= READ_BATCH_BYTES:
            yield chunks, False
            chunks, size = [], 0
        chunks.append(chunk)
        size += len(chunk)
    yield chunks, True
