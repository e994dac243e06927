"""The service's errors: each carries its facts and the code of the problem that it becomes.

ServiceError
├── BadRequest          the request is wrong
├── Denied              the key may not do that, or there is none
├── Absent              there is no such capture, or no longer
├── Refused             the request goes against a limit or another capture
├── CaptureDamaged      what the object store holds is not what was stored
└── Unavailable         the service cannot work now
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from overspill.wire import Code

from overspill_service.errors.failures import AuditUnavailable as AuditUnavailable
from overspill_service.errors.failures import CaptureDamaged as CaptureDamaged
from overspill_service.errors.failures import CatalogFull as CatalogFull
from overspill_service.errors.failures import CatalogIncomplete as CatalogIncomplete
from overspill_service.errors.failures import CatalogRefuses as CatalogRefuses
from overspill_service.errors.failures import CatalogSilent as CatalogSilent
from overspill_service.errors.failures import CatalogUnavailable as CatalogUnavailable
from overspill_service.errors.failures import ClockJumped as ClockJumped
from overspill_service.errors.failures import ClockSkewed as ClockSkewed
from overspill_service.errors.failures import CredentialsUnavailable as CredentialsUnavailable
from overspill_service.errors.failures import DeadlineExceeded as DeadlineExceeded
from overspill_service.errors.failures import ObjectMissing as ObjectMissing
from overspill_service.errors.failures import OutOfResources as OutOfResources
from overspill_service.errors.failures import Overloaded as Overloaded
from overspill_service.errors.failures import RecordDamaged as RecordDamaged
from overspill_service.errors.failures import ShuttingDown as ShuttingDown
from overspill_service.errors.failures import StoreFull as StoreFull
from overspill_service.errors.failures import StoreUnavailable as StoreUnavailable
from overspill_service.errors.failures import Unavailable as Unavailable
from overspill_service.errors.service_error import ServiceError as ServiceError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


class BadRequest(ServiceError):
    code = Code.INVALID_REQUEST


class InvalidId(BadRequest):
    code = Code.INVALID_ID


class InvalidParameter(BadRequest):
    code = Code.INVALID_PARAMETER


class InvalidHeader(BadRequest):
    code = Code.INVALID_HEADER


class InvalidBody(BadRequest):
    code = Code.INVALID_BODY


class InvalidPattern(BadRequest):
    code = Code.INVALID_PATTERN


class UnsupportedEncoding(BadRequest):
    code = Code.UNSUPPORTED_ENCODING


class UnsupportedMediaType(BadRequest):
    code = Code.UNSUPPORTED_MEDIA_TYPE


class DamagedEncoding(BadRequest):
    code = Code.DAMAGED_ENCODING


class IncompleteBody(BadRequest):
    code = Code.INCOMPLETE_BODY


class DigestMismatch(BadRequest):
    code = Code.DIGEST_MISMATCH


class Denied(ServiceError):
    pass


class Unauthorized(Denied):
    code = Code.UNAUTHORIZED


class Forbidden(Denied):
    code = Code.FORBIDDEN


class ForeignOrigin(Denied):
    code = Code.FOREIGN_ORIGIN


class Absent(ServiceError):
    pass


class NotFound(Absent):
    code = Code.NOT_FOUND


class NoRoute(Absent):
    code = Code.NO_ROUTE


class KeyNotFound(Absent):
    code = Code.KEY_NOT_FOUND


class Expired(Absent):
    code = Code.EXPIRED

    def __init__(self, capture: str, expired: datetime) -> None:
        super().__init__(
            f"{capture} expired at {expired:%Y-%m-%dT%H:%M:%SZ}; run the tool again if it is needed"
        )
        self.expired = expired


class Deleted(Absent):
    code = Code.DELETED


class Refused(ServiceError):
    pass


class NotAcceptable(Refused):
    code = Code.NOT_ACCEPTABLE


class PreconditionFailed(Refused):
    code = Code.PRECONDITION_FAILED


class ExpectationFailed(Refused):
    code = Code.EXPECTATION_FAILED


class IdConflict(Refused):
    code = Code.ID_CONFLICT


class Held(Refused):
    code = Code.HELD


class WrongOffset(Refused):
    code = Code.WRONG_OFFSET

    def __init__(self, sent: int, expected: int, *, is_end: bool = False) -> None:
        """`is_end`: the offset was sent as the end of the capture, not as the beginning of an append."""
        subject = "the capture is said to end" if is_end else "the append begins"
        super().__init__(f"{subject} at byte {sent}, the content ends at {expected}: go on there")
        self.offset = expected


class NotLive(Refused):
    code = Code.NOT_LIVE


class OtherProducer(Refused):
    code = Code.OTHER_PRODUCER


class BufferFull(Refused):
    code = Code.BUFFER_FULL
    retry_after = 1


class KeyRefused(Refused):
    code = Code.KEY_REFUSED


class SecretsFound(Refused):
    code = Code.SECRETS_FOUND

    def __init__(self, counts: Mapping[str, int], subject: str = "the content has") -> None:
        self.counts: Mapping[str, int] = dict(sorted(counts.items()))
        found = ", ".join(f"{count} {kind}" for kind, count in self.counts.items())
        super().__init__(f"{subject} secrets ({found}), and the tenant stores none: mask them first")


class RangeNotSatisfiable(Refused):
    code = Code.RANGE_NOT_SATISFIABLE

    def __init__(self, size: int) -> None:
        super().__init__(f"no byte of the range exists; the capture has {size} bytes")
        self.limit = size


class CaptureTooLarge(Refused):
    code = Code.CAPTURE_TOO_LARGE

    def __init__(self, limit: int) -> None:
        super().__init__(f"a capture may have {limit} bytes at most; nothing was stored")
        self.limit = limit


class BodyTooLarge(Refused):
    code = Code.BODY_TOO_LARGE

    def __init__(self, limit: int, advice: str = "") -> None:
        """`advice` says what to do instead."""
        text = f"the body of this request may have {limit} bytes at most"
        super().__init__(f"{text}: {advice}" if advice else text)
        self.limit = limit


class HeadersTooLarge(Refused):
    code = Code.HEADERS_TOO_LARGE

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"the headers have {size} bytes together, and may have {limit}")
        self.limit = limit


class FieldTooLarge(Refused):
    code = Code.HEADERS_TOO_LARGE

    def __init__(self, limit: int) -> None:
        super().__init__(f"a header field has more than {limit} bytes")
        self.limit = limit


class TooManyRequests(Refused):
    code = Code.TOO_MANY_REQUESTS

    def __init__(self, subject: str, limit: int, retry_after: int = 1) -> None:
        super().__init__(f"{limit} {subject} at once is the limit; try again in {retry_after} s")
        self.limit, self.retry_after = limit, retry_after


class RateExceeded(Refused):
    """Too many requests within a time. `subject` says of what, and how many are allowed.

    `policy` is the same for programs, as a `token_buckets.TokenBucket` has it.
    """

    code = Code.TOO_MANY_REQUESTS

    def __init__(self, subject: str, limit: int, retry_after: int, policy: str) -> None:
        super().__init__(f"{subject}; try again in {retry_after} s")
        self.limit, self.retry_after, self.policy = limit, retry_after, policy


class CpuTimeUsed(Refused):
    """A tenant's greps and summaries have used their CPU time."""

    code = Code.TOO_MANY_REQUESTS

    def __init__(self, limit: int, retry_after: int) -> None:
        super().__init__(
            f"greps and summaries of a tenant may use {limit} s of CPU time a minute (max_scan_cpu); they "
            f"have: try again in {retry_after} s, or read lines by their numbers"
        )
        self.limit, self.retry_after = limit, retry_after


class QuotaExceeded(Refused):
    code = Code.QUOTA_EXCEEDED

    def __init__(self, subject: str, limit: int) -> None:
        super().__init__(
            f"the tenant's limit of {limit} {subject} is reached; delete captures or wait for expiry"
        )
        self.limit = limit
