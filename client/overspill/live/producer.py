"""Prepares the writes to a live capture, and has them sent until all of them have arrived.

    writes ──▶ PendingWrites ──masked, hashed──▶ Unstored ──▶ Sender ──append──▶ service
                    │                                ▲  wrong_offset: send again from there
                    └▶ copy, if the whole is wanted at the end

Writes are masked while requests are under way, and go together in the next one. The caller's task and both of
the producer's share one event loop; only `PendingWrites.add` is for any thread.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from overspill import wire
from overspill.execution import threads
from overspill.live.sender import Sender
from overspill.live.unstored import Unstored

if TYPE_CHECKING:
    from overspill.live.pending_writes import PendingWrites
    from overspill.live.ports import LiveService

MAX_BYTES: Final = wire.MAX_UNSTORED + wire.MAX_APPEND
"""The most bytes that a producer keeps: those that the service may still lose, and the next append."""
_WORTH_A_THREAD: Final = 128 * 1024
"""More bytes than this are masked and hashed in another thread: that takes longer than the switch."""
_ELSEWHERE: Final = "this live capture is in use by another event loop: use it there, or use SyncClient"
_ENDED: Final = (
    "the event loop of this live capture has ended: only complete() and abort() still send what is left"
)


class Producer:
    """Sends what `pending` takes, in a task of the event loop in which it starts.

    It stops sending when the service refuses an append for good, or takes nothing for `patience` seconds. The
    `failure` of `sender` says so. The copy of `pending`, if it has one, gets all bytes even after that.
    """

    def __init__(
        self, service: LiveService, pending: PendingWrites, *, patience: float, name: str = "live capture"
    ) -> None:
        self._pending, self._name = pending, name
        self._unstored = Unstored()
        self.sender: Sender = Sender(service, self._unstored, patience, self._tell)
        self._written = asyncio.Event()
        self._moved = asyncio.Condition()
        self._is_ending = False
        self._is_over = False
        """Whether nothing is prepared or sent any more."""
        self._task: asyncio.Task[None] | None = None

    @property
    def is_started(self) -> bool:
        """Whether it has started and was not closed."""
        return self._task is not None

    @property
    def has_room(self) -> bool:
        """Whether another write is accepted at once. For any thread."""
        # Counted in the order in which bytes move on: bytes that move meanwhile may count twice, but count.
        waiting = self._pending.size + self._pending.preparing
        return waiting + (0 if self.sender.failure is not None else len(self._unstored)) < MAX_BYTES

    @property
    def has_given_up(self) -> bool:
        """Whether writes are lost: sending has failed, and no copy is kept."""
        return self.sender.failure is not None and not self._pending.has_copy

    def start(self) -> asyncio.Task[None]:
        """Start, in the event loop that runs."""
        self._task = asyncio.create_task(self.run(), name=self._name)
        return self._task

    def check_loop(self) -> None:
        """Raise `RuntimeError` if it runs in another event loop than the one that runs."""
        loop = None if self._task is None else self._task.get_loop()
        if loop is not None and loop is not asyncio.get_running_loop() and not loop.is_closed():
            raise RuntimeError(_ELSEWHERE)

    def raise_failure(self) -> None:
        """Raise the error that ended it, even an unexpected one such as `MemoryError`.

        If its loop ended it, raise `RuntimeError`.
        """
        if self.has_given_up and self.sender.failure is not None:
            raise self.sender.failure
        if self._task is None or not self._task.done():
            return
        if self._task.cancelled():
            raise RuntimeError(_ENDED)
        self._task.result()

    def wake(self) -> None:
        """Say that something was written. For the event loop's own thread."""
        self._written.set()

    async def until_room(self) -> None:
        """Wait until another write is accepted, or until none ever will be."""
        async with self._moved:
            await self._moved.wait_for(lambda: self.has_room or self.has_given_up or self._is_over)

    async def until_sent(self) -> None:
        """Wait until the service has accepted all that was written before, or sending has failed.

        The last word may wait for what comes after it, if secrets are masked.
        """
        self.wake()
        with self.sender.hurried():
            async with self._moved:
                await self._moved.wait_for(
                    lambda: self._is_idle or self.sender.failure is not None or self._is_over
                )

    @property
    def _is_idle(self) -> bool:
        return not self._pending.size and not self._pending.preparing and self.sender.has_sent_all

    def end(self) -> None:
        """Say that nothing more will be written: `run` returns once everything has arrived."""
        self.sender.source_ended.set()
        self._is_ending = True
        self._written.set()

    async def finish(self) -> None:
        """Wait until everything is sent. Raises the error if something is not. Safe to repeat.

        A loop that ends cancels the sending too: then it starts anew.
        """
        task = self._task
        if task is not None:
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError:
                if not task.cancelled():
                    raise
                await asyncio.shield(self.start())
        if self.sender.failure is not None:
            raise self.sender.failure

    async def aclose(self) -> None:
        """End it if it still runs."""
        task, self._task = self._task, None
        if task is not None and not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def run(self) -> None:
        """Send until the end or a failure. Then keep the rest, if there is a copy."""
        tasks = [asyncio.create_task(work) for work in (self._prepare_all(), self._send_all())]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            self._is_over = True
            await self._tell()

    async def _prepare_all(self) -> None:
        """Prepare writes until the end, or until nobody needs them."""
        while not (self._pending.is_drained or self.has_given_up):
            await self._written.wait()
            self._written.clear()
            await self._prepare()
            self.sender.wake()
            await self._tell()

    async def _send_all(self) -> None:
        await self.sender.run()
        self._written.set()  # if nothing keeps the rest, nothing is prepared any more

    async def _prepare(self) -> None:
        """Move the writes to the bytes to send."""
        work = partial(self._pending.take, is_last=self._is_ending)
        if self._pending.has_copy:
            data = await threads.run_blocking(work)
        elif self._pending.size > _WORTH_A_THREAD:
            data = await threads.run(work)
        else:
            data = work()
        if self.sender.failure is None:
            self._unstored.add(data)
        self._pending.preparing = 0
        self.sender.is_whole = self._pending.is_drained
        if self._pending.size:
            self._written.set()

    async def _tell(self) -> None:
        async with self._moved:
            self._moved.notify_all()
