"""Buffers for large request bodies, which are used again.

The first touch of fresh memory is a page fault for each 4 KiB, which takes many times as long as to write it:
on a virtual machine 8 ms for 8 MiB, against half a millisecond.
"""

from __future__ import annotations

import asyncio
from io import BytesIO
from typing import Final

LEAST_BYTES: Final = 2**20
"""Smaller ones come from the heap, which has been touched."""
MOST_KEPT: Final = 2
"""As many as one producer's appends need at once."""
KEEP_SECONDS: Final = 5.0


class BodyBuffers:
    """A few buffers that nobody uses, each for at most twice `KEEP_SECONDS`. Belongs to one event loop."""

    def __init__(self) -> None:
        self._kept: list[bytes] = []
        self._were_used = False
        """Whether one was taken since the timer was set."""
        self._timer: asyncio.TimerHandle | None = None

    def take(self, size: int) -> BytesIO:
        """Return a buffer with room for `size` bytes, to be written from its beginning and truncated.

        It writes into a kept object if that has no other owner, and else makes a copy first: `BytesIO` does
        that by itself. So it does no harm if somebody still reads what was kept.
        """
        if size < LEAST_BYTES or not self._kept:
            return BytesIO(bytes(size))
        self._were_used = True
        return BytesIO(self._kept.pop())

    def keep(self, data: bytes) -> None:
        """Keep the content of a buffer, which its owner needs no more, for the next one."""
        if len(data) < LEAST_BYTES or len(self._kept) >= MOST_KEPT:
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
