"""The part that every call of the client needs: its settings, its connections, and the answer as a struct.

aiohttp and zstd take a quarter of a second to import. The first request loads them, in a thread. So an agent
whose outputs all stay short never pays for them.
"""

from __future__ import annotations

import functools
import importlib
import os
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import msgspec
from msgspec import structs

from overspill import wire
from overspill.errors import ClientClosed, ProtocolError
from overspill.execution import threads
from overspill.transfer.address import Address, checked_key, checked_url
from overspill.transfer.argument_checks import check_count, check_reference, check_seconds, check_text
from overspill.transfer.closing import CLOSED
from overspill.transfer.request import of_capture

if TYPE_CHECKING:
    from types import TracebackType

    from overspill.transfer.request import Request
    from overspill.transfer.transport import Transport

T = TypeVar("T")

TIMEOUT: Final = 30.0
CONNECT_TIMEOUT: Final = 5.0
RETRIES: Final = 3


class Caller:
    """Sends requests to the service that its settings name, and decodes the answers."""

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        session: str | None = None,
        timeout: float = TIMEOUT,
        connect_timeout: float = CONNECT_TIMEOUT,
        retries: int = RETRIES,
        compress: bool = True,
    ) -> None:
        check_seconds("timeout", timeout)
        check_seconds("connect_timeout", connect_timeout)
        check_count("retries", retries)
        if session is not None:
            check_text("session", session)
        self.address: Address = Address(
            url=checked_url(url),
            key=checked_key(key),
            timeout=timeout,
            connect_timeout=connect_timeout,
            retries=retries,
        )
        self.session: str = os.environ.get("OVERSPILL_SESSION", "") if session is None else session
        self._compress = compress
        self._opened: Transport | None = None
        self._is_closed = False

    @property
    def settings(self) -> dict[str, Any]:
        """The keyword parameters that make a client like this one, besides the URL and the key."""
        address = self.address
        return {
            "session": self.session,
            "timeout": address.timeout,
            "connect_timeout": address.connect_timeout,
            "retries": address.retries,
            "compress": self._compress,
        }

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what makes a client like this one, with its key, and connections of its own."""
        return functools.partial(type(self), **self.settings), (self.address.url, self.address.key)

    def __repr__(self) -> str:
        return f"Client({self.address!r}, session={self.session!r})"

    async def __aenter__(self) -> Self:
        self._is_closed = False
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections. Calls raise `ClientClosed` from then on; `async with` opens it again."""
        self._is_closed = True
        transport, self._opened = self._opened, None
        if transport is not None:
            await transport.close()

    async def _call(self, request: Request, answer_type: type[T]) -> T:
        transport = await self._transport()
        return decode(await transport.call(request), answer_type)

    async def _call_capture(
        self, method: str, path: str, ref: str, session: str | None, answer_type: type[T]
    ) -> T:
        """Send a request about one capture that says no more than which. `path` has `{ref}` in it."""
        return await self._call(self._capture_request(method, path, ref, session), answer_type)

    def _capture_request(
        self, method: str, path: str, ref: str, session: str | None, query: wire.RefQuery | None = None
    ) -> Request:
        """Return a request about one capture. Only a `call:` reference takes the client's own session."""
        check_reference(ref)
        is_call = ref.startswith(wire.CALL_PREFIX)
        where = self.session if session is None and is_call else session
        scoped = structs.replace(
            query or wire.RefQuery(),
            session=fit_or_none(where or None),
            any_session=is_call and session == "",
        )
        return of_capture(method, path, ref, scoped)

    async def _transport(self) -> Transport:
        if self._is_closed:
            raise ClientClosed(CLOSED)
        if self._opened is None:
            module = await threads.run_blocking(load_transport)
            self._opened = self._opened or module(self.address)
        return self._opened


def load_transport() -> type[Transport]:
    """Import what a request needs. It takes a quarter of a second the first time."""
    importlib.import_module("overspill.transfer.source")
    importlib.import_module("overspill.transfer.compression")
    transport: type[Transport] = importlib.import_module("overspill.transfer.transport").Transport
    return transport


def fit_or_none(value: str | None) -> str | None:
    """Return `value` as a query carries it, or None if nothing is asked."""
    if value is None:
        return None
    check_text("a session, a call id and a tool", value)
    return wire.fit(value)


def decode(body: bytes, answer_type: type[T]) -> T:
    """Return the answer as a struct. Raises `ProtocolError` if the service cannot have sent it."""
    try:
        return msgspec.json.decode(body, type=answer_type)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProtocolError(f"the answer is not what Overspill answers: {error}") from error
