"""Refuses bodies that come too slowly, so that a slow client does not hold its place without end."""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from aiohttp import ClientError, web
from aiohttp.http_exceptions import HttpProcessingError

from overspill_service.errors import IncompleteBody
from overspill_service.web.expectations import ask_for_body

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from overspill_service.settings.settings import Settings


class BodyPatience:
    """Watches one body. Only the time in which the service waits for the client counts against its rate."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._grace = settings.min_upload_rate, settings.idle_timeout
        self._limit, self._clock = settings.upload_timeout, clock
        self._began = clock()
        self._waited = 0.0
        self._size = 0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the time of the block as time spent waiting for the client."""
        since = self._clock()
        yield
        self._waited += self._clock() - since

    def received(self, size: int) -> None:
        """Count `size` bytes. Raises `IncompleteBody` if the body is too slow, or takes too long."""
        self._size += size
        if self._waited > self._grace and self._size < self._rate * self._waited:
            raise IncompleteBody(
                f"the body came slower than {self._rate} bytes a second for {self._waited:.0f} s; nothing "
                "was stored: collect it, then send it"
            )
        if self._limit and self._clock() - self._began > self._limit:
            raise IncompleteBody(
                f"the body took longer than {self._limit:g} s; nothing was stored: send it faster or in parts"
            )


async def body_chunks(request: web.Request, settings: Settings) -> AsyncIterator[bytes]:
    """Yield the body as it arrives. Raises `IncompleteBody` if it stops, breaks off, is malformed or slow."""
    idle, patience = settings.idle_timeout, BodyPatience(settings)
    try:
        await ask_for_body(request)
        while True:
            with patience.waiting():
                chunk = await _next_chunk(request, idle)
            if not chunk:
                return
            patience.received(len(chunk))
            yield chunk
    except TimeoutError as error:
        raise IncompleteBody(
            f"no byte of the body came for {idle:g} s; nothing was stored: send it again"
        ) from error
    except (ClientError, ConnectionError, web.RequestPayloadError, HttpProcessingError) as error:
        raise IncompleteBody(f"the body broke off ({error}); nothing was stored: send it again") from error


async def _next_chunk(request: web.Request, idle: float) -> bytes:
    """Return the next bytes of a body, empty at its end. Raises `TimeoutError` after `idle` seconds."""
    content = request.content
    if content.is_eof():  # all has come: a timer would cost more than the rest of the read
        return content.read_nowait()
    async with asyncio.timeout(idle):
        if request.content_length is None:  # it may come in tiny pieces
            return await content.readany()
        return (await content.readchunk())[0]  # as it was received: `readany` would copy it
