"""The limit of a process's client connections: half of the files that it may still open."""

from __future__ import annotations

import logging
import resource
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

RESERVED_CONNECTIONS: Final = 8
"""Connections beyond the limit, for health checks."""
MIN_CONNECTIONS: Final = 4
FEW_CONNECTIONS: Final = 1000
"""A limit below this is reported to the operator at the start."""

log = logging.getLogger("overspill_service.start")


def connection_limit() -> int:
    """Return how many client connections leave as many descriptors for the back ends and files.

    First the soft limit of this process is raised to the hard limit.
    """
    limit, used = _raised_limit(), _open_descriptors()
    limit = max(MIN_CONNECTIONS, (limit - used) // 2 - RESERVED_CONNECTIONS)
    if limit < FEW_CONNECTIONS:
        log.warning(
            "at most %d clients are served at once: this process may have %d files open; raise the limit "
            "(ulimit -n, LimitNOFILE=)",
            limit,
            limit,
        )
    return limit


def _raised_limit() -> int:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if sys.platform != "darwin" and soft != hard:  # macOS reports a hard limit that it does not grant
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            return hard
    return soft


def _open_descriptors() -> int:
    try:
        return sum(1 for _ in Path("/dev/fd").iterdir())
    except OSError:
        return 0
