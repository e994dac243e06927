"""When a failed request is sent again, and after how long."""

from __future__ import annotations

import random
from typing import Final

from overspill.errors import (
    DamagedEncoding,
    DigestMismatch,
    IncompleteBody,
    OverspillError,
    ProblemError,
    Unreachable,
)

_STATUSES: Final = frozenset({429, 502, 503, 504})
_DAMAGED: Final = (DamagedEncoding, DigestMismatch, IncompleteBody)
"""What a body meets that changes on its way."""
_FIRST_WAIT: Final = 0.1
_LONGEST_WAIT: Final = 5.0


def wait_before(attempt: int, error: OverspillError) -> float | None:
    """Seconds to wait before attempt `attempt` (from 1) after `error`; None where repeating cannot help.

    Exponential with full jitter (Brooker, "Exponential Backoff and Jitter"), on top of what the service
    asked for with `Retry-After`.
    """
    jitter = random.uniform(0, min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** (attempt - 1)))  # noqa: S311  (no secret)
    if isinstance(error, (Unreachable, *_DAMAGED)):
        return jitter
    if isinstance(error, ProblemError) and error.status in _STATUSES:
        return (error.retry_after or 0) + jitter
    return None
