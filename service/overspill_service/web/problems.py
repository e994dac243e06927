"""Turns failures into `application/problem+json` (RFC 9457). The only module that knows status codes."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import msgspec
from aiohttp import hdrs, web
from overspill.wire import PROBLEM_TYPE, Code, Header, Problem

from overspill_service.errors import RateExceeded, ServiceError, TooManyRequests, Unavailable
from overspill_service.errors.system import resource_failure
from overspill_service.web.negotiation import CODINGS

if TYPE_CHECKING:
    from collections.abc import Mapping

TYPE_PREFIX: Final = "urn:overspill:problem:"
RATE_LIMIT_POLICY: Final = "RateLimit-Policy"
RATE_LIMIT: Final = "RateLimit"
SECURITY_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    hdrs.CACHE_CONTROL: "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    hdrs.SERVER: "overspill",
}
"""Headers of every answer that has no other value for them.

Browsers then store nothing and pass nothing on.
"""

log = logging.getLogger(__name__)


def underlying(error: Exception) -> Exception:
    """Return the error to report: the lack of a resource if that is the cause, else the error itself."""
    is_plain = isinstance(error, ServiceError) and not isinstance(error, Unavailable)
    return error if is_plain else resource_failure(error) or error


def problem_of(error: Exception, request_id: str) -> Problem:
    """Return the problem for a failure that `underlying` returned.

    An unexpected failure is logged, and its problem says nothing of it.
    """
    if isinstance(error, ServiceError):
        return _problem(
            error.code,
            str(error),
            request_id,
            expired=error.expired,
            limit=error.limit,
            offset=error.offset,
            durable=error.durable,
            retry_after=error.retry_after,
        )
    if isinstance(error, web.HTTPException):
        return _from_http(error, request_id)
    log.error("unexpected failure", exc_info=error)
    return _problem(
        Code.INTERNAL, "an unexpected failure; the operator finds it in the log by this id", request_id
    )


def response_of(problem: Problem, error: Exception) -> web.Response:
    """Return the problem of an error as an answer, with the headers that its status requires (RFC 9110)."""
    headers: dict[str, str] = {}
    if problem.retry_after is not None:
        headers["Retry-After"] = str(problem.retry_after)
    headers |= _rate_limit_fields(error)
    if problem.offset is not None:
        headers[Header.UPLOAD_OFFSET] = str(problem.offset)
    if problem.durable is not None:
        headers[Header.DURABLE_OFFSET] = str(problem.durable)
    if problem.code == Code.UNAUTHORIZED:
        headers["WWW-Authenticate"] = 'Bearer realm="overspill"'
    if problem.code == Code.UNSUPPORTED_ENCODING:
        headers["Accept-Encoding"] = CODINGS
    if problem.code == Code.RANGE_NOT_SATISFIABLE:
        headers["Content-Range"] = f"bytes */{problem.limit}"
    return web.Response(
        status=problem.status, body=msgspec.json.encode(problem), content_type=PROBLEM_TYPE, headers=headers
    )


def _rate_limit_fields(error: Exception) -> dict[str, str]:
    """Return the fields about the limit that a request exceeded (draft-ietf-httpapi-ratelimit-headers-10)."""
    if isinstance(error, RateExceeded):
        name = error.policy.partition(";")[0]
        return {RATE_LIMIT_POLICY: error.policy, RATE_LIMIT: f"{name};r=0;t={error.retry_after}"}
    if isinstance(error, TooManyRequests):
        return {
            RATE_LIMIT_POLICY: f'"places";q={error.limit};qu="concurrent-requests"',
            RATE_LIMIT: '"places";r=0',
        }
    return {}


def bytes_of(error: ServiceError) -> bytes:
    """Return the bytes of an answer to a client whose request was not read."""
    response = response_of(problem_of(error, ""), error)
    assert isinstance(response.body, bytes)
    fields = (
        SECURITY_HEADERS
        | dict(response.headers)
        | {"Content-Length": str(len(response.body)), "Connection": "close"}
    )
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return (
        f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}\r\n{lines}\r\n".encode()
        + response.body
    )


def _problem(code: Code, detail: str, request_id: str, **fields: object) -> Problem:
    """Return a problem. Header bytes that are not UTF-8 come as lone surrogates, which JSON cannot hold."""
    detail = detail.encode("utf-8", "backslashreplace").decode()
    members = {name: value for name, value in fields.items() if value is not None}
    return msgspec.convert(
        {
            "type": TYPE_PREFIX + code.value,
            "title": code.heading,
            "status": code.status,
            "code": code.value,
            "detail": detail,
            "instance": request_id,
            **members,
        },
        Problem,
    )


def _from_http(error: web.HTTPException, request_id: str) -> Problem:
    """Return the problem for a refusal by aiohttp: no route, a wrong method, a malformed request."""
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(error.allowed_methods))
        return _problem(Code.METHOD_NOT_ALLOWED, f"{error.method} is not one of {allowed}", request_id)
    if isinstance(error, web.HTTPNotFound):
        return _problem(Code.NO_ROUTE, "no such path; /openapi.json lists those that there are", request_id)
    if isinstance(error, web.HTTPRequestEntityTooLarge):
        return _problem(Code.BODY_TOO_LARGE, error.text or "the body is too large", request_id)
    return _problem(Code.INVALID_REQUEST, error.text or error.reason, request_id)


def allow_header(error: web.HTTPException) -> Mapping[str, str]:
    """Return the `Allow` header of a 405."""
    if isinstance(error, web.HTTPMethodNotAllowed):
        return {"Allow": ", ".join(sorted(error.allowed_methods))}
    return {}
