"""A problem of the service as an exception."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from overspill.errors.client_errors import OverspillError

if TYPE_CHECKING:
    from datetime import datetime

    from overspill.wire import Code, Problem


class ProblemError(OverspillError):
    """A problem that the service answered with; a code that this version does not know stays this class.

    `detail` says what is wrong and what to do, `code` is for programs, and `instance` for the operator.
    """

    code_of_class: ClassVar[Code | None] = None
    """The code that the class stands for; None for a class of several codes."""
    by_code: ClassVar[dict[str, type[ProblemError]]] = {}
    """The class that stands for each code: that of this package, also if somebody derives another."""

    def __init_subclass__(cls, *, code: Code | None = None) -> None:
        """Let the class stand for `code`."""
        super().__init_subclass__()
        if code is not None:
            cls.code_of_class = code
            ProblemError.by_code.setdefault(str(code), cls)

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem
        self.status: int = problem.status
        """The status code of the HTTP answer."""
        self.code: str = problem.code
        """One of `wire.Code`, or one that a newer service has."""
        self.title: str = problem.title
        """The problem in a few words, the same for each problem of a code."""
        self.detail: str = problem.detail
        """The problem with this request, and what to do next."""
        self.instance: str = problem.instance
        """The request id, which the service's operator finds in the logs."""
        self.expired: datetime | None = problem.expired
        """When the capture expired; None for other problems."""
        self.limit: int | None = problem.limit
        """The limit that the request goes over; None for other problems."""
        self.offset: int | None = problem.offset
        """The offset at which the next append to a live capture must begin; None for other problems."""
        self.durable: int | None = problem.durable
        """How many bytes of the live capture are in the object store; None for other problems."""
        self.retry_after: int | None = problem.retry_after
        """Seconds to wait before trying again; None for problems that do not say it."""

    def __str__(self) -> str:
        request = f", request {self.instance}" if self.instance else ""
        return f"{self.detail or self.title} ({self.code or 'no code'}, HTTP {self.status}{request})"
