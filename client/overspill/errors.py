"""What the client raises. Each problem code of the service has a class of its own, named as there.

OverspillError
├── ContentChanged          a file was written to while it was being captured
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
                            DeadlineExceeded, ShuttingDown, ClockSkewed
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from overspill.wire import Code, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime


class OverspillError(Exception):
    """Everything that this package raises on purpose, but for wrong arguments."""


class ContentChanged(OverspillError):
    """A file had another length when it was sent than when it was hashed. Nothing was stored."""


class Unreachable(OverspillError):
    """There is no connection to the service, or it did not answer in time.

    Start one with `overspill-service serve`, or say where it is with `OVERSPILL_URL`. `was_sent` is whether
    the request may have reached it, so that it may have done what it was asked for.
    """

    was_sent: bool = True


class ProtocolError(OverspillError):
    pass


class ProblemError(OverspillError):
    """A problem that the service answered with; a code that this version does not know stays this class."""

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
    code_of_class = Code.INVALID_REQUEST


class InvalidId(BadRequest):
    code_of_class = Code.INVALID_ID


class InvalidParameter(BadRequest):
    code_of_class = Code.INVALID_PARAMETER


class InvalidHeader(BadRequest):
    code_of_class = Code.INVALID_HEADER


class InvalidBody(BadRequest):
    code_of_class = Code.INVALID_BODY


class InvalidPattern(BadRequest):
    code_of_class = Code.INVALID_PATTERN


class UnsupportedEncoding(BadRequest):
    code_of_class = Code.UNSUPPORTED_ENCODING


class DamagedEncoding(BadRequest):
    code_of_class = Code.DAMAGED_ENCODING


class IncompleteBody(BadRequest):
    code_of_class = Code.INCOMPLETE_BODY


class DigestMismatch(BadRequest):
    code_of_class = Code.DIGEST_MISMATCH


class Denied(ProblemError):
    pass


class Unauthorized(Denied):
    code_of_class = Code.UNAUTHORIZED


class Forbidden(Denied):
    code_of_class = Code.FORBIDDEN


class Absent(ProblemError):
    pass


class NotFound(Absent):
    code_of_class = Code.NOT_FOUND


class NoRoute(Absent):
    code_of_class = Code.NO_ROUTE


class Expired(Absent):
    code_of_class = Code.EXPIRED


class Deleted(Absent):
    code_of_class = Code.DELETED


class Refused(ProblemError):
    pass


class MethodNotAllowed(Refused):
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
    code_of_class = Code.ID_CONFLICT


class CaptureTooLarge(Refused):
    code_of_class = Code.CAPTURE_TOO_LARGE


class BodyTooLarge(Refused):
    code_of_class = Code.BODY_TOO_LARGE


class RangeNotSatisfiable(Refused):
    code_of_class = Code.RANGE_NOT_SATISFIABLE


class TooManyRequests(Refused):
    code_of_class = Code.TOO_MANY_REQUESTS


class QuotaExceeded(Refused):
    code_of_class = Code.QUOTA_EXCEEDED


class CaptureDamaged(ProblemError):
    code_of_class = Code.CAPTURE_DAMAGED


class Internal(ProblemError):
    code_of_class = Code.INTERNAL


class Unavailable(ProblemError):
    pass


class StoreUnavailable(Unavailable):
    code_of_class = Code.STORE_UNAVAILABLE


class StoreFull(Unavailable):
    code_of_class = Code.STORE_FULL


class CatalogUnavailable(Unavailable):
    code_of_class = Code.CATALOG_UNAVAILABLE


class CatalogIncomplete(Unavailable):
    code_of_class = Code.CATALOG_INCOMPLETE


class DeadlineExceeded(Unavailable):
    code_of_class = Code.DEADLINE_EXCEEDED


class ShuttingDown(Unavailable):
    code_of_class = Code.SHUTTING_DOWN


class ClockSkewed(Unavailable):
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
