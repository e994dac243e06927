"""Errors of the service: it cannot do something now, or has stopped doing it. Others are about a request."""

from __future__ import annotations

from overspill.wire import Code

from overspill_service.errors.service_error import ServiceError


class CaptureDamaged(ServiceError):
    code = Code.CAPTURE_DAMAGED


class ObjectMissing(CaptureDamaged):
    """An object of an upload is missing: the capture was removed meanwhile, or the store lost the object."""

    def __init__(self, capture: str, upload: str, number: int) -> None:
        super().__init__(f"segment {number} of {capture} is missing from the object store")
        self.capture, self.upload = capture, upload


class Unavailable(ServiceError):
    retry_after = 1


class StoreUnavailable(Unavailable):
    code = Code.STORE_UNAVAILABLE


class StoreFull(Unavailable):
    code = Code.STORE_FULL


class CredentialsUnavailable(Unavailable):
    code = Code.CREDENTIALS_UNAVAILABLE
    retry_after = 10


class AuditUnavailable(Unavailable):
    code = Code.AUDIT_UNAVAILABLE


class CatalogUnavailable(Unavailable):
    code = Code.CATALOG_UNAVAILABLE


class CatalogSilent(CatalogUnavailable):
    """The catalog did nothing before the deadline, however often it was asked."""


class CatalogRefuses(CatalogUnavailable):
    """The catalog answers, but may lose what it is given. Nothing was recorded."""


class CatalogFull(CatalogRefuses):
    """The catalog has no room."""

    code = Code.STORE_FULL


class RecordDamaged(CatalogUnavailable):
    """One record of the catalog cannot be decoded."""


class CatalogIncomplete(Unavailable):
    code = Code.CATALOG_INCOMPLETE


class DeadlineExceeded(Unavailable):
    code = Code.DEADLINE_EXCEEDED


class Overloaded(Unavailable):
    """There is no room for one more request now. Nothing of the request was done."""

    code = Code.OVERLOADED

    def __init__(self, reason: str, retry_after: int) -> None:
        super().__init__(f"{reason}; ask again in {retry_after} s")
        self.retry_after = retry_after


class OutOfResources(Unavailable):
    code = Code.OUT_OF_RESOURCES


class ShuttingDown(Unavailable):
    code = Code.SHUTTING_DOWN


class ClockSkewed(Unavailable):
    code = Code.CLOCK_SKEWED

    def __init__(self, skew: float) -> None:
        super().__init__(
            f"the clock of this replica is {skew:+.0f} s off that of the catalog and the object store; "
            "nothing is swept until it is set, or `overspill-service trust-clock` says that it is right"
        )


class ClockJumped(Unavailable):
    code = Code.CLOCK_SKEWED

    def __init__(self, jump: float) -> None:
        super().__init__(
            f"the clocks of this replica and of its back ends have jumped by {jump:+.0f} s; nothing is swept "
            "until they are set, or the replica is restarted because they are right"
        )
