"""`Expect: 100-continue`: a client that waits before it sends a body (RFC 9110, section 10.1.1).

The client is told to go on when the body is needed. So a refusal that needs no body costs none.
"""

from __future__ import annotations

from typing import Final

from aiohttp import HttpVersion11, hdrs, web, web_urldispatcher

from overspill_service.errors import ExpectationFailed

CONTINUE: Final = "100-continue"
_IS_UNKNOWN: Final = web.RequestKey("has an unknown expectation", bool)
_IS_WAITING: Final = web.RequestKey("is waiting to continue", bool)


async def note_expectation(request: web.Request) -> None:
    """Note that the client waits, or has another expectation.

    aiohttp's own handler tells every client to continue, quotes the field, and fails if it is not UTF-8.
    """
    if request.version < HttpVersion11:
        return
    request[_IS_UNKNOWN] = request.headers.get(hdrs.EXPECT, "").lower() != CONTINUE
    request[_IS_WAITING] = request[_IS_UNKNOWN] or request.body_exists


def require_known_expectation(request: web.Request) -> None:
    """Raise `ExpectationFailed` for any other expectation than 100-continue."""
    if request.get(_IS_UNKNOWN):
        raise ExpectationFailed("Expect may be 100-continue and nothing else")


def is_waiting(request: web.Request) -> bool:
    """Return whether the client waits to send its body: it may never come."""
    return bool(request.get(_IS_WAITING))


async def ask_for_body(request: web.Request) -> None:
    """Tell a client that waits to continue."""
    if is_waiting(request):
        request[_IS_WAITING] = False
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # count only the bytes of the answer itself


def install() -> None:
    """Treat expectations without a route in the same way: for these aiohttp has no setting."""
    web_urldispatcher._default_expect_handler = note_expectation  # noqa: SLF001
