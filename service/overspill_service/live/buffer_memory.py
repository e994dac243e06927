"""Memory for the accepted bytes of live captures. A catalog returns them whole: up to 16 MiB of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from overspill_service.resources.memory_budget import Holding, MemoryQueue

FREE_BYTES: Final = 16 * 1024
"""Bytes that need no memory of the budget."""
COPIES: Final = 3
"""The number of copies of accepted bytes in memory: as they come, joined with those before, compressed."""
GROWTH_BYTES: Final = 256 * 1024
"""Bytes that may be accepted while somebody waits for memory."""


class BufferMemory:
    """The memory that one reader of one live capture holds until its block ends."""

    def __init__(self, queue: MemoryQueue, tenant: str) -> None:
        self._queue, self._tenant = queue, tenant
        self._holding: Holding | None = None
        self.room = FREE_BYTES
        """The number of accepted bytes for which there is memory."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def cover(self, size: int) -> None:
        """Make room for about `size` bytes, without those of before. Raises `Overloaded`."""
        self.close()
        holding = self._queue.shares(self._tenant, COPIES * (size + GROWTH_BYTES))
        await holding.__aenter__()
        self._holding, self.room = holding, size + GROWTH_BYTES

    def close(self) -> bool:
        """Give the memory back. Return whether there was any; then its bytes must not be used again."""
        holding, self._holding, self.room = self._holding, None, FREE_BYTES
        if holding is not None:
            holding.close()
        return holding is not None
