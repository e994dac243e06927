"""Follows a live capture: its output as server-sent events, resumed after a broken connection."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final, Self

from msgspec import structs

from overspill import wire
from overspill.errors import ProtocolError, Unreachable
from overspill.execution.backoff import Backoff
from overspill.transfer.caller import decode
from overspill.transfer.events import EventParser

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import aiohttp

    from overspill.transfer.events import Event
    from overspill.transfer.request import Request
    from overspill.transfer.transport import Transport

_BACKOFF: Final = Backoff(first=0.2, longest=5.0)


class Following:
    """An async iterator of `FollowedOutput`, and an async context manager that ends it early.

    `end` says how the capture ended, once it has. A connection that breaks off, or says nothing for the
    client's timeout, is made again where it was. Raises `Unreachable` if as many of them in a row as the
    client retries bring nothing.
    """

    def __init__(self, connect: Callable[[], Awaitable[Transport]], request: Request) -> None:
        self.end: wire.FollowedEnd | None = None
        self._connect, self._request = connect, request
        self._transport: Transport | None = None
        self._response: aiohttp.ClientResponse | None = None
        self._parser = EventParser()
        self._ready: deque[wire.FollowedOutput] = deque()
        self._last_id = ""
        self._failed = 0
        self._is_done = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> wire.FollowedOutput:
        try:
            while not self._ready and not self._is_done:
                await self._advance()
        except BaseException:
            await self.aclose()
            raise
        if not self._ready:
            raise StopAsyncIteration
        return self._ready.popleft()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End it. Does nothing the second time."""
        self._is_done = True
        self._ready.clear()
        self._drop()

    def _drop(self) -> None:
        response, self._response = self._response, None
        if response is not None:
            response.close()

    async def _advance(self) -> None:
        """Read what has come, and connect again if nothing more comes."""
        if self._transport is None:
            self._transport = await self._connect()
        try:
            if self._response is None:
                self._response = await self._transport.open(self._next_request())
                self._parser = EventParser()
            data = await self._transport.read(self._response)
        except Unreachable as error:
            await self._pause_after(error, self._transport.address.retries)
            return
        if not data:
            early = Unreachable(f"{self._transport.address.url} ended its answer too early")
            await self._pause_after(early, self._transport.address.retries)
        for event in self._parser.feed(data):
            self._failed = 0
            self._take(event)

    def _next_request(self) -> Request:
        headers = {"Accept": wire.FOLLOW_TYPE}
        if self._last_id:
            headers["Last-Event-ID"] = self._last_id
        return structs.replace(self._request, headers={**self._request.headers, **headers})

    async def _pause_after(self, error: Unreachable, retries: int) -> None:
        """Wait before connecting again. Raises the error if it is one too many in a row."""
        self._drop()
        self._failed += 1
        if self._failed > retries:
            raise error
        await asyncio.sleep(_BACKOFF.pause(self._failed - 1))

    def _take(self, event: Event) -> None:
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
