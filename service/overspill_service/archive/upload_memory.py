"""The memory that one upload holds of the process's budget.

    working     the body as it comes, its decoder, and the frame that is being filled
    segments    stored frames: of the segment that is being filled, and of the one on its way to the store

A short body pays for what it has. A long one pays for segments of `SEGMENT` bytes, and has larger ones while
there is plenty.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill_service.store_format.decoding import PIECE_SIZE, WINDOW_SIZE
from overspill_service.store_format.frames import FRAME_SIZE, STORED_SIZE_LIMIT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from overspill_service.resources.memory_budget import Budget, Share

GULP: Final = 512 * 1024
"""Bytes of body that are gathered before a thread is troubled with them."""
SEGMENT: Final = 4 * 2**20
"""Stored bytes after which a segment is closed where memory is short."""
SLACK: Final = 64 * 1024
"""Bytes for the objects around a body and its frames."""
BUFFERED: Final = 768 * 1024
"""Bytes of body that lie with aiohttp: twice the server's `READ_BUFFER`, and one read more."""
WORKING: Final = BUFFERED + GULP + BUFFERED + FRAME_SIZE
GZIP_STATE: Final = 64 * 1024


class Need(NamedTuple):
    """The least bytes that an upload needs, of each kind."""

    working: int
    segments: int


def need_of(encoding: str | None, length: int | None, *, is_copied: bool = False) -> Need:
    """What a body needs: its `Content-Encoding` as `BodyDecoder` knows it, and its length if that is known.

    Of a short zstd body it is expected that it is one frame, to be stored as it is. `is_copied`: segments
    are copied in the end, each through memory.
    """
    segments = (SEGMENT + STORED_SIZE_LIMIT) * (2 if is_copied else 1)
    if encoding is None and length is None:
        return Need(WORKING, segments)
    if encoding is None and length is not None:
        stored = length + length // 128 + SLACK
        return Need(min(2 * length + SLACK, WORKING), min(stored, segments))
    if encoding == "zstd" and length is not None and length <= GULP:
        return Need(length + FRAME_SIZE + SLACK, length + SLACK)
    state = WINDOW_SIZE if encoding == "zstd" else GZIP_STATE
    return Need(WORKING + PIECE_SIZE + state, segments)


class UploadMemory:
    """What one upload holds; made by `upload_memory`."""

    def __init__(self, budget: Budget, stack: AsyncExitStack, encoding: str | None) -> None:
        self._budget, self._stack, self._encoding = budget, stack, encoding
        self.segments: Share

    @property
    def is_short(self) -> bool:
        """Whether others wait for memory."""
        return self._budget.is_awaited

    async def enter(self, need: Need) -> None:
        """Wait in line for so much. Raises `Overloaded`."""
        shares = self._budget.line_for(sum(need)).shares(*need)
        _, self.segments = await self._stack.enter_async_context(shares)

    async def decode(self) -> None:
        """Make room to decode a short body that cannot be stored as it is: it may hold anything.

        What it has is given back first, so that no two wait for each other. Raises `Overloaded`.
        """
        await self._stack.aclose()
        await self.enter(need_of(self._encoding, None, is_copied=True))


@asynccontextmanager
async def upload_memory(
    budget: Budget, encoding: str | None, length: int | None, *, is_copied: bool
) -> AsyncIterator[UploadMemory]:
    """The memory for a body, once there is room for it. Takes what `need_of` takes; raises `Overloaded`."""
    async with AsyncExitStack() as stack:
        memory = UploadMemory(budget, stack, encoding)
        await memory.enter(need_of(encoding, length, is_copied=is_copied))
        yield memory
