"""The base of the service's errors: the facts that a problem tells."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from overspill.wire import Code

if TYPE_CHECKING:
    from datetime import datetime


class ServiceError(Exception):
    """A failure with a stable code. `str()` is the problem's detail, in words that a user may see."""

    code: ClassVar[Code] = Code.INTERNAL
    expired: datetime | None = None
    limit: int | None = None
    offset: int | None = None
    """The accepted bytes of the live capture that was asked for: where its next append must begin."""
    durable: int | None = None
    """How many of them are in the object store."""
    retry_after: int | None = None
    failure_name: str = ""
    """One word for a failure of the system, as in the table of `errors.system`. Empty for other failures."""
