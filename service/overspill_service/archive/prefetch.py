"""Fetch stored frames from the object store: blocks of whole frames, with the next block prefetched.

The first block is small, because most reads end early. Each next one is twice as large. A slow reader, or a
reader while memory is short, gets one block at a time, of a single frame if need be.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from overspill_service.resources.memory_budget import MemoryShare
    from overspill_service.store_format.frame_map import FrameMap, Span

FIRST_BLOCK_BYTES: Final = 256 * 1024
MAX_BLOCK_BYTES: Final = 4 * 2**20
"""Stored bytes that one request fetches, at most."""
SLOW_SECONDS: Final = 0.25
SLOW_RATE: Final = 4 * 2**20
"""Bytes a second. Prefetching does not help a reader that is `SLOW_SECONDS` slower than this."""


class Pace:
    """The speed at which a reader consumes data."""

    def __init__(self) -> None:
        self.is_slow = False
        self._since = 0.0

    def sent(self) -> None:
        """Note that the reader has got data."""
        self._since = time.monotonic()

    def consumed(self, size: int) -> None:
        """Note that the reader has consumed `size` bytes."""
        self.is_slow = time.monotonic() - self._since > SLOW_SECONDS + size / SLOW_RATE


class Block:
    """Fetched frames. A share of memory accounts for them until `release`."""

    def __init__(self, span: Span, share: MemoryShare) -> None:
        self.frames, self.data = span.frames, b""
        self._size_held, self._share = span.length, share

    def release(self) -> None:
        """Free the bytes. A second call does nothing."""
        self.data = b""
        self._share.release(self._size_held)
        self._size_held = 0


class Fetcher:
    """Fetches the stored bytes of `frames`, with one call of `fetch` for each block."""

    def __init__(
        self,
        fetch: Callable[[Span], Awaitable[bytes]],
        frame_map: FrameMap,
        frames: range,
        *,
        is_reversed: bool = False,
    ) -> None:
        self._fetch, self._map, self._rest, self._is_reversed = fetch, frame_map, frames, is_reversed
        self._size = FIRST_BLOCK_BYTES

    async def blocks(self, share: MemoryShare, pace: Pace) -> AsyncGenerator[Block, None]:
        """Yield the blocks in order, or from last to first. The next call releases the block before it.

        `share` has room for any one frame.
        """
        prefetched: asyncio.Future[Block] | None = None
        try:
            while prefetched is not None or self._rest:
                if prefetched is None:  # awaited here: a task of its own would begin later
                    block = await self._fetched(*self._first(share, 1 if pace.is_slow else self._size))
                else:
                    block = await prefetched
                prefetched = None if pace.is_slow else self._begin(share)
                yield block
                block.release()
        finally:
            if prefetched is not None:
                prefetched.cancel()
                await asyncio.wait([prefetched])

    def _first(self, share: MemoryShare, size: int) -> tuple[Block, Span]:
        """Return the next block.

        If there is little room, it is a single frame, for which there is always room.
        """
        found = self._next(share, size) or self._next(share, 1)
        if found is None:
            raise RuntimeError("a share has no room for one frame")
        return found

    def _begin(self, share: MemoryShare) -> asyncio.Future[Block] | None:
        """Start to fetch the next block. Return None if there is no room, or if nothing is left."""
        found = self._next(share, self._size)
        return None if found is None else asyncio.ensure_future(self._fetched(*found))

    def _next(self, share: MemoryShare, size: int) -> tuple[Block, Span] | None:
        """Return the next block, of about `size` bytes and at least one frame, and where its bytes are.

        Return None if there is no room, or nothing left.
        """
        if not self._rest:
            return None
        span = self._map.span(self._rest, size, is_reversed=self._is_reversed)
        if not share.try_use(span.length):
            return None
        count = len(span.frames)
        self._rest = self._rest[:-count] if self._is_reversed else self._rest[count:]
        self._size = min(2 * self._size, MAX_BLOCK_BYTES)
        return Block(span, share), span

    async def _fetched(self, block: Block, span: Span) -> Block:
        block.data = await self._fetch(span)
        return block
