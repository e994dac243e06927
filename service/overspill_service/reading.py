"""The content of one capture: stored bytes fetched in windows, decoded in threads, always one step ahead.

Bytes fetched are proportional to what is asked for: a small read is one request for one frame.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import aclosing
from itertools import accumulate
from typing import TYPE_CHECKING, Final, TypeVar

from overspill_service.chunks import Chunk
from overspill_service.cpu import ahead
from overspill_service.errors import CaptureDamaged
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
BATCH: Final = 4
"""Frames decoded by one thread at a go: about 2 MiB of content."""


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

    async def chunks(self, frames: range) -> AsyncGenerator[list[Chunk], None]:
        """These frames decoded, in batches."""
        async with aclosing(self.map(frames, _same)) as batches:
            async for batch in batches:
                yield batch

    async def map(
        self, frames: range, work: Callable[[Chunk], T], *, is_reversed: bool = False
    ) -> AsyncGenerator[list[T], None]:
        """What `work` makes of each decoded frame, in order; from the last to the first if `is_reversed`.

        `work` runs in threads, for several frames at once.
        """
        under_way: deque[asyncio.Future[list[T]]] = deque()
        try:
            async with aclosing(ahead(self.stored(frames, is_reversed=is_reversed))) as windows:
                async for numbers, data in windows:
                    for batch in batches_of(numbers, is_reversed=is_reversed):
                        if len(under_way) == self._cpu.threads:
                            yield await under_way.popleft()
                        decoding = self._cpu.run(self._decode, data, numbers, batch, work)
                        under_way.append(asyncio.ensure_future(decoding))
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

    def _decode(self, data: bytes, numbers: range, batch: range, work: Callable[[Chunk], T]) -> list[T]:
        """The frames of `batch` (in its order) out of a window that holds the frames `numbers`."""
        view, done = memoryview(data), []
        ends = list(accumulate(self.frames[number].stored_size for number in numbers))
        for number in batch:
            frame, stop = self.frames[number], ends[number - numbers.start]
            content = decode_frame(view[stop - frame.stored_size : stop], frame)
            start, newlines = self.frames.raw_start(number), self.frames.first_newline(number)
            done.append(work(Chunk(content, start, newlines, frame.utf8)))
        return done

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
            raise CaptureDamaged(
                f"segment {span.segment} of {entry.id} is missing from the object store"
            ) from error


def batches_of(frames: range, *, is_reversed: bool) -> Iterator[range]:
    """The frames in runs of up to `BATCH`, the first ones shorter; backwards where `is_reversed`."""
    ordered = frames[::-1] if is_reversed else frames
    size = 1
    while ordered:
        yield ordered[:size]
        ordered, size = ordered[size:], min(2 * size, BATCH)


def _same(chunk: Chunk) -> Chunk:
    return chunk
