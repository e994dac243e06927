"""What went wrong with a request, as an exception: the service's problem, or why it cannot be reached."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import aiohttp
import msgspec

from overspill import wire
from overspill.errors import OverspillError, ProtocolError, Unreachable, error_for

if TYPE_CHECKING:
    from collections.abc import Mapping

_NOT_CONNECTED: Final = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)


def unreachable(url: str, error: aiohttp.ClientError) -> Unreachable:
    """The service at `url` did not answer."""
    failure = Unreachable(f"{url} cannot be reached: {reason(error)}")
    failure.was_sent = not isinstance(error, _NOT_CONNECTED)
    return failure


def redirected(url: str, response: aiohttp.ClientResponse) -> OverspillError:
    """The answer points to another address."""
    target = response.headers.get("Location", "nowhere")
    return ProtocolError(
        f"{url} redirects to {target}, and redirects are not followed: if that is the "
        "service, set OVERSPILL_URL to its address"
    )


def refused(response: aiohttp.ClientResponse, body: bytes) -> OverspillError:
    """The answer is an error, with this body."""
    return error_for(_problem(response, body))


def reason(error: Exception) -> str:
    """In a few words: aiohttp's own repeat the address and tell of its settings."""
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return "connecting takes too long"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "it closed the connection"
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, OSError) and cause.errno is not None:
        text = cause.strerror or ""
        is_asyncios = text.startswith("Connect call failed")
        return os.strerror(cause.errno).lower() if is_asyncios or not text else text
    return str(error) or type(error).__name__


def _problem(response: aiohttp.ClientResponse, body: bytes) -> wire.Problem:
    """The problem in an error's body; one made from the status where something else answered."""
    request_id = response.headers.get(wire.Header.REQUEST_ID, "")
    try:
        problem = msgspec.json.decode(body, type=wire.Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return wire.Problem(
            type="about:blank",
            title=response.reason or "",
            status=response.status,
            code="",
            detail=f"the answer is HTTP {response.status} {response.reason} without a problem body",
            instance=request_id,
            retry_after=_retry_after(response.headers),
        )
    return msgspec.structs.replace(
        problem,
        status=response.status,
        instance=problem.instance or request_id,
        retry_after=problem.retry_after or _retry_after(response.headers),
    )


def _retry_after(headers: Mapping[str, str]) -> int | None:
    """Seconds, where the field gives seconds; its form as a date is passed over."""
    value = headers.get("Retry-After", "")
    return int(value) if value.isascii() and value.isdigit() else None
