"""Sends a live capture to the service, in the order of writing, until all of it has arrived.

    writes ──▶ PendingWrites ──masked──▶ Unstored ──append──▶ service
                                │           ▲  wrong_offset: send again from there
                                └▶ Buffer, if the whole is wanted at the end

Writes are masked while a request is under way, and go together in the next one. The caller's task and both of
the producer's share one event loop; only `PendingWrites.add` is for any thread.
"""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from overspill import wire
from overspill.errors import NotFound, OverspillError, ProblemError, ProtocolError, Unreachable, WrongOffset
from overspill.execution import threads
from overspill.execution.backoff import Backoff
from overspill.live.pending_writes import BATCH_BYTES
from overspill.live.unstored import Unstored
from overspill.text.buffer import CannotBuffer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from overspill.live.pending_writes import PendingWrites
    from overspill.live.ports import LiveService
    from overspill.text.buffer import Buffer

T = TypeVar("T")

KEEP_ALIVE_SECONDS: Final = 60.0
"""So often an idle producer says that it is still there. The service gives one up after five minutes."""
PACE_SECONDS: Final = 0.02
"""Small appends begin no closer to each other than this. The first one after a pause goes at once."""
_ASK_SECONDS: Final = 0.2
"""So often it is asked what is durable by now, if a write waits for that."""
_LARGE: Final = 256 * 1024
"""So many bytes are sent without waiting for more."""
_WORTH_A_THREAD: Final = 128 * 1024
"""Bytes whose masking and hashing take longer than handing them to another thread."""
_BACKOFF: Final = Backoff(first=0.2, longest=5.0)
_PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which the same append may succeed."""


class Producer:
    """Sends what `pending` takes. Raises nothing by itself: `failure` says why it gave up, if it did.

    It gives up when the service refuses an append for good, or takes nothing for `patience` seconds. `whole`
    gets all bytes as well, also after that.
    """

    def __init__(
        self, service: LiveService, pending: PendingWrites, *, patience: float, whole: Buffer | None = None
    ) -> None:
        self.failure: OverspillError | None = None
        self.whole = whole
        self.accepted: int = 0
        self.durable: int = 0
        self.sha256: hashlib._Hash = hashlib.sha256()
        self._service, self._pending, self._patience = service, pending, patience
        self._unstored = Unstored()
        self._written = asyncio.Event()
        self._prepared = asyncio.Event()
        self._moved = asyncio.Condition()
        self._preparing = 0
        """Bytes that are being masked: no longer pending, and not yet among the unstored ones."""
        self.is_begun: bool = False
        """Whether the service knows the capture."""
        self.may_be_known: bool = False
        """Whether it may know it, although no answer said so."""
        self._seen_bytes = 0
        self._looked_at = -1
        """Where the bytes end of which the service has left the last ones for later."""
        self._ending = asyncio.Event()
        self.is_drained: bool = False
        """Whether all of a stream that has ended was prepared."""

    @property
    def size(self) -> int:
        """Bytes that were prepared for sending; all of them, once the stream has ended."""
        return self._unstored.end

    @property
    def seen(self) -> tuple[int, bytes]:
        """How many bytes were prepared, also after sending has failed, and their SHA-256."""
        return self._seen_bytes, self.sha256.digest()

    @property
    def has_room(self) -> bool:
        """Whether another write is taken at once."""
        unstored = 0 if self.failure is not None else len(self._unstored)
        return self._pending.size + self._preparing + unstored < wire.MAX_UNSTORED

    def wake(self) -> None:
        """Say that something was written. For the event loop's own thread."""
        self._written.set()

    def end(self) -> None:
        """Say that nothing more will be written: `run` returns once everything has arrived."""
        self._ending.set()
        self._written.set()

    async def until_room(self) -> None:
        """Wait until another write is taken, or sending has failed."""
        async with self._moved:
            await self._moved.wait_for(lambda: self.has_room or self.has_given_up)

    async def until_sent(self) -> None:
        """Wait until the service has accepted all that was written before, or sending has failed.

        The last word may wait for what comes after it, if secrets are masked.
        """
        self.wake()
        async with self._moved:
            await self._moved.wait_for(lambda: self._is_idle or self.failure is not None)

    @property
    def has_given_up(self) -> bool:
        """Whether nothing takes what is written any more."""
        return self.failure is not None and self.whole is None

    @property
    def _is_idle(self) -> bool:
        return not self._pending.size and not self._preparing and not self._has_news

    @property
    def _has_news(self) -> bool:
        """Whether there are bytes to send. Those that wait for what follows count at the end only."""
        end = self._unstored.end
        return self.accepted < end and (self._looked_at != end or self.is_drained)

    async def run(self) -> None:
        """Send until the end, or until it fails; then keep the rest, if something keeps it."""
        tasks = [asyncio.create_task(work) for work in (self._prepare_all(), self._send_all())]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await self._tell()

    async def _prepare_all(self) -> None:
        """Prepare what is written until the end, or until nobody wants it."""
        while not (self.is_drained or self.has_given_up):
            await self._written.wait()
            self._written.clear()
            await self._prepare()
            self._prepared.set()
            await self._tell()

    async def _send_all(self) -> None:
        try:
            if not self.is_begun and self.failure is None:
                await self._begin()
            while self.failure is None and not (self.is_drained and self._is_idle):
                is_quiet = not await self._wait_for_prepared()
                if is_quiet or self._has_news:
                    await self._send_patiently()
                await self._tell()
        except OverspillError as error:
            self.failure = error
        self._written.set()  # if nothing keeps the rest, nothing is prepared any more

    async def _begin(self) -> None:
        await self._patiently(self.begin)

    async def begin(self) -> None:
        """Make the capture, once. Raises `OverspillError`."""
        try:
            await self._service.begin()
        except OverspillError as error:
            self.may_be_known |= error.was_sent if isinstance(error, Unreachable) else may_pass(error)
            raise
        self.is_begun = self.may_be_known = True

    async def _wait_for_prepared(self) -> bool:
        """Wait for bytes to send, or the end. Return False if it is time to ask the service how far it is."""
        with suppress(TimeoutError):
            async with asyncio.timeout(KEEP_ALIVE_SECONDS if self.has_room else _ASK_SECONDS):
                await self._prepared.wait()
        is_news = self._prepared.is_set()
        self._prepared.clear()
        return is_news

    async def _prepare(self) -> None:
        """Move what was written to the bytes to send: masked, hashed and kept."""
        is_last = self._ending.is_set()
        self._preparing = min(self._pending.size, BATCH_BYTES)
        work = self._last if is_last else self._more
        if self.whole is not None:
            data = await threads.run_blocking(work)
        elif self._preparing > _WORTH_A_THREAD:
            data = await threads.run(work)
        else:
            data = work()
        if self.failure is None:
            self._unstored.add(data)
        self._preparing = 0
        self.is_drained = is_last and not self._pending.size
        if self._pending.size:
            self._written.set()

    def _more(self) -> bytes:
        return self._noted(self._pending.taken())

    def _last(self) -> bytes:
        return self._noted(self._pending.last())

    def _noted(self, data: bytes) -> bytes:
        self.sha256.update(data)
        self._seen_bytes += len(data)
        if self.whole is not None and data:
            with suppress(CannotBuffer):  # it says what is missing
                self.whole.write(data)
        return data

    async def _send_patiently(self) -> None:
        """Send all that is prepared; without any, say that the producer is there. Raises `OverspillError`."""
        await self._patiently(self._append)
        while self._has_news:
            await self._tell()
            await self._patiently(self._append)

    async def _patiently(self, request: Callable[[], Awaitable[T]]) -> T:
        """Do it again while it may pass, for `patience` seconds. Raises `OverspillError`.

        A stream that has ended before the service knew of it loses nothing by giving up at once: whoever has
        the whole stores it in another way.
        """
        loop = asyncio.get_running_loop()
        failures, since = 0, loop.time()
        while True:
            try:
                return await request()
            except OverspillError as error:
                if not may_pass(error) or loop.time() - since > self._patience or self._is_unknown_to_the_end:
                    raise
                await self._pause(_BACKOFF.pause(failures))
                failures += 1

    @property
    def _is_unknown_to_the_end(self) -> bool:
        """Whether the stream has ended, and the service has never heard of it."""
        return self._ending.is_set() and not self.is_begun

    async def _pause(self, seconds: float) -> None:
        """Wait; until the end of the stream at most, if the service does not know of it yet."""
        if self.is_begun:
            await asyncio.sleep(seconds)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ending.wait()

    async def _append(self) -> None:
        began = asyncio.get_running_loop().time()
        size = self._unstored.next_size(self.accepted, wire.MAX_APPEND)
        data = self._unstored.read(self.accepted, size)
        stop = self.accepted + len(data)
        is_last = self.is_drained and stop == self._unstored.end
        try:
            self._note(await self._service.append(self.accepted, data, is_last=is_last))
            self._looked_at = stop
            if is_last and self.accepted < stop:
                raise ProtocolError(f"the service has taken {self.accepted} of {stop} bytes, and no more")
        except WrongOffset as error:
            self._go_on_at(error)
        except NotFound as error:
            await self._begin_again(error)
        if len(data) < _LARGE and not self._ending.is_set():
            await asyncio.sleep(max(0.0, began + PACE_SECONDS - asyncio.get_running_loop().time()))

    def _note(self, status: wire.LiveStatus) -> None:
        if not self._unstored.has(status.accepted):
            raise ProtocolError(f"the service has accepted {status.accepted} bytes, of {self._unstored.end}")
        self.accepted, self.durable = status.accepted, max(self.durable, status.durable)
        self._unstored.drop_before(min(self.durable, self.accepted))

    def _go_on_at(self, error: WrongOffset) -> None:
        """Go on where the service says: behind what a lost answer would have told, or where bytes were lost.

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

    async def complete(self, completion: wire.Completion) -> wire.Entry:
        """End the capture, once `run` has ended. Raises `OverspillError`."""
        while True:
            try:
                return await self._patiently(lambda: self._service.complete(completion))
            except WrongOffset as error:  # accepted bytes were lost meanwhile
                self._go_on_at(error)
                await self._send_patiently()
            except NotFound as error:
                await self._begin_again(error)
                await self._send_patiently()

    async def _tell(self) -> None:
        async with self._moved:
            self._moved.notify_all()


def may_pass(error: OverspillError) -> bool:
    """Return whether the same request may succeed later."""
    if isinstance(error, ProblemError):
        return error.status in _PASSING
    return isinstance(error, Unreachable)
