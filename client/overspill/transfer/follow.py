"""Follows a live capture: its output as server-sent events, resumed after a broken connection."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from overspill import wire
from overspill.errors import OverspillError, ProtocolError
from overspill.errors.verdicts import may_pass_soon
from overspill.execution.backoff import Backoff
from overspill.transfer.caller import decode
from overspill.transfer.events import EventParser
from overspill.transfer.outage import PATIENCE_SECONDS
from overspill.transfer.streamed_answer import StreamedAnswer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from overspill.transfer.events import ServerSentEvent
    from overspill.transfer.request import Request
    from overspill.transfer.transport import Transport

_BACKOFF: Final = Backoff(first=0.2, longest=5.0)


class Following(StreamedAnswer[wire.FollowedOutput]):
    """An async iterator of `FollowedOutput`, and an async context manager that ends it early.

    `end` says how the capture ended, once it has. A connection that breaks off, or says nothing for the
    client's timeout, is made again and goes on where it was: as often as the client retries, and, if it
    retries at all, for a minute after something has come. Then the last error is raised: `Unreachable`, or
    what the service or a gateway says.
    """

    def __init__(self, connect: Callable[[], Awaitable[Transport]], request: Request) -> None:
        super().__init__(connect, request)
        self.end: wire.FollowedEnd | None = None
        self._parser = EventParser()
        self._last_id = ""
        self._failed = 0
        self._last_received: float | None = None
        """When bytes last came, in the event loop's time."""

    async def _advance(self) -> None:
        """Read the bytes that have come. Connect again if no more come."""
        transport = await self._connected()
        try:
            if self._response is None:
                self._response = await transport.open(self._next_request())
                self._parser = EventParser()
            data = await self._read(transport)
        except OverspillError as error:
            await self._pause_after(error, transport.address.retries)
            return
        self._last_received = asyncio.get_running_loop().time()
        for event in self._parser.feed(data):
            self._failed = 0
            self._take(event)

    def _next_request(self) -> Request:
        headers = {"Accept": wire.FOLLOW_TYPE}
        if self._last_id:
            headers["Last-Event-ID"] = self._last_id
        return self._asking(headers)

    async def _pause_after(self, error: OverspillError, retries: int) -> None:
        """Wait before connecting again.

        Raises the error if that cannot help, or has not helped for too long.
        """
        self._drop()
        self._failed += 1
        is_awaited = retries > 0 and self._is_patient
        if not may_pass_soon(error) or (self._failed > retries and not is_awaited):
            raise error
        await asyncio.sleep(_BACKOFF.pause(self._failed - 1))

    @property
    def _is_patient(self) -> bool:
        """Whether the service answered a short time ago."""
        return (
            self._last_received is not None
            and asyncio.get_running_loop().time() < self._last_received + PATIENCE_SECONDS
        )

    def _take(self, event: ServerSentEvent) -> None:
        if event.name == "output":
            output = decode(event.data, wire.FollowedOutput)
            if event.id != str(output.next_offset):
                raise ProtocolError(f"an event has the id {event.id!r} and ends at {output.next_offset}")
            self._last_id = event.id
            self._ready.append(output)
        elif event.name == "end":
            self.end = decode(event.data, wire.FollowedEnd)
            self._is_done = True
            self._drop()
