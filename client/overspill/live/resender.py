"""Sends a live capture from bytes that can be read again: it keeps none of them in memory."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from overspill.errors import NotFound, ProtocolError, WrongOffset

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from overspill import wire
    from overspill.live.ports import LiveService

    Read = Callable[[int, int], Awaitable[bytes]]
    """Returns the bytes from an offset on, up to a size, or none if nothing is there yet."""

PIECE_BYTES: Final = 1024 * 1024
"""Bytes of one append, and so of what one stream has in memory."""


class Resender:
    """Sends what `read` gives, from the beginning, wherever the service is.

    Its methods raise the `OverspillError` of a request that failed, and can be called again.
    """

    def __init__(self, service: LiveService, read: Read) -> None:
        self.accepted: int = 0
        """Bytes that the service has taken. Readers see them."""
        self._service, self._read = service, read
        self.is_begun: bool = False
        """Whether the service has said that it knows the capture."""
        self._seen, self._seen_bytes = hashlib.sha256(), 0
        self._looked_at = -1
        """The end of the last append. The service may have left its last bytes for later: half a secret."""

    @property
    def seen(self) -> tuple[int, bytes]:
        """How many bytes from the beginning were read, and their SHA-256."""
        return self._seen_bytes, self._seen.digest()

    async def begin(self) -> None:
        """Make the capture, unless that is done."""
        if not self.is_begun:
            await self._service.begin()
            self.is_begun = True

    async def send_next(self, end: int | None = None) -> int:
        """Send what comes next. Return how many bytes that were: 0, if there is nothing new.

        `end` is the size of a stream that has ended. Raises `ProtocolError` if the service does not take its
        last bytes.
        """
        data = await self._read(self.accepted, PIECE_BYTES)
        stop = self.accepted + len(data)
        if not data or (stop == self._looked_at and stop != end):
            return 0
        self._note(data)
        await self._append([data], is_last=stop == end)
        return len(data)

    async def send_sign_of_life(self) -> None:
        """Say that the stream goes on."""
        await self._append([])

    async def complete(self, completion: wire.Completion, on_sent: Callable[[int], object]) -> wire.Entry:
        """Send the rest, and end the capture. `on_sent` is called with the bytes of each piece."""
        await self.begin()
        while True:
            while self.accepted < completion.offset and (sent := await self.send_next(completion.offset)):
                on_sent(sent)
            try:
                return await self._service.complete(completion)
            except WrongOffset as error:  # accepted bytes were lost meanwhile
                self._go_on_at(error)
            except NotFound:
                await self._begin_again()

    async def _append(self, pieces: Sequence[bytes], *, is_last: bool = False) -> None:
        stop = self.accepted + sum(map(len, pieces))
        try:
            self.accepted = (await self._service.append(self.accepted, pieces, is_last=is_last)).accepted
            self._looked_at = stop
            if is_last and self.accepted < stop:
                raise ProtocolError(f"the service has taken {self.accepted} of {stop} bytes, and no more")
        except WrongOffset as error:
            self._go_on_at(error)
        except NotFound:
            await self._begin_again()

    def _go_on_at(self, error: WrongOffset) -> None:
        """Go on where the service says. It has more if an answer was lost, and less if it has lost bytes.

        Raises `ProtocolError` if the service has more than was sent.
        """
        if error.offset is None or error.offset > self._seen_bytes or error.offset == self.accepted:
            raise ProtocolError(f"the service goes on at {error.offset}, of {self._seen_bytes} bytes")
        self.accepted, self._looked_at = error.offset, -1

    async def _begin_again(self) -> None:
        await self._service.begin()
        self.accepted, self._looked_at = 0, -1

    def _note(self, data: bytes) -> None:
        """Hash what is read for the first time."""
        known = self._seen_bytes - self.accepted
        if len(data) > known:
            self._seen.update(memoryview(data)[known:])
            self._seen_bytes = self.accepted + len(data)
