"""Uploads a stream to a live capture while its tool goes on producing it: other machines see it grow.

    the tool's thread      ChunkStream ──▶ memory, then a file
                                             │ read
    the loop thread        StreamUpload ─────┴──append──▶ service

The tool never waits for the service. All of the stream is on this machine until its end, so nothing is kept
here, and what the service does not take by then is stored as any output is, under the same id.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import structs

from overspill.delivery.slots import live_slots_of
from overspill.delivery.upload import failure_of
from overspill.errors import OverspillError, ProblemError
from overspill.errors.verdicts import may_pass
from overspill.execution import threads
from overspill.execution.backoff import Backoff
from overspill.live.ports import Beginning
from overspill.live.resender import PIECE_BYTES, Resender
from overspill.transfer.live_calls import give_up, live_service
from overspill.transfer.sync import running

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

    from overspill import wire
    from overspill.delivery.loop_access import LoopAccess
    from overspill.delivery.service_destination import ServiceDestination
    from overspill.execution.waiting import Reply
    from overspill.live.ports import Description, LiveService
    from overspill.shapes.chunk_stream import ChunkStream

LIVE_BYTES: Final = 1024 * 1024
"""A stream that is too long, and has more bytes than this, becomes a live capture."""
LIVE_SECONDS: Final = 2.0
"""So does a stream that still goes on this many seconds after it became too long."""
LOOK_SECONDS: Final = 0.25
"""Seconds between two looks at a stream that grows."""
IDLE_SECONDS: Final = 1.0
"""Seconds between two looks at a stream that does not grow."""
KEEP_ALIVE_SECONDS: Final = 60.0
"""Seconds between two messages to the service that a stream without new bytes goes on."""
GIVE_UP_SECONDS: Final = 5.0
_BACKOFF: Final = Backoff(first=0.5, longest=15.0)

log: Final = logging.getLogger("overspill")


class StreamUpload:
    """One stream on its way to `destination`, in the thread of `loop`.

    `stop`, `beginning` and `abandon` are for any thread.

    It begins at once to look at the stream. Raises `NoLoop` if no thread can do that.
    """

    def __init__(
        self,
        stream: ChunkStream,
        description: Description,
        flow: Hashable,
        destination: ServiceDestination,
        loop: LoopAccess,
    ) -> None:
        self.id: str = description.id
        self.producer: str = ""
        """The producer's word; empty if the service knows nothing of the capture."""
        self._stream, self._description, self._flow = stream, description, flow
        self._destination, self._loop = destination, loop
        self._sender: Resender | None = None
        self._looked_at = 0
        self._heard_at = time.monotonic()
        self._is_stopped = self._is_refused = self._is_broken = False
        self._process = os.getpid()
        self._reply: Reply[None] = loop.begin(self._run())

    @property
    def is_inherited(self) -> bool:
        """Whether a parent process began the upload. After a fork only the parent goes on with it."""
        return self._process != os.getpid()

    def stop(self) -> Reply[None]:
        """Stop sending the stream as it grows. Return a reply that is done once nothing is sent any more."""
        self._is_stopped = True
        self._reply.cancel()
        return self._reply

    def beginning(self, *, is_own: bool) -> Beginning | None:
        """Return what the service may have of the stream, after `stop`; None if it can have nothing.

        `is_own`: the whole, which is to be stored, is what was read here.
        """
        if not self.producer or self._sender is None or self._is_broken:
            return None
        size, sha256 = self._sender.seen
        return Beginning(
            id=self.id,
            producer=self.producer,
            size=size,
            sha256=None if is_own else sha256,
            labels=self._description.labels,
            accepted=self._sender.accepted,
            go_on=None if self._is_refused else self._complete,
        )

    def abandon(self) -> None:
        """End the capture as partial, in the background, if there is one. Safe in finalizers."""
        if self.is_inherited:
            return
        self.stop()
        if self.producer:
            with suppress(RuntimeError):
                self._loop.begin(self._try_to_give_up())

    async def _complete(
        self, completion: wire.Completion, progress: Callable[[int], object]
    ) -> wire.Entry | None:
        """Send the rest and end the capture, in the loop thread and after `stop`. See `Beginning.go_on`."""
        assert self._sender is not None
        try:
            return await self._sender.complete(completion, progress)
        except ProblemError as error:
            if may_pass(error):
                raise
            log.info("the live capture %s is stored as a whole: %s", self.id, error)
            return None

    async def _run(self) -> None:
        """Send what comes, until `stop` or until the service refuses."""
        try:
            await self._until_due()
            self._sender = sender = Resender(self._new_service(), self._read)
            if self._is_stopped:
                return
            await self._retry(sender.begin)
            while True:
                await self._retry(partial(self._send_news, sender))
        except (OverspillError, OSError) as error:
            self._is_refused = True
            if self._sender is None or not self._sender.may_be_known:
                self.producer = ""
            log.info("the stream %s is stored at its end: %s", self.id, error)
        except Exception:  # the boundary: whatever fails here, the stream is stored at its end
            self._is_broken = True
            log.exception("the stream %s is stored at its end, and not as it grows", self.id)

    async def _until_due(self) -> None:
        until = time.monotonic() + LIVE_SECONDS
        while time.monotonic() < until and self._stream.captured <= LIVE_BYTES:  # noqa: ASYNC110  (no call for each chunk)
            await asyncio.sleep(LOOK_SECONDS)

    def _new_service(self) -> LiveService:
        _, client = running(self._destination.synchronous())
        service = live_service(
            client, structs.replace(self._description, content_type=self._stream.media_type)
        )
        self.producer = service.producer  # whoever stops this later knows that there may be a capture
        return service

    async def _read(self, offset: int, limit: int) -> bytes:
        return await threads.run_blocking(self._stream.read, offset, limit)

    async def _retry(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do the work. Repeat it as long as it may still succeed.

        Raises the `OverspillError` that is final.
        """
        failures, health = 0, self._destination.health
        while True:
            if health.refusal() is None:
                try:
                    return await work()
                except OverspillError as error:
                    if not may_pass(error):
                        raise
                    failure_of(error, health)
            await asyncio.sleep(_BACKOFF.pause(failures))
            failures += 1

    async def _send_news(self, sender: Resender) -> None:
        """Send the bytes that have come, or wait. Bytes that were held back are sent when no others come."""
        taken, is_silent = self._stream.taken, time.monotonic() - self._heard_at > KEEP_ALIVE_SECONDS
        if taken == self._looked_at and not is_silent:
            await asyncio.sleep(IDLE_SECONDS)
            return
        sent = await self._send_next(sender, is_silent=is_silent)
        if not sent:
            self._looked_at = taken
        if sent < PIECE_BYTES:
            await asyncio.sleep(LOOK_SECONDS)

    async def _send_next(self, sender: Resender, *, is_silent: bool) -> int:
        release = await live_slots_of(self._destination.health.url).take(self._flow, PIECE_BYTES)
        try:
            sent = await sender.send_next()
            if is_silent and not sent:
                await sender.send_sign_of_life()
        finally:
            release()
        if sent or is_silent:
            self._heard_at = time.monotonic()
            self._destination.health.answered()
        return sent

    async def _try_to_give_up(self) -> None:
        """End the capture as partial, so that no reader waits for more of it. Raises nothing."""
        with suppress(OverspillError, TimeoutError, RuntimeError):  # the service ends it after some minutes
            async with asyncio.timeout(GIVE_UP_SECONDS):
                _, client = running(self._destination.synchronous())
                await give_up(client, self.id, self.producer)
