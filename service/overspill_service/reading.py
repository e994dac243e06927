"""The content of one capture: stored bytes fetched in windows, decoded in threads, always one step ahead.

Bytes fetched are proportional to what is asked for: a small read is one request for one frame.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, TypeVar

from overspill_service.chunks import Chunk
from overspill_service.cpu import ahead
from overspill_service.errors import ObjectMissing
from overspill_service.frames import decode_frame
from overspill_service.object_keys import segment_key

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator

    from overspill_service.catalog import Entry
    from overspill_service.cpu import Cpu
    from overspill_service.frame_map import FrameMap, Span
    from overspill_service.objects import ObjectStore

T = TypeVar("T")

FIRST_WINDOW: Final = 256 * 1024
LARGEST_WINDOW: Final = 4 * 2**20
"""Stored bytes fetched by one request: small at first, since most reads end early, then doubling."""
BATCH: Final = 8
"""Frames decoded by one thread at a go, at most: about 4 MiB of content."""


class Reader:
    """Reads one complete capture. Raises `CaptureDamaged` rather than ever giving a wrong byte."""

    def __init__(self, store: ObjectStore, cpu: Cpu, entry: Entry, frames: FrameMap) -> None:
        self._store, self._cpu = store, cpu
        self.entry, self.frames = entry, frames

    async def stored(
        self, frames: range, *, is_reversed: bool = False
    ) -> AsyncGenerator[tuple[range, bytes], None]:
        """The stored bytes of these frames, in windows of whole frames."""
        for span in self._windows(frames, is_reversed=is_reversed):
            yield span.frames, await self._fetch(span)

    async def undecoded(self) -> AsyncGenerator[bytes, None]:
        """The whole capture as stored frames, each of which is known to be the one listed in its place."""
        async with aclosing(self.stored(range(len(self.frames)))) as windows:
            async for numbers, data in windows:
                self.frames.check_stored(numbers, data)
                yield data

    async def chunks(self, frames: range) -> AsyncGenerator[list[Chunk], None]:
        """These frames decoded, in batches."""
        async with aclosing(self.map(frames, _same)) as batches:
            async for batch in batches:
                yield batch

    async def map(
        self, frames: range, work: Callable[[Chunk], T], *, is_reversed: bool = False
    ) -> AsyncGenerator[list[T], None]:
        """What `work` makes of each decoded frame, in order; from the last to the first if `is_reversed`.

        `work` runs in threads, for several frames at once; but nothing more is begun before the first frame
        has been taken, since with it most reads end.
        """
        under_way: deque[asyncio.Future[list[T]]] = deque()
        size = most = 1
        try:
            async with aclosing(ahead(self.stored(frames, is_reversed=is_reversed))) as windows:
                async for numbers, data in windows:
                    rest = numbers[::-1] if is_reversed else numbers
                    while rest:
                        if len(under_way) == most:
                            yield await under_way.popleft()
                            most = self._cpu.threads + 1
                        batch, rest = rest[:size], rest[size:]
                        under_way.append(self._cpu.start(self._decode, data, numbers.start, batch, work))
                        size = min(2 * size, BATCH)
            while under_way:
                yield await under_way.popleft()
        finally:
            for job in under_way:
                job.cancel()
            if under_way:
                await asyncio.wait(under_way)

    async def content(self, start: int, stop: int) -> AsyncGenerator[bytes, None]:
        """The bytes of the content from `start` up to `stop`."""
        async with aclosing(self.chunks(self.frames.frames_of_bytes(start, stop))) as batches:
            async for batch in batches:
                for chunk in batch:
                    low, high = max(start - chunk.start, 0), min(stop - chunk.start, len(chunk.data))
                    yield chunk.data if (low, high) == (0, len(chunk.data)) else chunk.data[low:high]

    def _decode(self, data: bytes, first: int, batch: range, work: Callable[[Chunk], T]) -> list[T]:
        """The frames of `batch` (in its order) out of a window that begins with frame `first`."""
        return [work(self._chunk(data, first, number)) for number in batch]

    def _chunk(self, data: bytes, first: int, number: int) -> Chunk:
        frames, frame = self.frames, self.frames[number]
        start = frames.stored_start(number) - frames.stored_start(first)
        stored = memoryview(data)[start : start + frame.stored_size]
        content = decode_frame(stored, frame, is_counted=bool(frames.counted[number]))
        frames.counted[number] = True
        return Chunk(content, frames.raw_start(number), frames.first_newline(number), frame.utf8)

    def _windows(self, frames: range, *, is_reversed: bool) -> Iterator[Span]:
        """Requests that cover the frames: whole frames of one segment each, small ones first."""
        size, first = FIRST_WINDOW, 0
        ordered = frames[::-1] if is_reversed else frames
        while first < len(ordered):
            last, stored = first, 0
            while last < len(ordered) and (last == first or stored < size):
                stored += self.frames[ordered[last]].stored_size
                last += 1
            part = ordered[first:last]
            spans = self.frames.spans(part[::-1] if is_reversed else part)
            yield from spans[::-1] if is_reversed else spans
            first, size = last, min(2 * size, LARGEST_WINDOW)

    async def _fetch(self, span: Span) -> bytes:
        entry = self.entry
        key = segment_key(entry.tenant, entry.id, entry.upload, span.segment)
        try:
            return await self._store.read(key, span.start, span.length)
        except KeyError as error:
            raise ObjectMissing(entry.id, entry.upload, span.segment) from error


def _same(chunk: Chunk) -> Chunk:
    return chunk
