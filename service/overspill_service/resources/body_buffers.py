"""Reuses the buffers of large request bodies.

In fresh memory the first write to each 4 KiB is a page fault, which takes much longer than the write itself:
on a virtual machine 8 ms for 8 MiB, instead of half a millisecond.
"""

from __future__ import annotations

import asyncio
from io import BytesIO
from typing import Final

MIN_BYTES: Final = 2**20
"""Smaller buffers are not kept: they come from the heap, whose memory is not fresh."""
MAX_KEPT: Final = 2
"""The number of buffers that one producer's appends need at once."""
KEEP_SECONDS: Final = 5.0


class BodyBuffers:
    """Keeps a few unused buffers, each for at most twice `KEEP_SECONDS`. Belongs to one event loop."""

    def __init__(self) -> None:
        self._kept: list[bytes] = []
        self._were_used = False
        """Whether one was taken since the timer was set."""
        self._timer: asyncio.TimerHandle | None = None

    def take(self, size: int) -> BytesIO:
        """Return a buffer with room for `size` bytes. Write from its beginning, then truncate it.

        Nobody who still reads the kept bytes is harmed: `BytesIO` writes into them only if it is their only
        owner, and copies them otherwise.
        """
        if size < MIN_BYTES or not self._kept:
            return BytesIO(bytes(size))
        self._were_used = True
        return BytesIO(self._kept.pop())

    def keep(self, data: bytes) -> None:
        """Keep the content of a buffer for the next one. Its owner must no longer need it."""
        if len(data) < MIN_BYTES or len(self._kept) >= MAX_KEPT:
            return
        self._kept.append(data)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(KEEP_SECONDS, self._drop_unused)

    def _drop_unused(self) -> None:
        self._timer = None
        if not self._were_used:
            self._kept.clear()
        elif self._kept:
            self._were_used = False
            self._timer = asyncio.get_running_loop().call_later(KEEP_SECONDS, self._drop_unused)
