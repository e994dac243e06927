"""The content of one capture: stored bytes fetched in windows, decoded in threads, some steps ahead.

Bytes fetched are proportional to what is asked for: a small read is one request for one frame. What a
read holds is accounted for in the process's budget.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from overspill.reading.chunks import Chunk

from overspill_service.archive.prefetch import Fetcher, Pace, Window
from overspill_service.errors import ObjectMissing
from overspill_service.store_format.frames import decode_frame
from overspill_service.store_format.object_keys import segment_key

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence

    from overspill_service.catalog.records import Entry
    from overspill_service.objects import ObjectStore
    from overspill_service.resources.cpu import CpuThreads
    from overspill_service.resources.memory_budget import MemoryQueue, MemoryShare
    from overspill_service.store_format.frame_map import FrameMap, Span

T = TypeVar("T")

MAX_BATCH_FRAMES: Final = 4
"""Frames decoded by one thread at a go, at most: about 2 MiB of content."""


class Reader:
    """Reads one complete capture. Raises `CaptureDamaged` rather than ever giving a wrong byte.

    Every read raises `Overloaded` where it waited too long for memory; it does so before it gives anything.
    """

    def __init__(
        self, store: ObjectStore, cpu: CpuThreads, memory: MemoryQueue, entry: Entry, frames: FrameMap
    ) -> None:
        self._store, self._cpu, self._memory = store, cpu, memory
        self.entry, self.frames = entry, frames
        self._held: Sequence[MemoryShare] = ()

    @asynccontextmanager
    async def with_memory(self, size: int) -> AsyncIterator[Reader]:
        """A reader that has its memory for all of its reads, one after the other, and `size` bytes besides.

        Raises `Overloaded`.
        """
        reader = Reader(self._store, self._cpu, self._memory, self.entry, self.frames)
        largest = self.frames.largest(range(len(self.frames)))
        async with self._memory.shares(size, *largest) as (_, *reader._held):
            yield reader

    @asynccontextmanager
    async def _shares(self, frames: range) -> AsyncIterator[Sequence[MemoryShare]]:
        """Memory for one of these frames, stored and decoded."""
        if not self._held:
            async with self._memory.shares(*self.frames.largest(frames)) as shares:
                yield shares
            return
        try:
            yield self._held
        finally:
            for share in self._held:
                share.close()

    async def undecoded(self) -> AsyncGenerator[bytes, None]:
        """The whole capture as stored frames, each of which is known to be the one listed in its place."""
        frames, pace = range(len(self.frames)), Pace()
        stored, _ = self.frames.largest(frames)
        fetcher = Fetcher(self._fetch, self.frames, frames)
        async with (
            self._memory.shares(stored) as [share],
            aclosing(fetcher.windows(share, pace)) as windows,
        ):
            async for window in windows:
                self.frames.check_stored(window.frames, window.data)
                pace.sent()
                yield window.data
                pace.consumed(len(window.data))

    async def chunks(self, frames: range) -> AsyncGenerator[Sequence[Chunk], None]:
        """These frames decoded, in batches."""
        async with aclosing(self.map(frames, _identity)) as batches:
            async for batch in batches:
                yield batch

    async def map(
        self, frames: range, work: Callable[[Chunk], T], *, is_reversed: bool = False
    ) -> AsyncGenerator[Sequence[T], None]:
        """What `work` makes of each decoded frame, in order; from the last to the first if `is_reversed`.

        `work` runs in threads, for several frames at once; but nothing more is begun before the first frame
        has been taken, since with it most reads end, nor for a reader that is slow.
        """
        fetcher, pace = Fetcher(self._fetch, self.frames, frames, is_reversed=is_reversed), Pace()
        async with self._shares(frames) as (stored, raw):
            batches = _Batches[T](self._cpu.threads + 1, raw, pace)
            try:
                async with aclosing(fetcher.windows(stored, pace)) as windows:
                    async for window in windows:
                        rest = window.frames[::-1] if is_reversed else window.frames
                        while rest:
                            if batch := batches.fitting(rest, self.frames):
                                rest = rest[len(batch) :]
                                first = window.frames.start
                                job = self._cpu.start(self._decode, window.data, first, batch, work)
                                batches.add(job, self.frames.size_of(batch), window if not rest else None)
                            if not batch or batches.is_full:
                                yield await batches.next()
                                batches.consumed()
                while batches:
                    yield await batches.next()
                    batches.consumed()
            finally:
                await batches.close()

    async def content(self, start: int, stop: int) -> AsyncGenerator[bytes, None]:
        """The bytes of the content from `start` up to `stop`."""
        async with aclosing(self.chunks(self.frames.frames_of_bytes(start, stop))) as batches:
            async for batch in batches:
                for chunk in batch:
                    low, high = max(start - chunk.start, 0), min(stop - chunk.start, len(chunk.data))
                    yield chunk.data if (low, high) == (0, len(chunk.data)) else chunk.data[low:high]

    def _decode(self, data: bytes, first: int, batch: range, work: Callable[[Chunk], T]) -> list[T]:
        """The frames of `batch`, in its order, out of a window that begins with frame `first`."""
        return [work(self._chunk(data, first, number)) for number in batch]

    def _chunk(self, data: bytes, first: int, number: int) -> Chunk:
        frames, frame = self.frames, self.frames[number]
        start = frames.stored_start(number) - frames.stored_start(first)
        stored = memoryview(data)[start : start + frame.stored_size]
        content = decode_frame(stored, frame, newlines_checked=bool(frames.newlines_checked[number]))
        frames.newlines_checked[number] = True
        return Chunk(content, frames.raw_start(number), frames.first_newline(number), frame.utf8)

    async def _fetch(self, span: Span) -> bytes:
        entry = self.entry
        key = segment_key(entry.tenant, entry.id, entry.upload, span.segment)
        try:
            return await self._store.read(key, span.start, span.length)
        except KeyError as error:
            raise ObjectMissing(entry.id, entry.upload, span.segment) from error


def _identity(chunk: Chunk) -> Chunk:
    return chunk


class _Batches(Generic[T]):
    """Decoding under way: at most `most` batches, in order, accounted for in `share` until they were used."""

    def __init__(self, most: int, share: MemoryShare, pace: Pace) -> None:
        self._most, self._share, self._pace = most, share, pace
        self._running: deque[tuple[asyncio.Future[list[T]], int, Window | None]] = deque()
        self._size = self._wanted = 1
        self._held = 0

    def __len__(self) -> int:
        return len(self._running)

    @property
    def is_full(self) -> bool:
        """Whether one is to be taken before the next is begun."""
        return len(self) >= self._wanted

    def fitting(self, frames: range, frame_map: FrameMap) -> range:
        """The first of these frames that may be decoded now; none where a batch must be taken first."""
        for batch in (frames[: self._size], frames[:1]):
            size = frame_map.size_of(batch)
            if self._share.try_use(size):
                return batch
        return range(0)

    def add(self, job: asyncio.Future[list[T]], size: int, window: Window | None) -> None:
        """Wait for a batch of `size` bytes too; `window` is no longer needed when it is done."""
        self._running.append((job, size, window))
        self._size = min(2 * self._size, MAX_BATCH_FRAMES)

    async def next(self) -> list[T]:
        """What has become of the first batch under way; hold it until `consumed` is called."""
        job, self._held, window = self._running.popleft()
        results = await job
        if window is not None:
            window.release()
        self._pace.sent()
        return results

    def consumed(self) -> None:
        """Note that the reader is through with what `next` gave."""
        self._pace.consumed(self._held)
        self._share.release(self._held)
        self._wanted = 1 if self._pace.is_slow else self._most
        if self._pace.is_slow:
            self._size = 1

    async def close(self) -> None:
        """Stop what is under way."""
        jobs = [job for job, _, _ in self._running]
        for job in jobs:
            job.cancel()
        if jobs:
            await asyncio.wait(jobs)
