"""What the client raises. Each problem code of the service has a class of its own, named as there.

OverspillError
├── ContentChanged          a file was written to while it was being captured
├── ClientClosed            a client was used after it was closed
├── Unreachable             no connection, or no answer in time
├── ProtocolError           an answer that makes no sense: wrong digest, wrong length, not this service
└── ProblemError            the service refused or failed, and said so (RFC 9457)
    ├── BadRequest          InvalidId, InvalidParameter, InvalidHeader, InvalidBody, InvalidPattern,
    │                       UnsupportedEncoding, DamagedEncoding, IncompleteBody, DigestMismatch
    ├── Denied              Unauthorized, Forbidden
    ├── Absent              NotFound, NoRoute, Expired, Deleted
    ├── Refused             MethodNotAllowed, NotAcceptable, PreconditionFailed, ExpectationFailed,
    │                       IdConflict, CaptureTooLarge, BodyTooLarge, RangeNotSatisfiable,
    │                       TooManyRequests, QuotaExceeded
    ├── CaptureDamaged      what the service has stored is not what was captured
    ├── Internal            the service failed
    └── Unavailable         StoreUnavailable, StoreFull, CatalogUnavailable, CatalogIncomplete,
                            DeadlineExceeded, Overloaded, OutOfResources, ShuttingDown,
                            ClockSkewed
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from overspill.wire import Code, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime


class OverspillError(Exception):
    """Everything that this package raises on purpose, but for wrong arguments.

    Catch it around calls of a client. A guard raises none.
    """

    def __init__(self, *details: object) -> None:
        super().__init__(*details)


class ContentChanged(OverspillError):
    """A file had another length when it was sent than when it was hashed. Nothing was stored: try again."""


class ClientClosed(OverspillError):
    """The client was closed. Call it inside its `with` block, enter it once more, or make another."""


class Unreachable(OverspillError):
    """There is no connection to the service, or it did not answer in time.

    Start one with `overspill-service serve`, or say where it is with `OVERSPILL_URL`. `was_sent` is whether
    the request may have reached it, so that it may have done what it was asked for.
    """

    was_sent: bool = True


class ProtocolError(OverspillError):
    """The answer makes no sense: a wrong digest or length, or no Overspill at all.

    Check `OVERSPILL_URL`, and what stands between here and the service.
    """


class ProblemError(OverspillError):
    """A problem that the service answered with; a code that this version does not know stays this class.

    `detail` says what is wrong and what to do, `code` is for programs, and `instance` for the operator.
    """

    code_of_class: ClassVar[Code | None] = None

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        request = f", request {self.instance}" if self.instance else ""
        return f"{self.detail or self.title} ({self.code or 'no code'}, HTTP {self.status}{request})"

    @property
    def status(self) -> int:
        return self.problem.status

    @property
    def code(self) -> str:
        return self.problem.code

    @property
    def title(self) -> str:
        return self.problem.title

    @property
    def detail(self) -> str:
        return self.problem.detail

    @property
    def instance(self) -> str:
        """The request id, which the service's operator finds in the logs."""
        return self.problem.instance

    @property
    def expired(self) -> datetime | None:
        return self.problem.expired

    @property
    def limit(self) -> int | None:
        return self.problem.limit

    @property
    def retry_after(self) -> int | None:
        """Seconds to wait before trying again."""
        return self.problem.retry_after


class BadRequest(ProblemError):
    """The request is wrong; trying again does not help. `detail` says what is wrong and what is allowed."""

    code_of_class = Code.INVALID_REQUEST


class InvalidId(BadRequest):
    """What was given is no handle. Pass it exactly as the notice has it, or `call("the tool call's id")`."""

    code_of_class = Code.INVALID_ID


class InvalidParameter(BadRequest):
    """A parameter is wrong. `detail` says which, and what is allowed."""

    code_of_class = Code.INVALID_PARAMETER


class InvalidHeader(BadRequest):
    """Something to be kept with a capture is wrong, as a label or the TTL. `detail` says which and why."""

    code_of_class = Code.INVALID_HEADER


class InvalidBody(BadRequest):
    """The body of a request cannot be understood.

    `detail` says why; client and service may differ in version.
    """

    code_of_class = Code.INVALID_BODY


class InvalidPattern(BadRequest):
    """RE2 cannot search for the pattern. `detail` says which part, and what to write instead."""

    code_of_class = Code.INVALID_PATTERN


class UnsupportedEncoding(BadRequest):
    """The service does not decode what was sent. Send it as it is: `Client(compress=False)`."""

    code_of_class = Code.UNSUPPORTED_ENCODING


class DamagedEncoding(BadRequest):
    """The compressed body was damaged on its way. Send it again: nothing was stored."""

    code_of_class = Code.DAMAGED_ENCODING


class IncompleteBody(BadRequest):
    """The body ended too early. Send it again: nothing was stored."""

    code_of_class = Code.INCOMPLETE_BODY


class DigestMismatch(BadRequest):
    """What arrived is not what was sent. Send it again: nothing was stored."""

    code_of_class = Code.DIGEST_MISMATCH


class Denied(ProblemError):
    """The service does not let this key do that. Check `OVERSPILL_KEY`."""


class Unauthorized(Denied):
    """The service wants a key, and got none or one that it does not know.

    Give one with `key` or `OVERSPILL_KEY`.
    """

    code_of_class = Code.UNAUTHORIZED


class Forbidden(Denied):
    """The key may not do this. Use one with the scope that `detail` names; its operator issues it."""

    code_of_class = Code.FORBIDDEN


class Absent(ProblemError):
    """There is nothing here, or no longer. Check the handle, and which service it came from."""


class NotFound(Absent):
    """There is no such capture for this key. Check handle and service; `list` says what there is."""

    code_of_class = Code.NOT_FOUND


class NoRoute(Absent):
    """There is nothing at this address. Check `OVERSPILL_URL`: it names the service's root, without `/v1`."""

    code_of_class = Code.NO_ROUTE


class Expired(Absent):
    """The capture has expired; `expired` says when. Run the tool again; a longer `ttl` keeps the next one."""

    code_of_class = Code.EXPIRED


class Deleted(Absent):
    """The capture was deleted. Run the tool again if its output is still needed."""

    code_of_class = Code.DELETED


class Refused(ProblemError):
    """It would go against a limit or another capture. `detail` says which, `limit` how much is allowed."""


class MethodNotAllowed(Refused):
    """The address does not take this kind of request. Check `OVERSPILL_URL`, and what stands in between."""

    code_of_class = Code.METHOD_NOT_ALLOWED


class NotAcceptable(Refused):
    """`Accept-Encoding` rules out every form that the answer has. Allow `identity` or `zstd`."""

    code_of_class = Code.NOT_ACCEPTABLE


class PreconditionFailed(Refused):
    """The capture is not as `If-Match` or `If-None-Match` says. Look at it again."""

    code_of_class = Code.PRECONDITION_FAILED


class ExpectationFailed(Refused):
    """The header `Expect` asks for something other than 100-continue. Leave it out."""

    code_of_class = Code.EXPECTATION_FAILED


class IdConflict(Refused):
    """Another content has this id already. Leave `id` out: it is then computed from the content."""

    code_of_class = Code.ID_CONFLICT


class CaptureTooLarge(Refused):
    """The capture has more bytes than `limit`. Store less of it, or ask the operator for a higher limit."""

    code_of_class = Code.CAPTURE_TOO_LARGE


class BodyTooLarge(Refused):
    """The body of a request, which is no capture, has more bytes than `limit`. Send less at once."""

    code_of_class = Code.BODY_TOO_LARGE


class RangeNotSatisfiable(Refused):
    """The range lies behind the end. `get` says how many bytes and lines there are."""

    code_of_class = Code.RANGE_NOT_SATISFIABLE


class TooManyRequests(Refused):
    """The tenant sends more requests than it may. Wait `retry_after` seconds, then try again."""

    code_of_class = Code.TOO_MANY_REQUESTS


class QuotaExceeded(Refused):
    """The tenant has stored as much as it may. Delete captures, let them expire, or raise the limit."""

    code_of_class = Code.QUOTA_EXCEEDED


class CaptureDamaged(ProblemError):
    """What is stored is not what was captured. Run the tool again, and tell the operator `instance`."""

    code_of_class = Code.CAPTURE_DAMAGED


class Internal(ProblemError):
    """The service failed. Try again; if it stays so, tell the operator `instance`."""

    code_of_class = Code.INTERNAL


class Unavailable(ProblemError):
    """The service cannot work now. Try again after `retry_after` seconds."""


class StoreUnavailable(Unavailable):
    """The service cannot reach its object store. Try again after `retry_after` seconds."""

    code_of_class = Code.STORE_UNAVAILABLE


class StoreFull(Unavailable):
    """The object store has no room left. Try again once its operator has made some."""

    code_of_class = Code.STORE_FULL


class CatalogUnavailable(Unavailable):
    """The service cannot reach its catalog. Try again after `retry_after` seconds."""

    code_of_class = Code.CATALOG_UNAVAILABLE


class CatalogIncomplete(Unavailable):
    """The catalog is being rebuilt, so what is asked for may be there.

    Try again after `retry_after` seconds.
    """

    code_of_class = Code.CATALOG_INCOMPLETE


class DeadlineExceeded(Unavailable):
    """The service could not finish in its time. Ask for less at once, or try again."""

    code_of_class = Code.DEADLINE_EXCEEDED


class Overloaded(Unavailable):
    """The service has no memory for one more request now. Try again after `retry_after` seconds."""

    code_of_class = Code.OVERLOADED


class OutOfResources(Unavailable):
    """The service lacks memory, threads or file descriptors. Try again, and tell its operator."""

    code_of_class = Code.OUT_OF_RESOURCES


class ShuttingDown(Unavailable):
    """The replica that was asked is about to stop. Try again: another one answers."""

    code_of_class = Code.SHUTTING_DOWN


class ClockSkewed(Unavailable):
    """The clock of the replica that was asked is wrong. Try again, and tell its operator."""

    code_of_class = Code.CLOCK_SKEWED


def problem_classes() -> Iterator[type[ProblemError]]:
    """`ProblemError` and all that descend from it."""
    waiting: list[type[ProblemError]] = [ProblemError]
    while waiting:
        kind = waiting.pop()
        yield kind
        waiting += kind.__subclasses__()


_BY_CODE = {str(kind.code_of_class): kind for kind in list(problem_classes()) if kind.code_of_class}


def error_for(problem: Problem) -> ProblemError:
    """The problem as an exception of the class that its code names."""
    return _BY_CODE.get(problem.code, ProblemError)(problem)


def error_of(code: Code, detail: str) -> ProblemError:
    """The problem that the service would answer with, for what need not be asked of it."""
    return error_for(
        Problem(type="about:blank", title=code.heading, status=code.status, code=str(code), detail=detail)
    )
