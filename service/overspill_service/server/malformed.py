"""Answers requests that are not valid HTTP: with a problem, like all errors, which quotes nothing of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import hdrs, web_protocol, web_server
from aiohttp.http_exceptions import HttpProcessingError

from overspill_service.errors import BadRequest
from overspill_service.resources.random_names import random_bytes
from overspill_service.telemetry.logs import mistake_of
from overspill_service.web.problems import SECURITY_HEADERS, problem_of, response_of

if TYPE_CHECKING:
    from aiohttp import web


class ProblemRequestHandler(web_protocol.RequestHandler):
    """Serves one connection. aiohttp's own handler would quote the invalid line, with the key that it has."""

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
    """Replace the handler that aiohttp's server makes for each connection: it has no setting for that."""
    web_server.RequestHandler = ProblemRequestHandler  # type: ignore[attr-defined]
