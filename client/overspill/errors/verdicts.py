"""Judges an error: whether the same request may succeed at once, later, or never.

The number and duration of attempts are decided elsewhere: for requests in `transfer/attempts`, for live
captures in `live/sender`, for captures on disk in `spools/flush` and `spools/flush_job`.
"""

from __future__ import annotations

from typing import Final

from overspill.errors import (
    BadRequest,
    DamagedEncoding,
    Deleted,
    Denied,
    DigestMismatch,
    Expired,
    IncompleteBody,
    Internal,
    MethodNotAllowed,
    OverspillError,
    ProblemError,
    ProtocolError,
    QuotaExceeded,
    Refused,
    StoreFull,
    TooManyRequests,
    Unavailable,
    Unreachable,
    UnsupportedEncoding,
)

FORBIDDING: Final = (Denied, QuotaExceeded, StoreFull)
"""Refusals of all captures, which last until somebody changes a key or a limit."""
FAILING: Final = (Unreachable, ProtocolError, Unavailable, Internal, TooManyRequests)
"""Failures of the service as a whole; all other problems concern the one capture, the key or a limit."""
_DAMAGED: Final = (DamagedEncoding, DigestMismatch, IncompleteBody)
"""Problems of a body that was damaged on its way."""
_PERMANENT: Final = (BadRequest, Refused, Deleted, Expired)
_NOT_PERMANENT: Final = (*_DAMAGED, UnsupportedEncoding, MethodNotAllowed, TooManyRequests, QuotaExceeded)
"""Exceptions to `_PERMANENT`, which may pass: damage on the way, another server in between, load, a limit."""
_DOUBTFUL: Final = (ProtocolError, Internal, Unavailable)
"""After these the service may have done what it was asked for; after `Unreachable`, if it was sent."""
_SOON: Final = frozenset({429, 502, 503, 504})
"""Statuses after which the same request may succeed within seconds."""
_LATER: Final = _SOON | {408, 425, 500}
"""Statuses after which the same request may succeed within minutes."""


def may_pass_soon(error: OverspillError) -> bool:
    """Return whether the same request, sent once more within seconds, may succeed."""
    if isinstance(error, ProblemError):
        return isinstance(error, _DAMAGED) or error.status in _SOON
    return isinstance(error, Unreachable)


def may_pass(error: OverspillError) -> bool:
    """Return whether the same request, sent once more within minutes, may succeed."""
    if isinstance(error, ProblemError):
        return error.status in _LATER
    return isinstance(error, Unreachable)


def is_permanent(error: BaseException) -> bool:
    """Return whether the service will never take the capture, however often it is sent."""
    return isinstance(error, _PERMANENT) and not isinstance(error, _NOT_PERMANENT)


def may_be_done(error: BaseException) -> bool:
    """Return whether the service may have done all the same what it was asked for."""
    return error.was_sent if isinstance(error, Unreachable) else isinstance(error, _DOUBTFUL)
