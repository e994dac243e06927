"""The part of the process's memory budget that one upload holds.

    working     the body as it comes, its decoder, and the frame that is being filled
    segments    stored frames: of the segment that is being filled, and of the one that is being stored

A short body pays for its own size. A long one pays for segments of `SMALL_SEGMENT_BYTES`. It gets larger
segments while there is plenty of memory.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill_service.store_format.decoding import PIECE_SIZE, WINDOW_SIZE
from overspill_service.store_format.frames import FRAME_SIZE, STORED_SIZE_LIMIT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from overspill_service.resources.memory_budget import MemoryBudget, MemoryShare

READ_BATCH_BYTES: Final = 512 * 1024
"""Bytes of a body that are collected before a thread works on them."""
SMALL_SEGMENT_BYTES: Final = 4 * 2**20
"""Stored bytes after which a segment is closed while memory is short."""
OBJECT_OVERHEAD: Final = 64 * 1024
"""Bytes for the Python objects around a body and its frames."""
SOCKET_BUFFER_BYTES: Final = 768 * 1024
"""Bytes of a body in aiohttp's buffers: twice the server's `READ_BUFFER`, and one read more."""
WORKING_BYTES: Final = SOCKET_BUFFER_BYTES + READ_BATCH_BYTES + SOCKET_BUFFER_BYTES + FRAME_SIZE
GZIP_STATE_BYTES: Final = 64 * 1024


class MemoryNeed(NamedTuple):
    """The bytes that an upload needs at least, of each kind."""

    working: int
    segments: int


def memory_need(encoding: str | None, length: int | None) -> MemoryNeed:
    """Return what a body needs, by its `Content-Encoding` as `BodyDecoder` knows it, and its length if known.

    A short zstd body is expected to be one frame that is stored as it is.
    """
    segments = SMALL_SEGMENT_BYTES + STORED_SIZE_LIMIT
    if encoding is None and length is None:
        return MemoryNeed(WORKING_BYTES, segments)
    if encoding is None and length is not None:
        stored = length + length // 128 + OBJECT_OVERHEAD
        return MemoryNeed(min(2 * length + OBJECT_OVERHEAD, WORKING_BYTES), min(stored, segments))
    if encoding == "zstd" and length is not None and length <= READ_BATCH_BYTES:
        return MemoryNeed(length + FRAME_SIZE + OBJECT_OVERHEAD, length + OBJECT_OVERHEAD)
    state = WINDOW_SIZE if encoding == "zstd" else GZIP_STATE_BYTES
    return MemoryNeed(WORKING_BYTES + PIECE_SIZE + state, segments)


class UploadMemory:
    """The memory that one upload holds. Made by `upload_memory`."""

    def __init__(
        self, budget: MemoryBudget, tenant: str, stack: AsyncExitStack, encoding: str | None
    ) -> None:
        self._budget, self._tenant, self._stack, self._encoding = budget, tenant, stack, encoding
        self.segments: MemoryShare

    @property
    def is_short(self) -> bool:
        """Whether other requests wait for memory."""
        return self._budget.has_waiting

    async def enter(self, need: MemoryNeed) -> None:
        """Wait in the queue for the memory. Raises `Overloaded`."""
        shares = self._budget.queue_for(sum(need)).shares(self._tenant, *need)
        _, self.segments = await self._stack.enter_async_context(shares)

    async def decode(self) -> None:
        """Get memory to decode a short body that cannot be stored as it is: it may decode to any size.

        The present memory is given back first, so that two uploads never wait for each other. Raises
        `Overloaded`.
        """
        await self._stack.aclose()
        await self.enter(memory_need(self._encoding, None))


@asynccontextmanager
async def upload_memory(
    budget: MemoryBudget, tenant: str, encoding: str | None, length: int | None
) -> AsyncIterator[UploadMemory]:
    """Wait for the memory that a body needs, and hold it. Raises `Overloaded`.

    The other parameters are those of `memory_need`.
    """
    async with AsyncExitStack() as stack:
        memory = UploadMemory(budget, tenant, stack, encoding)
        await memory.enter(memory_need(encoding, length))
        yield memory
