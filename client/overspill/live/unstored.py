"""The bytes of a live capture that the service may still lose. No I/O, and safe for no threads."""

from __future__ import annotations

from typing import Final

NEWLINE_SEARCH: Final = 64 * 1024
"""Bytes at the end of a full append in which a newline is looked for, to end it there."""


class Unstored:
    """What was written after the durable offset, so that it can be sent again.

    0 ── durable ──▶ start ├──── kept here ────┤ end
    """

    def __init__(self) -> None:
        self.start: int = 0
        self._data = bytearray()

    def __len__(self) -> int:
        return len(self._data)

    @property
    def end(self) -> int:
        """The offset after the last byte that was added."""
        return self.start + len(self._data)

    def add(self, data: bytes) -> None:
        """Keep what comes next."""
        self._data += data

    def drop_before(self, offset: int) -> None:
        """Forget what is durable. An offset that went back, or lies beyond the end, forgets nothing wrong."""
        gone = min(max(0, offset - self.start), len(self._data))
        del self._data[:gone]  # a bytearray moves nothing for that
        self.start += gone

    def has(self, offset: int) -> bool:
        """Return whether sending can go on at `offset`."""
        return self.start <= offset <= self.end

    def next_size(self, offset: int, most: int) -> int:
        """Return how many bytes to send from `offset` on. If more follow, they end behind a line if they can.

        The service stores such an append as it came.
        """
        first = offset - self.start
        stop = first + most
        if stop >= len(self._data):
            return len(self._data) - first
        newline = self._data.rfind(b"\n", max(first, stop - NEWLINE_SEARCH), stop)
        return most if newline < 0 else newline + 1 - first

    def read(self, offset: int, most: int) -> bytes:
        """Return up to `most` bytes from `offset` on, which must be here."""
        first = offset - self.start
        with memoryview(self._data) as view:
            return bytes(view[first : first + most])
