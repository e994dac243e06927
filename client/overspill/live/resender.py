"""Sends a live capture from bytes that can be read again, so it keeps none of them in memory."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from overspill.errors import NotFound, WrongOffset
from overspill.live.appender import Appender

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from overspill import wire
    from overspill.live.ports import LiveService

    Read = Callable[[int, int], Awaitable[bytes]]
    """Returns the bytes from an offset on, up to a size, or none if nothing is there yet."""

PIECE_BYTES: Final = 1024 * 1024
"""Bytes of one append, which is all that one stream has in memory."""


class Resender(Appender):
    """Sends the bytes that `read` returns, from wherever the service is."""

    def __init__(self, service: LiveService, read: Read) -> None:
        super().__init__(service, lambda offset: 0 <= offset <= self._seen_bytes)
        self._read = read
        self._seen, self._seen_bytes = hashlib.sha256(), 0

    @property
    def seen(self) -> tuple[int, bytes]:
        """The number of bytes read from the beginning, and their SHA-256."""
        return self._seen_bytes, self._seen.digest()

    async def send_next(self, end: int | None = None) -> int:
        """Send the next bytes. Return their number, which is 0 if there is nothing new.

        `end` is the size of a stream that has ended. Raises `ProtocolError` if the service does not take its
        last bytes.
        """
        data = await self._read(self.accepted, PIECE_BYTES)
        stop = self.accepted + len(data)
        if self.has_seen(stop, is_whole=stop == end):
            return 0
        self._hash(data)
        await self._append([data], stop, is_last=stop == end)
        return len(data)

    async def send_sign_of_life(self) -> None:
        """Say that the stream goes on."""
        await self._append([], self.accepted)

    async def complete(self, completion: wire.Completion, on_sent: Callable[[int], object]) -> wire.Entry:
        """Send the rest, and end the capture. `on_sent` is called with the bytes of each piece."""
        await self.begin()
        entry = None
        while entry is None:
            while self.accepted < completion.offset and (sent := await self.send_next(completion.offset)):
                on_sent(sent)
            entry = await self.try_to_complete(completion)
        return entry

    async def _append(self, pieces: Sequence[bytes], stop: int, *, is_last: bool = False) -> None:
        try:
            status = await self._service.append(self.accepted, pieces, is_last=is_last)
        except (WrongOffset, NotFound) as error:
            await self.recover(error)
        else:
            self.note(status, stop, is_last=is_last)

    def _hash(self, data: bytes) -> None:
        """Hash bytes that are read for the first time."""
        known = self._seen_bytes - self.accepted
        if len(data) > known:
            self._seen.update(memoryview(data)[known:])
            self._seen_bytes = self.accepted + len(data)
