"""The errors that the client raises: one class for each problem code of the service.

OverspillError
├── ContentChanged          a file was written to while it was being captured
├── ClientClosed            a client was used after it was closed
├── Unreachable             no connection, or no answer in time
├── ProtocolError           an invalid answer: wrong digest, wrong length, another server
└── ProblemError            the service refused or failed, and said so (RFC 9457)
    ├── BadRequest          the request is wrong
    ├── Denied              the key may not do that, or there is none
    ├── Absent              there is no such capture, or no longer
    ├── Refused             the request goes against a limit or another capture
    ├── CaptureDamaged      the stored bytes are damaged
    ├── Internal            the service failed
    └── Unavailable         the service cannot work now
"""

from __future__ import annotations

from overspill.errors.client_errors import ClientClosed as ClientClosed
from overspill.errors.client_errors import ContentChanged as ContentChanged
from overspill.errors.client_errors import OverspillError as OverspillError
from overspill.errors.client_errors import ProtocolError as ProtocolError
from overspill.errors.client_errors import Unreachable as Unreachable
from overspill.errors.problem_error import ProblemError as ProblemError
from overspill.wire import Code, Problem


class BadRequest(ProblemError, code=Code.INVALID_REQUEST):
    """The request is wrong; trying again does not help. `detail` says what is wrong and what is allowed."""


class InvalidId(BadRequest, code=Code.INVALID_ID):
    """The reference is not a handle. Pass one exactly as the notice has it, or `call("a tool call's id")`."""


class InvalidParameter(BadRequest, code=Code.INVALID_PARAMETER):
    """A parameter is wrong. `detail` says which, and what is allowed."""


class InvalidHeader(BadRequest, code=Code.INVALID_HEADER):
    """A header is wrong, for example a label or the TTL. `detail` says which and why."""


class InvalidBody(BadRequest, code=Code.INVALID_BODY):
    """The body of a request cannot be understood. Client and service may differ in version: check both."""


class InvalidPattern(BadRequest, code=Code.INVALID_PATTERN):
    """RE2 cannot search for the pattern. `detail` says which part, and what to write instead."""


class UnsupportedEncoding(BadRequest, code=Code.UNSUPPORTED_ENCODING):
    """The service does not support this compression. Send without it: `Client(compress=False)`."""


class UnsupportedMediaType(BadRequest, code=Code.UNSUPPORTED_MEDIA_TYPE):
    """The path takes a body of another media type. Send JSON as `Content-Type: application/json`."""


class DamagedEncoding(BadRequest, code=Code.DAMAGED_ENCODING):
    """The compressed body was damaged on its way. Send it again: nothing was stored."""


class IncompleteBody(BadRequest, code=Code.INCOMPLETE_BODY):
    """The body ended too early. Send it again: nothing was stored."""


class DigestMismatch(BadRequest, code=Code.DIGEST_MISMATCH):
    """The bytes that arrived do not match their digest. Send them again: nothing was stored."""


class Denied(ProblemError):
    """The key is missing or not permitted to do this. Check `OVERSPILL_KEY`."""


class Unauthorized(Denied, code=Code.UNAUTHORIZED):
    """The service needs a valid key. Give one with `key` or `OVERSPILL_KEY`."""


class Forbidden(Denied, code=Code.FORBIDDEN):
    """The key may not do this. Ask the operator for a key with the scope that `detail` names."""


class ForeignOrigin(Denied, code=Code.FOREIGN_ORIGIN):
    """The service does not answer to this host name, or to web pages of another site.

    Ask it by the name or address that it knows; its operator adds names with `--hosts`.
    """


class Absent(ProblemError):
    """There is nothing here, or no longer. Check the handle, and which service it came from."""


class NotFound(Absent, code=Code.NOT_FOUND):
    """There is no such capture for this key. Check handle and service; `list` returns all captures."""


class KeyNotFound(Absent, code=Code.KEY_NOT_FOUND):
    """The tenant has no such key. Check its id: `GET /v1/keys` lists all keys."""


class NoRoute(Absent, code=Code.NO_ROUTE):
    """There is nothing at this address. Check `OVERSPILL_URL`: it names the service's root, without `/v1`."""


class Expired(Absent, code=Code.EXPIRED):
    """The capture has expired; `expired` says when. Run the tool again; a longer `ttl` keeps the next one."""


class Deleted(Absent, code=Code.DELETED):
    """The capture was deleted. Run the tool again if its output is still needed."""


class Refused(ProblemError):
    """The request goes against a limit or another capture. `detail` says which; `limit` is the limit."""


class MethodNotAllowed(Refused, code=Code.METHOD_NOT_ALLOWED):
    """The address does not take this HTTP method. Check `OVERSPILL_URL`, and proxies on the way."""


class NotAcceptable(Refused, code=Code.NOT_ACCEPTABLE):
    """`Accept-Encoding` rules out every form that the answer has. Allow `identity` or `zstd`."""


class PreconditionFailed(Refused, code=Code.PRECONDITION_FAILED):
    """The capture does not match `If-Match` or `If-None-Match`. Look at its entry again."""


class ExpectationFailed(Refused, code=Code.EXPECTATION_FAILED):
    """The header `Expect` asks for something other than 100-continue. Leave it out."""


class IdConflict(Refused, code=Code.ID_CONFLICT):
    """Another content has this id already. Leave `id` out: it is then computed from the content."""


class Held(Refused, code=Code.HELD):
    """The capture is on hold: nobody can delete it, or change its life. Ask an admin to release it."""


class WrongOffset(Refused, code=Code.WRONG_OFFSET):
    """The append does not begin where the content ends. Send the bytes from `offset` on."""


class NotLive(Refused, code=Code.NOT_LIVE):
    """The capture has ended, so nothing can be appended. Start another one."""


class OtherProducer(Refused, code=Code.OTHER_PRODUCER):
    """Another producer appends to this capture. Use one producer for each capture."""


class BufferFull(Refused, code=Code.BUFFER_FULL):
    """Too many accepted bytes wait for the object store. Send again after `retry_after` seconds."""


class KeyRefused(Refused, code=Code.KEY_REFUSED):
    """The key cannot be made or changed in this way. `detail` says why."""


class SecretsFound(Refused, code=Code.SECRETS_FOUND):
    """The content has secrets, which the tenant refuses. Leave `Policy(redaction=)` on, or mask them."""


class CaptureTooLarge(Refused, code=Code.CAPTURE_TOO_LARGE):
    """The capture has more bytes than `limit`. Store less of it, or ask the operator for a higher limit."""


class BodyTooLarge(Refused, code=Code.BODY_TOO_LARGE):
    """The body of a request (not of a capture) has more bytes than `limit`. Send less at once."""


class RangeNotSatisfiable(Refused, code=Code.RANGE_NOT_SATISFIABLE):
    """The range lies behind the end. `get` says how many bytes and lines there are."""


class HeadersTooLarge(Refused, code=Code.HEADERS_TOO_LARGE):
    """All headers of a request have more bytes than `limit`. Give shorter labels and metadata."""


class TooManyRequests(Refused, code=Code.TOO_MANY_REQUESTS):
    """The tenant sends more requests than it may. Wait `retry_after` seconds, then try again."""


class QuotaExceeded(Refused, code=Code.QUOTA_EXCEEDED):
    """The tenant has stored as much as it may. Delete captures, let them expire, or raise the limit."""


class CaptureDamaged(ProblemError, code=Code.CAPTURE_DAMAGED):
    """The stored bytes are damaged. Run the tool again, and tell the operator `instance`."""


class Internal(ProblemError, code=Code.INTERNAL):
    """The service failed. Try again; if it fails again, tell the operator `instance`."""


class Unavailable(ProblemError):
    """The service cannot work now. Try again after `retry_after` seconds."""


class StoreUnavailable(Unavailable, code=Code.STORE_UNAVAILABLE):
    """The service cannot reach its object store. Try again after `retry_after` seconds."""


class StoreFull(Unavailable, code=Code.STORE_FULL):
    """The object store has no room left. Try again once its operator has made some."""


class CredentialsUnavailable(Unavailable, code=Code.CREDENTIALS_UNAVAILABLE):
    """The service cannot verify tokens now. Try again after `retry_after` seconds, or use a key."""


class AuditUnavailable(Unavailable, code=Code.AUDIT_UNAVAILABLE):
    """The service cannot write its audit log, and changes nothing before it can. Tell its operator."""


class CatalogUnavailable(Unavailable, code=Code.CATALOG_UNAVAILABLE):
    """The service cannot reach its catalog. Try again after `retry_after` seconds."""


class CatalogIncomplete(Unavailable, code=Code.CATALOG_INCOMPLETE):
    """The catalog is being rebuilt and may lack the capture. Try again after `retry_after` seconds."""


class DeadlineExceeded(Unavailable, code=Code.DEADLINE_EXCEEDED):
    """The request took too long. Ask for less at once, or try again."""


class Overloaded(Unavailable, code=Code.OVERLOADED):
    """The service has no memory for one more request now. Try again after `retry_after` seconds."""


class OutOfResources(Unavailable, code=Code.OUT_OF_RESOURCES):
    """The service lacks memory, threads or file descriptors. Try again, and tell its operator."""


class ShuttingDown(Unavailable, code=Code.SHUTTING_DOWN):
    """The replica that was asked is about to stop. Try again: another one answers."""


class ClockSkewed(Unavailable, code=Code.CLOCK_SKEWED):
    """The clock of the replica that was asked is wrong. Try again, and tell its operator."""


def error_for(problem: Problem) -> ProblemError:
    """Return the problem as an exception of the class that its code names."""
    return ProblemError.by_code.get(problem.code, ProblemError)(problem)


def error_of(code: Code, detail: str) -> ProblemError:
    """Return the error that the service would answer with, for what the client finds wrong itself."""
    return error_for(
        Problem(type="about:blank", title=code.heading, status=code.status, code=str(code), detail=detail)
    )
