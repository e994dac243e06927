"""A live capture for asyncio code: others can read it while it is written."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self

from msgspec import structs

from overspill import wire
from overspill.errors import OverspillError
from overspill.errors.client_errors import NotSpooled
from overspill.errors.verdicts import may_pass
from overspill.execution import threads
from overspill.live.labels import check_ending, labels_at_end, redacted_label
from overspill.live.pending_writes import ENDED, PendingWrites, bytes_of
from overspill.live.ports import Beginning
from overspill.live.producer import Producer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping
    from types import TracebackType

    from overspill.live.ports import Description, LiveService, StreamCopy
    from overspill.live.spool_copy import SpoolCopy
    from overspill.redaction.redactor import Redactor

PATIENCE_SECONDS: Final = 60.0
"""Seconds without progress after which a producer gives up the service."""
CANCELLED_SECONDS: Final = 5.0
"""The longest time that a cancelled producer takes to end its capture."""
_HURRIED_SECONDS: Final = 4.0
"""The part of that time for the service. The rest is for the spool."""
WRITE_BYTES: Final = 256 * 1024
"""A longer write is taken in pieces of this size, as soon as there is room."""


class LiveCapture:
    """An output that is stored as it is written. Use it in an `async with` block.

    Leaving the block ends the capture as `complete`. If an exception leaves the block, the capture is
    `partial`, and its status is the exception's class. Entering raises the service's refusal. With a spool,
    it is not an error if the service is down.
    """

    def __init__(
        self,
        service: LiveService,
        description: Description,
        *,
        redactor: Redactor | None = None,
        spool: SpoolCopy | None = None,
        patience: float = PATIENCE_SECONDS,
        copy: StreamCopy | None = None,
    ) -> None:
        """Write all that is sent to `copy`, which the caller closes, or to that of a `spool`.

        Raises `ValueError` for both.
        """
        if copy is not None and spool is not None:
            raise ValueError("a live capture with a spool makes its own copy")
        self.id: str = description.id
        """The handle, under which the output can be read at once."""
        self.entry: wire.Entry | None = None
        """The capture's entry, once it has ended in the service."""
        self.spooled: str = ""
        """The reason why the stream waits on this machine for its upload; empty if the service has it."""
        self._service, self._spool, self._copy = service, spool, copy
        self._description = description
        self._pending = PendingWrites(redactor, spool or copy)
        self.producer: Producer = Producer(
            service, self._pending, patience=patience, name=f"live capture {self.id}"
        )
        self._sender = self.producer.sender
        self._is_over = self._is_hurried = False
        self._status: str | None = None
        self._exit_code: int | None = None

    @property
    def accepted(self) -> int:
        """Bytes that the service has taken. Readers see them."""
        return self._sender.accepted

    @property
    def durable(self) -> int:
        """Bytes that are in the service's object store."""
        return self._sender.durable

    @property
    def masked(self) -> Mapping[str, int]:
        """The number of secrets of each kind that were masked so far."""
        return self._pending.masked

    @property
    def is_open(self) -> bool:
        """Whether the capture has begun and not ended."""
        return self.producer.is_started and not self._is_over

    @property
    def is_copied(self) -> bool:
        """Whether the stream has ended and the copy has all of it."""
        return self._copy is not None and not self._copy.missing and self._pending.is_drained

    @property
    def beginning(self) -> Beginning | None:
        """The beginning of an unfinished stream that the service may have. None if it has nothing of it."""
        if self.entry is not None or not self._sender.may_be_known:
            return None
        return Beginning(
            id=self.id,
            producer=self._service.producer,
            size=self._pending.taken_bytes,
            sha256=self._pending.sha256.digest(),
            labels=self._labels(),
        )

    async def __aenter__(self) -> Self:
        await self.begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_over:
            return
        if error is None:
            await self.complete()
        elif isinstance(error, asyncio.CancelledError):
            await self.give_up(type(error).__name__)
        else:
            with suppress(OverspillError, NotSpooled, OSError):  # the block's own error is the one to see
                await self._end(wire.State.PARTIAL, type(error).__name__)
        await self.aclose()

    async def begin(self) -> None:
        """Make the capture in the service. Entering the block does it."""
        try:
            await self._sender.begin()
        except asyncio.CancelledError as error:  # nobody knows whether the service has it
            await self.give_up(type(error).__name__)
            raise
        except OverspillError as error:
            if self._spool is None or not may_pass(error):
                raise
            self._sender.failure = error
        self.start()

    def start(self) -> None:
        """Begin without waiting for the service, instead of `begin`.

        If the service refuses, `complete` raises. Call it in the event loop that should send.
        """
        self.producer.start()

    async def write(self, data: str | bytes | bytearray | memoryview) -> int:
        """Write text, as UTF-8, or bytes. Return the number of bytes. They are sent in the background.

        Waits while 24 MiB are not durable yet. Raises the error that ended sending: `Unreachable` after a
        minute without the service, or the `ProblemError` with which it refused an append. Raises `ValueError`
        outside the block, `TypeError` if `data` is neither text nor bytes, and `RuntimeError` in another
        event loop than that of the block.
        """
        self.producer.check_loop()
        content = bytes_of(data)
        for start in range(0, len(content), WRITE_BYTES):
            piece = content[start : start + WRITE_BYTES]
            while not self.offer(piece):
                await self.producer.until_room()
            self.producer.wake()
        return len(content)

    def offer(self, data: bytes) -> bool:
        """Take bytes if there is room for them now. Return whether they were taken. Raises as `write` does.

        Safe to call from any thread. The producer has to be woken after it, in the event loop's own thread.
        """
        if self._is_over:
            raise ValueError(ENDED)
        if not self.producer.is_started:
            raise ValueError("this live capture has not begun: write to it inside its `with` block")
        self.producer.raise_failure()
        if not self.producer.has_room:
            return False
        self._pending.add(data)
        return True

    async def flush(self) -> None:
        """Wait until the service has accepted what was written. Raises as `write` does."""
        self.producer.check_loop()
        await self.producer.until_sent()
        self.producer.raise_failure()

    def source_ended(self) -> None:
        """Say that all remaining bytes already exist. For the event loop's own thread.

        If the service does not know the capture yet, sending ends instead of waiting for the service.
        """
        self._sender.source_ended.set()

    def hurry(self, seconds: float) -> None:
        """Let sending fail unless it ends within `seconds` from now, instead of the usual patience.

        With a spool, the whole output is kept there. For the event loop's own thread.
        """
        self._sender.hurry(seconds)

    def ends_with(self, *, status: str | None = None, exit_code: int | None = None) -> None:
        """Set the status and the exit code that the capture gets when its block is left.

        Raises `TypeError` or `ValueError` if they are invalid.
        """
        check_ending(status, exit_code)
        self._status, self._exit_code = status, exit_code

    async def complete(self, *, status: str | None = None, exit_code: int | None = None) -> wire.Entry | None:
        """Send the rest and end the capture. Return its entry, or None if it is in the spool.

        Raises as `write` and `ends_with` do, and `OSError` if the spool cannot take what the service does
        not.
        """
        if status is not None or exit_code is not None:
            self.ends_with(status=status, exit_code=exit_code)
        return await self._end(wire.State.COMPLETE, self._status)

    async def abort(self, status: str | None = None) -> wire.Entry | None:
        """Send the rest and end the capture as `partial`. Raises as `complete` does."""
        check_ending(status, None)
        return await self._end(wire.State.PARTIAL, status)

    async def give_up(self, status: str) -> None:
        """End the capture as `partial`, within a few seconds. No failure is raised."""
        self._is_hurried = True
        await self._in_time(self._end(wire.State.PARTIAL, status))

    async def aclose(self) -> None:
        """Stop sending. The service makes the capture partial after five minutes."""
        self.producer.check_loop()
        self._is_over = True
        await self.producer.aclose()
        if self._spool is not None:
            self._spool.close()

    async def _end(self, state: wire.State, status: str | None) -> wire.Entry | None:
        if self._is_over:
            return self.entry
        self.producer.check_loop()
        self._is_over = True
        self.producer.end()
        try:
            await self._finish_or_keep(state, status)
        except asyncio.CancelledError:
            if not self._is_hurried:
                await self._in_time(self._finish_or_keep(state, status))
            raise
        finally:
            await self.aclose()
        return self.entry

    async def _finish_or_keep(self, state: wire.State, status: str | None) -> None:
        try:
            await self._finish(state, status)
        except OverspillError as error:
            if self._spool is None:
                raise
            await threads.run_blocking(self._keep_in, self._spool, error, status)

    async def _finish(self, state: wire.State, status: str | None) -> None:
        """Send the rest, and end the capture in the service. Safe to repeat."""
        await self.producer.finish()
        self.entry = await self._sender.complete(
            wire.Completion(
                offset=self._pending.taken_bytes,
                state="complete" if state is wire.State.COMPLETE else "partial",
                status=None if status is None else wire.fit(status, wire.SHORT_VALUE),
                exit_code=self._exit_code,
                sha256=self._pending.sha256.hexdigest(),
                labels=redacted_label(self._pending.masked, self._description),
            )
        )

    async def _in_time(self, ending: Awaitable[object]) -> None:
        """Wait for the end of a cancelled capture, but not for long. No failure is raised."""
        self._sender.hurry(_HURRIED_SECONDS)
        with suppress(TimeoutError, OverspillError, NotSpooled, OSError):
            async with asyncio.timeout(CANCELLED_SECONDS):
                await ending

    def _keep_in(self, spool: SpoolCopy, error: OverspillError, status: str | None) -> None:
        """Keep the whole stream in the spool. Raises `OSError` and `NotSpooled`."""
        producer = self._service.producer if self._sender.may_be_known else ""
        described = structs.replace(self._description, status=status or "", labels=self._labels())
        spool.spool(described, str(error), producer)
        self.spooled = str(error)

    def _labels(self) -> dict[str, str]:
        return labels_at_end(self._description, self._pending.masked, self._exit_code)
