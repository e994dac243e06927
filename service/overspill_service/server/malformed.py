"""Answers to what is no HTTP that can be read: a problem as every other one, which quotes nothing of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import hdrs, web_protocol, web_server
from aiohttp.http_exceptions import HttpProcessingError

from overspill_service.errors import BadRequest
from overspill_service.resources.random_names import random_bytes
from overspill_service.telemetry.logs import mistake_of
from overspill_service.web.middleware import SECURITY_HEADERS
from overspill_service.web.problems import problem_of, response_of

if TYPE_CHECKING:
    from aiohttp import web


class PlainRefusals(web_protocol.RequestHandler):
    """Serves one connection. aiohttp itself would quote the line that it cannot read, with the key in it."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return the answer to a malformed request, and close the connection behind it."""
        answer = super().handle_error(request, status, exc, message)
        if not isinstance(exc, HttpProcessingError):
            return answer
        error = BadRequest(mistake_of(exc))
        refusal = response_of(problem_of(error, random_bytes(8).hex()), error)
        refusal.headers.update(SECURITY_HEADERS)
        refusal.headers[hdrs.CONNECTION] = "close"
        refusal.force_close()
        return refusal


def install() -> None:
    """Have aiohttp's server make these handlers: there is no other way to say so."""
    web_server.RequestHandler = PlainRefusals  # type: ignore[attr-defined]
