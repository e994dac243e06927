"""An answer that comes piece by piece, as an async iterator. It opens its connection on first use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from msgspec import structs

from overspill.errors import Unreachable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    import aiohttp

    from overspill.transfer.request import Request
    from overspill.transfer.transport import Transport

T = TypeVar("T")


class StreamedAnswer(ABC, Generic[T]):
    """An async iterator of items, and an async context manager that ends it early."""

    def __init__(self, connect: Callable[[], Awaitable[Transport]], request: Request) -> None:
        self._connect, self._request = connect, request
        self._transport: Transport | None = None
        self._response: aiohttp.ClientResponse | None = None
        self._ready: deque[T] = deque()
        self._is_done = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
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
        """End the transfer. Does nothing the second time."""
        self._is_done = True
        self._ready.clear()
        self._drop()

    @abstractmethod
    async def _advance(self) -> None:
        """Do one step: add to `_ready`, or set `_is_done`, or read from the network."""

    async def _connected(self) -> Transport:
        if self._transport is None:
            self._transport = await self._connect()
        return self._transport

    def _asking(self, headers: Mapping[str, str]) -> Request:
        """Return the request with more headers."""
        return structs.replace(self._request, headers={**self._request.headers, **headers})

    async def _read(self, transport: Transport) -> bytes:
        """Return the bytes that have arrived. Raises `Unreachable` if the connection brings no more."""
        assert self._response is not None
        if data := await transport.read(self._response):
            return data
        raise Unreachable(f"{transport.address.url} ended its answer too early")

    def _drop(self) -> None:
        """Close the connection. The next step may open another one."""
        response, self._response = self._response, None
        if response is not None:
            response.close()
