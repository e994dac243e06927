"""Keeps the bytes of a live capture that the service may still lose. Does no I/O. Not thread-safe."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

NEWLINE_SEARCH: Final = 64 * 1024
"""Bytes at the end of a full append in which a newline is looked for, to end it there."""
JOINED_BYTES: Final = 64 * 1024
"""Short pieces are joined up to this size, so that there are never many."""


class Unstored:
    """The bytes after the durable offset, in pieces, so that they can be sent again.

    0 ── durable ──▶ start ├──── kept here ────┤ end
    """

    def __init__(self) -> None:
        self.start: int = 0
        self.end: int = 0
        """The offset after the last byte that was added."""
        self._pieces: deque[bytes] = deque()
        self._first = 0
        """The offset of the first piece: `start`, or less."""

    def __len__(self) -> int:
        return self.end - self.start

    def add(self, data: bytes) -> None:
        """Keep the next bytes."""
        self.end += len(data)
        if self._pieces and len(self._pieces[-1]) + len(data) <= JOINED_BYTES:
            self._pieces[-1] += data
        elif data:
            self._pieces.append(data)

    def drop_before(self, offset: int) -> None:
        """Forget the bytes before `offset`, which are durable. Does nothing if they are already forgotten."""
        self.start = min(max(self.start, offset), self.end)
        while self._pieces and self._first + len(self._pieces[0]) <= self.start:
            self._first += len(self._pieces.popleft())

    def has(self, offset: int) -> bool:
        """Return whether sending can go on at `offset`."""
        return self.start <= offset <= self.end

    def next_size(self, offset: int, limit: int) -> int:
        """Return how many bytes to send from `offset` on. If more follow, end them at a newline if possible.

        The service then stores the append as it came.
        """
        if offset + limit >= self.end:
            return self.end - offset
        searched = min(limit, NEWLINE_SEARCH)
        newline = self.read(offset + limit - searched, searched).rfind(b"\n")
        return limit if newline < 0 else limit - searched + newline + 1

    def pieces(self, offset: int, limit: int) -> Iterator[bytes]:
        """Yield up to `limit` bytes from `offset` on, which must be here, in the pieces that came."""
        at, stop = self._first, min(self.end, offset + limit)
        for piece in self._pieces:
            first, last = max(0, offset - at), stop - at
            if last <= 0:
                return
            if first < len(piece):
                yield piece[first:last]
            at += len(piece)

    def read(self, offset: int, limit: int) -> bytes:
        """Return up to `limit` bytes from `offset` on, which must be here, as one."""
        return b"".join(self.pieces(offset, limit))
