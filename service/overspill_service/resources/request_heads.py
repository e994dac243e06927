"""Limits the memory of incomplete request heads in one process.

An HTTP parser keeps a head until it is whole, and the largest has megabytes. Short heads are not counted. If
the long heads together take too much, the longest is dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio

SHORT_HEAD_BYTES: Final = 16 * 1024
LONG_HEADS_BYTES: Final = 16 * 2**20
"""Bytes of all heads that are longer than `SHORT_HEAD_BYTES`."""
MAX_FIELDS_BYTES: Final = 128 * 1024
"""Bytes of the fields of one head, as they come. A request with half of that is refused once it is whole."""
MAX_FIELD_BYTES: Final = 32 * 1024
"""Bytes of one field: a metadata value may have 2 KiB, percent-encoded three times that."""
_END: Final = b"\r\n\r\n"


class RequestHeads:
    """The long heads of one process. Belongs to one event loop."""

    def __init__(self, limit: int = LONG_HEADS_BYTES) -> None:
        self._limit, self._total = limit, 0
        self._long: dict[asyncio.BaseTransport, int] = {}

    def note(self, transport: asyncio.BaseTransport, size: int) -> asyncio.BaseTransport | None:
        """Note how long the head of a connection is by now. Return the connection that has to go, if any."""
        if size > SHORT_HEAD_BYTES:
            self._total += size - self._long.get(transport, 0)
            self._long[transport] = size
        if self._total <= self._limit:
            return None
        return max(self._long, key=self._long.__getitem__)

    def forget(self, transport: asyncio.BaseTransport) -> None:
        self._total -= self._long.pop(transport, 0)


class HeadCount:
    """Counts the bytes of one connection's next head."""

    __slots__ = ("_field", "_is_open", "_tail", "fields", "has_long_field", "size")

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Count the next bytes as a new head."""
        self.size = self.fields = 0  # of all of it, and of what comes behind the request line
        self._field = 0  # of the last field
        self.has_long_field = False
        self._is_open, self._tail = True, b""

    def ignore(self) -> None:
        """Count the next bytes as a body."""
        self._is_open = False

    def take(self, data: bytes) -> bool:
        """Count the bytes that came. Return whether the head has not ended yet."""
        if not self._is_open:
            return False
        if not self.size:
            data = data.lstrip(b"\r\n")  # empty lines before a request are no part of it
        seen = self._tail + data
        end = seen.find(_END)
        begin = 0 if self.fields else data.find(b"\n")
        self.size += len(data)
        if begin >= 0:
            self.fields += len(data) - begin
            self._count_fields(data[begin:] if end < 0 else data[begin : max(begin, end - len(self._tail))])
        self._is_open, self._tail = end < 0, seen[-len(_END) + 1 :]
        return self._is_open

    def _count_fields(self, data: bytes) -> None:
        start = -self._field
        while len(data) - start > MAX_FIELD_BYTES:  # a few looks, however many fields it has
            end = data.rfind(b"\n", max(start, 0), max(start + MAX_FIELD_BYTES + 1, 0))
            if end < 0:
                self.has_long_field = True
                return
            start = end + 1
        newline = data.rfind(b"\n", max(start, 0))
        self._field = len(data) - (newline + 1 if newline >= 0 else start)
