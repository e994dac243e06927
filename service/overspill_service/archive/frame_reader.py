"""The content of one capture: fetch stored bytes in blocks, decode them in threads, some frames ahead.

The bytes fetched are in proportion to the bytes asked for: a small read is one request for one frame. The
memory of a read is part of the process's memory budget.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Final, Generic, Self, TypeVar

from overspill.reading.chunks import Chunk

from overspill_service.archive.prefetch import Block, Fetcher, Pace
from overspill_service.errors import ObjectMissing
from overspill_service.store_format.frames import decode_frame

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence

    from overspill_service.catalog.records import Entry
    from overspill_service.objects import ObjectStore
    from overspill_service.resources.cpu import Workers
    from overspill_service.resources.memory_budget import MemoryQueue, MemoryShare
    from overspill_service.store_format.frame_map import FrameMap, Span

T = TypeVar("T")

MAX_BATCH_FRAMES: Final = 4
"""Frames that a thread decodes in one call, at most: about 2 MiB of content."""


class Reader:
    """Reads one capture. Raises `CaptureDamaged` instead of returning a wrong byte.

    Every read raises `Overloaded`, before its first result, if no memory came free in time.
    """

    def __init__(
        self, store: ObjectStore, cpu: Workers, memory: MemoryQueue, entry: Entry, frames: FrameMap
    ) -> None:
        self._store, self._cpu, self._memory = store, cpu, memory
        self.entry, self.frames = entry, frames
        self._held: Sequence[MemoryShare] = ()

    @asynccontextmanager
    async def with_memory(self, size: int) -> AsyncIterator[Self]:
        """Hold the memory for all reads of the block, one after the other, and `size` bytes more.

        Yield a reader that uses it. Raises `Overloaded`.
        """
        reader = type(self)(self._store, self._cpu, self._memory, self.entry, self.frames)
        largest = self.frames.largest(range(len(self.frames)))
        async with self._memory.shares(self.entry.tenant, size, *largest) as (_, *held):
            reader.use(held)
            yield reader

    def use(self, shares: Sequence[MemoryShare]) -> None:
        """Use memory that is held already, for all reads."""
        self._held = shares

    @asynccontextmanager
    async def _shares(self, frames: range) -> AsyncIterator[Sequence[MemoryShare]]:
        """Hold memory for the largest of these frames, stored and decoded."""
        if not self._held:
            async with self._memory.shares(self.entry.tenant, *self.frames.largest(frames)) as shares:
                yield shares
            return
        try:
            yield self._held
        finally:
            for share in self._held:
                share.close()

    async def stored_frames(self) -> AsyncGenerator[tuple[range, bytes], None]:
        """Yield the numbers and the stored bytes of all frames, some at a time.

        Each frame's checksum is compared with the frame map's.
        """
        frames, pace = range(len(self.frames)), Pace()
        stored, _ = self.frames.largest(frames)
        fetcher = Fetcher(self._fetch, self.frames, frames)
        async with (
            self._memory.shares(self.entry.tenant, stored) as [share],
            aclosing(fetcher.blocks(share, pace)) as blocks,
        ):
            async for block in blocks:
                self.frames.check_stored(block.frames, block.data)
                pace.sent()
                yield block.frames, block.data
                pace.consumed(len(block.data))

    async def chunks(self, frames: range) -> AsyncGenerator[Sequence[Chunk], None]:
        """Yield these frames decoded, in batches."""
        async with aclosing(self.map(frames, unchanged)) as batches:
            async for batch in batches:
                yield batch

    async def map(
        self, frames: range, work: Callable[[Chunk], T], *, is_reversed: bool = False
    ) -> AsyncGenerator[Sequence[T], None]:
        """Yield the results of `work` on each decoded frame, in order or reversed.

        `work` runs in threads on several frames at once. Until the first result is consumed only one frame is
        decoded, because most reads end with it. The same holds for a slow reader.
        """
        fetcher, pace = Fetcher(self._fetch, self.frames, frames, is_reversed=is_reversed), Pace()
        async with self._shares(frames) as (stored, raw):
            batches = _Batches[T](self._cpu.threads + 1, raw, pace)
            try:
                async with aclosing(fetcher.blocks(stored, pace)) as blocks:
                    async for block in blocks:
                        rest = block.frames[::-1] if is_reversed else block.frames
                        while rest:
                            if batch := batches.next_range(rest, self.frames):
                                rest = rest[len(batch) :]
                                first = block.frames.start
                                job = self._cpu.start(self._decode, block.data, first, batch, work)
                                batches.add(job, self.frames.size_of(batch), block if not rest else None)
                            if not batch or batches.is_full:
                                yield await batches.next()
                                batches.consumed()
                while batches:
                    yield await batches.next()
                    batches.consumed()
            finally:
                await batches.close()

    async def content(self, start: int, stop: int) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of the content from `start` up to `stop`."""
        async with aclosing(self.chunks(self.frames.frames_of_bytes(start, stop))) as batches:
            async for batch in batches:
                for chunk in batch:
                    low, high = max(start - chunk.start, 0), min(stop - chunk.start, len(chunk.data))
                    yield chunk.data if (low, high) == (0, len(chunk.data)) else chunk.data[low:high]

    def _decode(self, data: bytes, first: int, batch: range, work: Callable[[Chunk], T]) -> list[T]:
        """Decode the frames of `batch`, in its order. `data` is a block that begins with frame `first`."""
        return [work(self._chunk(data, first, number)) for number in batch]

    def _chunk(self, data: bytes, first: int, number: int) -> Chunk:
        frames, frame = self.frames, self.frames[number]
        start = frames.stored_start(number) - frames.stored_start(first)
        stored = memoryview(data)[start : start + frame.stored_size]
        content = decode_frame(stored, frame, newlines_checked=bool(frames.newlines_checked[number]))
        frames.newlines_checked[number] = True  # later reads need not count them again
        return Chunk(content, frames.raw_start(number), frames.first_newline(number), frame.utf8)

    async def _fetch(self, span: Span) -> bytes:
        entry = self.entry
        try:
            return await self._store.read(entry.segment_key(span.segment), span.start, span.length)
        except KeyError as error:
            raise ObjectMissing(entry.id, entry.upload, span.segment) from error


def unchanged(chunk: Chunk) -> Chunk:
    return chunk


class _Batches(Generic[T]):
    """Batches that are being decoded, at most `limit`, in order.

    `share` accounts for them until they are consumed.
    """

    def __init__(self, limit: int, share: MemoryShare, pace: Pace) -> None:
        self._limit, self._share, self._pace = limit, share, pace
        self._running: deque[tuple[asyncio.Future[list[T]], int, Block | None]] = deque()
        self._size = self._wanted = 1
        self._held = 0

    def __len__(self) -> int:
        return len(self._running)

    @property
    def is_full(self) -> bool:
        """Whether a batch must be consumed before the next one is started."""
        return len(self) >= self._wanted

    def next_range(self, frames: range, frame_map: FrameMap) -> range:
        """Return the first frames that there is memory for, none if a batch must end first."""
        for batch in (frames[: self._size], frames[:1]):
            size = frame_map.size_of(batch)
            if self._share.try_use(size):
                return batch
        return range(0)

    def add(self, job: asyncio.Future[list[T]], size: int, block: Block | None) -> None:
        """Add a batch of `size` bytes. `block` is released when the batch is done."""
        self._running.append((job, size, block))
        self._size = min(2 * self._size, MAX_BATCH_FRAMES)

    async def next(self) -> list[T]:
        """Return the results of the first batch. The caller holds them until it calls `consumed`."""
        job, self._held, block = self._running.popleft()
        results = await job
        if block is not None:
            block.release()
        self._pace.sent()
        return results

    def consumed(self) -> None:
        """Note that the reader is done with the results of the last `next`."""
        self._pace.consumed(self._held)
        self._share.release(self._held)
        self._wanted = 1 if self._pace.is_slow else self._limit
        if self._pace.is_slow:
            self._size = 1

    async def close(self) -> None:
        """Cancel the batches that are still being decoded."""
        jobs = [job for job, _, _ in self._running]
        for job in jobs:
            job.cancel()
        if jobs:
            await asyncio.wait(jobs)
