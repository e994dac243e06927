"""When a failed request is sent again, and after how long."""

from __future__ import annotations

from typing import Final

from overspill.errors import (
    DamagedEncoding,
    DigestMismatch,
    IncompleteBody,
    OverspillError,
    ProblemError,
    Unreachable,
)
from overspill.execution.backoff import Backoff

_STATUSES: Final = frozenset({429, 502, 503, 504})
_DAMAGED: Final = (DamagedEncoding, DigestMismatch, IncompleteBody)
"""Problems of a body that was damaged on its way."""
_BACKOFF: Final = Backoff(first=0.1, longest=5.0, least=0.0)


def wait_before(attempt: int, error: OverspillError) -> float | None:
    """Return the seconds to wait after failure number `attempt` (from 1), or None if repeating cannot help.

    They are what the service asks for with `Retry-After`, plus a random time from a `Backoff`.
    """
    jitter = _BACKOFF.pause(attempt - 1)
    if isinstance(error, (Unreachable, *_DAMAGED)):
        return jitter
    if isinstance(error, ProblemError) and error.status in _STATUSES:
        return (error.retry_after or 0) + jitter
    return None
