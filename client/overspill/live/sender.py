"""Sends what is prepared of a live capture: one append after another, beginning where the service says.

    a full append      ├── sent ──┤├── the service stores it ──┤
    the one behind it              ├── sent ──┤├── the service stores it ──┤

The service takes appends in their order, even if the second arrives while it stores the first. If it cannot,
because the second went to another replica, each append from then on waits for the answer to the one before.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from overspill import wire
from overspill.errors import NotFound, ProtocolError, WrongOffset

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from overspill.live.patience import Patience
    from overspill.live.ports import LiveService
    from overspill.live.unstored import Unstored

PACE_SECONDS: Final = 0.02
"""The least time between the beginnings of small appends. The first one after a pause goes at once."""
_ASK_SECONDS: Final = 0.2
"""How often the sender asks what is durable by now, if it may send nothing more before."""
_LARGE: Final = 256 * 1024
"""An append of at least this many bytes shows that the producer is fast."""
GATHER_SECONDS: Final = 0.2
"""How long the next append of a fast producer waits until it is full."""


class Sender:
    """Sends `unstored`. Its methods raise the `OverspillError` that `patience` raises.

    `tell` is called when something has changed.
    """

    def __init__(
        self,
        service: LiveService,
        unstored: Unstored,
        patience: Patience,
        tell: Callable[[], Awaitable[None]],
    ) -> None:
        self.accepted: int = 0
        self.durable: int = 0
        self.is_whole: bool = False
        """Whether `unstored` has the end of the stream."""
        self._service, self._unstored, self._patience, self._tell = service, unstored, patience, tell
        self._news = asyncio.Event()
        self._ahead: _Append | None = None
        """The append that was sent before the answer to the one before it came."""
        self._is_in_order = True
        self._hurries = 0
        """How many callers wait until everything that is prepared is accepted."""
        self._looked_at = -1
        """The end of the last append. The service may have left its last bytes for later: half a secret."""

    @property
    def has_sent_all(self) -> bool:
        """Whether there is nothing to send. Bytes that the service left for later are sent with more, or at
        the end.
        """
        end = self._unstored.end
        return self.accepted == end or (self._looked_at == end and not self.is_whole)

    def wake(self) -> None:
        """Say that more is prepared, or that nothing more will be."""
        self._news.set()

    @contextmanager
    def hurried(self) -> Iterator[None]:
        """Within the block, nothing that is prepared waits for more."""
        self._hurries += 1
        self._news.set()
        try:
            yield
        finally:
            self._hurries -= 1

    async def wait(self, seconds: float) -> bool:
        """Wait for `wake` for at most `seconds`. Return whether there is news."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds if self._may_send else min(seconds, _ASK_SECONDS)):
                await self._news.wait()
        is_news = self._news.is_set()
        self._news.clear()
        return is_news

    async def send(self) -> None:
        """Send what is prepared, as far as the service takes it before it is durable.

        If that is nothing, say that the producer is there, and ask how far the service is.
        """
        try:
            await self._append_patiently()
            while self._may_send and not self.has_sent_all:
                await self._tell()
                await self._append_patiently()
        finally:
            await self._drop_ahead()

    async def complete(self, completion: wire.Completion) -> wire.Entry:
        """End the capture. Send again what the service has lost meanwhile."""
        while True:
            try:
                return await self._patience.until_done(lambda: self._service.complete(completion))
            except WrongOffset as error:
                self._go_on_at(error)
            except NotFound as error:
                await self._begin_again(error)
            while not self.has_sent_all:
                await self.send()
                if not self._may_send:
                    await asyncio.sleep(_ASK_SECONDS)

    @property
    def _may_send(self) -> bool:
        """Whether the service takes more before what it has is durable."""
        return self.accepted < self.durable + wire.MAX_UNSTORED

    async def _append_patiently(self) -> None:
        await self._patience.until_done(self._append, self._drop_ahead)

    async def _append(self) -> None:
        began, before = asyncio.get_running_loop().time(), self.accepted
        ahead, self._ahead = self._ahead, None
        try:
            if ahead is not None or self._is_full_at(self.accepted):
                append = ahead or self._begun(self.accepted)
                self._note(await self._answered(append), append.end, is_last=append.is_last)
            else:
                await self._append_little()
        except WrongOffset as error:
            await self._drop_ahead()
            if ahead is None:
                self._go_on_at(error)
            self._is_in_order &= ahead is None
        except NotFound as error:
            await self._drop_ahead()
            await self._begin_again(error)
        else:
            await self._pace(began, self.accepted - before)

    async def _append_little(self) -> None:
        """Append what there is. Append nothing if nothing is there, or if too much is not durable yet."""
        room = max(0, self.durable + wire.MAX_UNSTORED - self.accepted)
        size = self._unstored.next_size(self.accepted, min(wire.MAX_APPEND, room))
        stop, pieces = self.accepted + size, [*self._unstored.pieces(self.accepted, size)]
        is_last = self._is_last(stop)
        self._note(await self._service.append(self.accepted, pieces, is_last=is_last), stop, is_last=is_last)

    async def _pace(self, began: float, size: int) -> None:
        """Wait before the next append: after a small one for a moment, after a large one until it is full."""
        if size < _LARGE:
            if not self._patience.is_ending:
                await asyncio.sleep(max(0.0, began + PACE_SECONDS - asyncio.get_running_loop().time()))
            return
        with suppress(TimeoutError):
            async with asyncio.timeout_at(began + GATHER_SECONDS):
                while not (self._ahead or self._is_full_at(self.accepted) or self.is_whole or self._hurries):
                    await self._news.wait()
                    self._news.clear()

    def _is_full_at(self, offset: int) -> bool:
        """Return whether a full append is prepared from `offset` on, and may be sent."""
        is_enough = self._unstored.end - offset >= (_LARGE if self.is_whole else wire.MAX_APPEND)
        return is_enough and offset + wire.MAX_APPEND <= self.durable + wire.MAX_UNSTORED

    def _begun(self, offset: int) -> _Append:
        size = self._unstored.next_size(offset, wire.MAX_APPEND)
        pieces, is_last = [*self._unstored.pieces(offset, size)], self._is_last(offset + size)
        return _Append(self._service, offset, pieces, self._news, is_last=is_last)

    def _is_last(self, stop: int) -> bool:
        return self.is_whole and stop == self._unstored.end

    async def _answered(self, append: _Append) -> wire.LiveStatus:
        """Wait for the answer. Meanwhile begin the next append, once this one has gone out."""
        try:
            while not append.answer.done():
                if self._ahead is None and append.is_sent and self._is_in_order:
                    self._ahead = self._begun(append.end) if self._is_full_at(append.end) else None
                await self._news.wait()
                self._news.clear()
            return append.answer.result()
        finally:
            await append.drop()

    async def _drop_ahead(self) -> None:
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            await ahead.drop()

    def _note(self, status: wire.LiveStatus, stop: int, *, is_last: bool) -> None:
        """Note how far the service is after an append that ends at `stop`. Raises `ProtocolError`."""
        if not self._unstored.has(status.accepted):
            raise ProtocolError(f"the service has accepted {status.accepted} bytes, of {self._unstored.end}")
        self.accepted, self.durable = status.accepted, max(self.durable, status.durable)
        self._looked_at = stop
        self._unstored.drop_before(min(self.durable, self.accepted))
        if is_last and self.accepted < stop:
            raise ProtocolError(f"the service has taken {self.accepted} of {stop} bytes, and no more")

    def _go_on_at(self, error: WrongOffset) -> None:
        """Go on where the service says. It has more if an answer was lost, and less if it has lost bytes.

        Raises the error if those bytes are not kept any more: the service has called them durable.
        """
        if error.offset is None or not self._unstored.has(error.offset):
            raise error
        self.accepted, self._looked_at = error.offset, -1

    async def _begin_again(self, error: NotFound) -> None:
        """Begin once more after the service has lost the capture. Raises the error if bytes were durable."""
        if not self._unstored.has(0):
            raise error
        await self._service.begin()
        self.accepted, self._looked_at = 0, -1


class _Append:
    """An append under way, from `offset` on. The next one may be sent before its answer comes.

    It sets `news` once it is sent, and once it is answered.
    """

    def __init__(
        self,
        service: LiveService,
        offset: int,
        pieces: Sequence[bytes],
        news: asyncio.Event,
        *,
        is_last: bool,
    ) -> None:
        self.end: int = offset + sum(map(len, pieces))
        self.is_last = is_last
        self.is_sent: bool = False
        self._news = news
        self.answer = asyncio.create_task(
            service.append(offset, pieces, is_last=is_last, on_sent=self._note_sent)
        )
        self.answer.add_done_callback(lambda _: news.set())

    def _note_sent(self) -> None:
        self.is_sent = True
        self._news.set()

    async def drop(self) -> None:
        """Cancel the append. Raises nothing: the next append finds out whether the service has this one."""
        self.answer.cancel()
        await asyncio.wait((self.answer,))
        if not self.answer.cancelled():
            self.answer.exception()
