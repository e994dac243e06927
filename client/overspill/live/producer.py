"""Prepares what is written to a live capture, and lets it be sent, until all of it has arrived.

    writes ──▶ PendingWrites ──masked──▶ Unstored ──▶ Sender ──append──▶ service
                                │           ▲  wrong_offset: send again from there
                                └▶ copy, if the whole is wanted at the end

Writes are masked while requests are under way, and go together in the next one. The caller's task and both of
the producer's share one event loop; only `PendingWrites.add` is for any thread.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Final

from overspill import wire
from overspill.errors import OverspillError
from overspill.execution import threads
from overspill.live.patience import Patience
from overspill.live.sender import Sender
from overspill.live.unstored import Unstored

if TYPE_CHECKING:
    from overspill.live.pending_writes import PendingWrites
    from overspill.live.ports import LiveService, StreamCopy

KEEP_ALIVE_SECONDS: Final = 60.0
"""How often an idle producer gives a sign of life. The service gives a producer up after five minutes."""
MOST_BYTES: Final = wire.MAX_UNSTORED + wire.MAX_APPEND
"""The most bytes that a producer keeps: what the service may still lose, and the next append."""
_WORTH_A_THREAD: Final = 128 * 1024
"""More bytes than this are masked and hashed in another thread: the work takes longer than the handover."""


class Producer:
    """Sends what `pending` takes. Raises nothing by itself: `failure` says why it gave up, if it did.

    It gives up when the service refuses an append for good, or takes nothing for `patience` seconds. `copy`
    gets all bytes as well, even after that.
    """

    def __init__(
        self,
        service: LiveService,
        pending: PendingWrites,
        *,
        patience: float,
        copy: StreamCopy | None = None,
    ) -> None:
        self.failure: OverspillError | None = None
        self.sha256: hashlib._Hash = hashlib.sha256()
        self.is_drained: bool = False
        """Whether all of a stream that has ended was prepared."""
        self._is_over = False
        """Whether nothing is prepared or sent any more."""
        self._pending, self._copy = pending, copy
        self._unstored = Unstored()
        self._written = asyncio.Event()
        self._ending = asyncio.Event()
        self._source_ended = asyncio.Event()
        self._moved = asyncio.Condition()
        self._patience = Patience(service, self._source_ended, patience)
        self._sender = Sender(service, self._unstored, self._patience, self._tell)
        self._seen_bytes = 0

    @property
    def accepted(self) -> int:
        """Bytes that the service has taken. Readers see them."""
        return self._sender.accepted

    @property
    def durable(self) -> int:
        """Bytes that are in the service's object store."""
        return self._sender.durable

    @property
    def may_be_known(self) -> bool:
        """Whether the service may know the capture."""
        return self._patience.may_be_known

    @property
    def size(self) -> int:
        """Bytes that were prepared for sending; all of them, once the stream has ended."""
        return self._unstored.end

    @property
    def seen(self) -> tuple[int, bytes]:
        """How many bytes were prepared, even after sending has failed, and their SHA-256."""
        return self._seen_bytes, self.sha256.digest()

    @property
    def has_room(self) -> bool:
        """Whether another write is taken at once. For any thread."""
        # Counted in the order in which bytes move on: bytes that move meanwhile may count twice, but count.
        waiting = self._pending.size + self._pending.preparing
        return waiting + (0 if self.failure is not None else len(self._unstored)) < MOST_BYTES

    @property
    def has_given_up(self) -> bool:
        """Whether nothing takes what is written any more."""
        return self.failure is not None and self._copy is None

    @property
    def _is_idle(self) -> bool:
        return not self._pending.size and not self._pending.preparing and self._sender.has_sent_all

    def wake(self) -> None:
        """Say that something was written. For the event loop's own thread."""
        self._written.set()

    def source_ended(self) -> None:
        """Say that all that is still to be written exists already, so it can be stored in another way."""
        self._source_ended.set()

    def hurry(self, seconds: float) -> None:
        """Give the service no more than `seconds` from now. It does not get the rest then."""
        self._patience.hurry(seconds)

    def end(self) -> None:
        """Say that nothing more will be written: `run` returns once everything has arrived."""
        self.source_ended()
        self._ending.set()
        self._written.set()

    async def until_room(self) -> None:
        """Wait until another write is taken, or never will be."""
        async with self._moved:
            await self._moved.wait_for(lambda: self.has_room or self.has_given_up or self._is_over)

    async def until_sent(self) -> None:
        """Wait until the service has accepted all that was written before, or sending has failed.

        The last word may wait for what comes after it, if secrets are masked.
        """
        self.wake()
        with self._sender.hurried():
            async with self._moved:
                await self._moved.wait_for(lambda: self._is_idle or self.failure is not None or self._is_over)

    async def begin(self) -> None:
        """Make the capture, once. Raises `OverspillError`."""
        await self._patience.begin()

    async def complete(self, completion: wire.Completion) -> wire.Entry:
        """End the capture, once `run` has ended. Raises `OverspillError`."""
        return await self._sender.complete(completion)

    async def run(self) -> None:
        """Send until the end, or until it fails; then keep the rest, if something keeps it."""
        tasks = [asyncio.create_task(work) for work in (self._prepare_all(), self._send_all())]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            self._is_over = True
            await self._tell()

    async def _prepare_all(self) -> None:
        """Prepare what is written until the end, or until nobody wants it."""
        while not (self.is_drained or self.has_given_up):
            await self._written.wait()
            self._written.clear()
            await self._prepare()
            self._sender.wake()
            await self._tell()

    async def _send_all(self) -> None:
        sender = self._sender
        try:
            if not self._patience.is_begun and self.failure is None:
                await self._patience.until_done(self._patience.begin)
            while self.failure is None and not (self.is_drained and self._is_idle):
                is_quiet = not await sender.wait(KEEP_ALIVE_SECONDS)
                if is_quiet or not sender.has_sent_all:
                    await sender.send()
                await self._tell()
        except OverspillError as error:
            self.failure = error
        self._written.set()  # if nothing keeps the rest, nothing is prepared any more

    async def _prepare(self) -> None:
        """Move what was written to the bytes to send: masked, hashed and kept."""
        is_last = self._ending.is_set()
        work = self._last if is_last else self._more
        if self._copy is not None:
            data = await threads.run_blocking(work)
        elif self._pending.size > _WORTH_A_THREAD:
            data = await threads.run(work)
        else:
            data = work()
        if self.failure is None:
            self._unstored.add(data)
        self._pending.preparing = 0
        self.is_drained = self._sender.is_whole = is_last and not self._pending.size
        if self._pending.size:
            self._written.set()

    def _more(self) -> bytes:
        return self._noted(self._pending.taken())

    def _last(self) -> bytes:
        return self._noted(self._pending.last())

    def _noted(self, data: bytes) -> bytes:
        self.sha256.update(data)
        self._seen_bytes += len(data)
        if self._copy is not None and data:
            self._copy.keep(data, is_masked=bool(self._pending.masked))
        return data

    async def _tell(self) -> None:
        async with self._moved:
            self._moved.notify_all()
