"""Turns failed requests into exceptions: the service's problem, or why the service cannot be reached."""

from __future__ import annotations

import math
import os
import re
import ssl
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

import aiohttp
import msgspec

from overspill import wire
from overspill.errors import OverspillError, ProtocolError, Unreachable, error_for

if TYPE_CHECKING:
    from collections.abc import Mapping

_RESET: Final = re.compile(r";\s*t=(\d{1,9})\b")
"""The seconds until a quota is available again (draft-ietf-httpapi-ratelimit-headers-10)."""
_ELSEWHERE: Final = "a proxy or another program, not the service, answered with HTTP {0.status} ({0.reason})"
_ADVICE: Final = {413: ": it must take larger requests (nginx: client_max_body_size)"}
"""Advice on the answers of proxies, by status."""
_NOT_CONNECTED: Final = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)


def unreachable(url: str, error: aiohttp.ClientError) -> Unreachable:
    """Return the error for a service at `url` that did not answer."""
    failure = Unreachable(f"{url} cannot be reached: {reason(error)}")
    failure.was_sent = not isinstance(error, _NOT_CONNECTED)
    failure.is_untrusted = isinstance(error, aiohttp.ClientConnectorCertificateError)
    return failure


def redirected(url: str, response: aiohttp.ClientResponse) -> OverspillError:
    """Return the error for an answer that points to another address."""
    target = response.headers.get("Location", "nowhere")
    return ProtocolError(
        f"{url} redirects to {target}, and redirects are not followed: if that is the "
        "service, set OVERSPILL_URL to its address"
    )


def refused(response: aiohttp.ClientResponse, body: bytes) -> OverspillError:
    """Return the error for an answer with this status and body."""
    return error_for(_problem(response, body))


def reason(error: Exception) -> str:
    """Say in a few words what went wrong. aiohttp's own texts repeat the address and name its settings."""
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return "connecting takes too long"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "it closed the connection"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not trusted: {_verdict(error.certificate_error)}"
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, OSError) and cause.errno is not None:
        text = cause.strerror or ""
        is_asyncios = text.startswith("Connect call failed")
        return os.strerror(cause.errno).lower() if is_asyncios or not text else text
    return str(error) or type(error).__name__


def _verdict(error: Exception) -> str:
    """Return OpenSSL's words for what is wrong with a certificate."""
    return error.verify_message if isinstance(error, ssl.SSLCertVerificationError) else str(error)


def _problem(response: aiohttp.ClientResponse, body: bytes) -> wire.Problem:
    """Return the problem in an error's body. If the answer is not the service's, make a problem."""
    request_id = response.headers.get(wire.Header.REQUEST_ID, "")
    try:
        problem = msgspec.json.decode(body, type=wire.Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return wire.Problem(
            type="about:blank",
            title=response.reason or "",
            status=response.status,
            code="",
            detail=_ELSEWHERE.format(response) + _ADVICE.get(response.status, ""),
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
    """Return the seconds after which to ask again, by `Retry-After` or `RateLimit`.

    None if neither says it.
    """
    value = headers.get("Retry-After", "")
    if value.isascii() and value.isdigit():
        return int(value)
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        reset = _RESET.search(headers.get("RateLimit", ""))
        return int(reset[1]) if reset else None
    return max(0, math.ceil((date - datetime.now(UTC)).total_seconds())) if date.tzinfo else None
