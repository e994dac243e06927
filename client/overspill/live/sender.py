"""Sends the prepared bytes of a live capture: one append after another, from where the service says.

    a full append      ├── sent ──┤├── the service stores it ──┤
    the one behind it              ├── sent ──┤├── the service stores it ──┤

The service takes appends in their order, even if the second arrives while it stores the first. If it cannot,
because the second went to another replica, each append from then on waits for the answer to the one before.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, TypeVar

from overspill import wire
from overspill.errors import NotFound, OverspillError, Unreachable, WrongOffset
from overspill.errors.verdicts import may_pass
from overspill.execution.backoff import Backoff
from overspill.live.appender import Appender

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from overspill.live.ports import LiveService
    from overspill.live.unstored import Unstored

T = TypeVar("T")

KEEP_ALIVE_SECONDS: Final = 60.0
"""Seconds between an idle producer's signs of life. The service gives up a producer after five minutes."""
PACE_SECONDS: Final = 0.02
"""The least time between the beginnings of small appends. The first one after a pause goes at once."""
_ASK_SECONDS: Final = 0.2
"""Seconds between the sender's questions how much is durable, while it may not send more."""
_LARGE: Final = 256 * 1024
"""An append of at least this many bytes shows that the producer is fast."""
GATHER_SECONDS: Final = 0.2
"""How long the next append of a fast producer waits until it is full."""
_ANSWER_SECONDS: Final = 5.0
"""The least time that the service has to answer the request that begins the capture."""
_BACKOFF: Final = Backoff(first=0.2, longest=5.0)


class Sender(Appender):
    """Sends `unstored`, and repeats each request that fails for up to `patience` seconds.

    Its methods raise the `OverspillError` of a request that is refused for good, or of the last attempt.
    `tell` is called when something has changed.
    """

    def __init__(
        self, service: LiveService, unstored: Unstored, patience: float, tell: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__(service, unstored.has, answer_seconds=max(patience, _ANSWER_SECONDS))
        self.failure: OverspillError | None = None
        """The error that ended sending, if any."""
        self.is_whole: bool = False
        """Whether `unstored` has the end of the stream."""
        self.source_ended: asyncio.Event = asyncio.Event()
        """Set when all remaining bytes already exist, so they can be stored in another way."""
        self._unstored, self._patience, self._tell = unstored, patience, tell
        self._until: float | None = None
        self._limit: asyncio.Timeout | None = None
        self._news = asyncio.Event()
        self._next_append: _Append | None = None
        """The append that was sent before the answer to the one before it came."""
        self._is_in_order = True
        self._hurries = 0
        """How many callers wait until everything that is prepared is accepted."""

    @property
    def has_sent_all(self) -> bool:
        """Whether there is nothing to send."""
        return self.has_seen(self._unstored.end, is_whole=self.is_whole)

    def wake(self) -> None:
        """Wake the sender: more is prepared, or nothing more will be."""
        self._news.set()

    @contextmanager
    def hurried(self) -> Iterator[None]:
        """Send prepared bytes in the block at once, without waiting for more."""
        self._hurries += 1
        self._news.set()
        try:
            yield
        finally:
            self._hurries -= 1

    def hurry(self, seconds: float) -> None:
        """Let sending fail unless it ends within `seconds` from now."""
        self._until = asyncio.get_running_loop().time() + seconds
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(self._until)

    async def run(self) -> None:
        """Send until everything is sent, or until `failure` is set."""
        try:
            if self.failure is None:
                await self._patiently(self.begin)
            while self.failure is None and not (self.is_whole and self.has_sent_all):
                is_quiet = not await self._wait()
                if is_quiet or not self.has_sent_all:
                    await self._send()
                await self._tell()
        except OverspillError as error:
            self.failure = error

    async def complete(self, completion: wire.Completion) -> wire.Entry:
        """End the capture. Before that, send again what the service has lost."""
        while (entry := await self._patiently(lambda: self.try_to_complete(completion))) is None:
            while not self.has_sent_all:
                await self._send()
                if not self._may_send:
                    await asyncio.sleep(_ASK_SECONDS)
        return entry

    async def _wait(self) -> bool:
        """Wait for `wake`, but not for long while nothing may be sent. Return whether there is news."""
        with suppress(TimeoutError):
            async with asyncio.timeout(KEEP_ALIVE_SECONDS if self._may_send else _ASK_SECONDS):
                await self._news.wait()
        is_news = self._news.is_set()
        self._news.clear()
        return is_news

    async def _send(self) -> None:
        """Send the prepared bytes that the service accepts before earlier ones are durable.

        If there are none, say that the producer is there, and ask for the service's offset.
        """
        try:
            await self._patiently(self._append)
            while self._may_send and not self.has_sent_all:
                await self._tell()
                await self._patiently(self._append)
        finally:
            await self._drop_ahead()

    async def _patiently(self, request: Callable[[], Awaitable[T]]) -> T:
        """Return the answer of a request. Repeat the request while it may succeed.

        If the stream has ended and the service does not know the capture yet, give up at once. Nothing is
        lost: whoever has the whole stores it in another way.
        """
        try:
            async with asyncio.timeout_at(self._until) as self._limit:
                return await self._repeated(request)
        except TimeoutError:
            raise Unreachable("the service did not take the rest in time") from None
        finally:
            self._limit = None

    async def _repeated(self, request: Callable[[], Awaitable[T]]) -> T:
        loop = asyncio.get_running_loop()
        failures, since = 0, loop.time()
        while True:
            try:
                return await request()
            except OverspillError as error:
                await self._drop_ahead()
                left = since + self._patience - loop.time()
                is_unknown = self.source_ended.is_set() and not self.is_begun
                if left <= 0 or is_unknown or not may_pass(error):
                    raise
                await self._pause(min(left, _BACKOFF.pause(failures)))
                failures += 1

    async def _pause(self, seconds: float) -> None:
        """Wait. If the service does not know the capture yet, wait no longer than until the stream's end."""
        if self.is_begun:
            await asyncio.sleep(seconds)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.source_ended.wait()

    @property
    def _may_send(self) -> bool:
        """Whether the service accepts more before the bytes that it has are durable."""
        return self.accepted < self.durable + wire.MAX_UNSTORED

    async def _append(self) -> None:
        """Append the prepared bytes. Append nothing if there are none, or if too many are not durable yet."""
        began, before = asyncio.get_running_loop().time(), self.accepted
        prepared, self._next_append = self._next_append, None
        append = prepared or self._begin_append(before)
        try:
            self.note(await self._answered_append(append), append.end, is_last=append.is_last)
        except (WrongOffset, NotFound) as error:
            await self._drop_ahead()
            if prepared is not None and isinstance(error, WrongOffset):
                self._is_in_order = False
            else:
                await self.recover(error)
        else:
            self._unstored.drop_before(min(self.durable, self.accepted))
            await self._pace(began, self.accepted - before)

    async def _pace(self, began: float, size: int) -> None:
        """Wait before the next append: after a small one for a moment, after a large one until it is full."""
        if size < _LARGE:
            if not self.source_ended.is_set():
                await asyncio.sleep(max(0.0, began + PACE_SECONDS - asyncio.get_running_loop().time()))
            return
        with suppress(TimeoutError):
            async with asyncio.timeout_at(began + GATHER_SECONDS):
                while not (
                    self._next_append or self._is_full_at(self.accepted) or self.is_whole or self._hurries
                ):
                    await self._news.wait()
                    self._news.clear()

    def _is_full_at(self, offset: int) -> bool:
        """Return whether a full append is prepared from `offset` on, and may be sent."""
        is_enough = self._unstored.end - offset >= (_LARGE if self.is_whole else wire.MAX_APPEND)
        return is_enough and offset + wire.MAX_APPEND <= self.durable + wire.MAX_UNSTORED

    def _begin_append(self, offset: int) -> _Append:
        room = max(0, self.durable + wire.MAX_UNSTORED - offset)
        size = self._unstored.next_size(offset, min(wire.MAX_APPEND, room))
        pieces, stop = [*self._unstored.pieces(offset, size)], offset + size
        is_last = self.is_whole and stop == self._unstored.end
        return _Append(self._service, offset, pieces, self._news, is_last=is_last)

    async def _answered_append(self, append: _Append) -> wire.LiveStatus:
        """Wait for the answer. Meanwhile begin the next append, once this one has gone out."""
        try:
            while not append.answer.done():
                if self._next_append is None and append.is_sent and self._is_in_order:
                    self._next_append = (
                        self._begin_append(append.end) if self._is_full_at(append.end) else None
                    )
                await self._news.wait()
                self._news.clear()
            return append.answer.result()
        finally:
            await append.drop()

    async def _drop_ahead(self) -> None:
        prepared, self._next_append = self._next_append, None
        if prepared is not None:
            await prepared.drop()


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
