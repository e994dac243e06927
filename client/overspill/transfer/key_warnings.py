"""Warnings about a key: that it goes to the service unencrypted, and that it expires soon."""

from __future__ import annotations

import functools
import logging
import os
from typing import Final

_INSTANT_CHARS: Final = len("2026-11-23T06:00:00Z")
"""As much of what the service says is logged: it may be no time at all."""
_VARIABLE: Final = "OVERSPILL_PLAIN_HTTP"
_log: Final = logging.getLogger("overspill")


@functools.cache
def warn_of_plain_http(url: str) -> None:
    """Log once for each service that a key goes there unencrypted, unless the environment allows it."""
    if os.environ.get(_VARIABLE, "").strip().lower() not in {"1", "true", "yes"}:
        _log.warning(
            "the key for %s goes there over plain http, and whoever is on the way can read it: use https, or "
            "set %s=true if the network is your own",
            url,
            _VARIABLE,
        )


@functools.lru_cache(maxsize=256)
def warn_of_expiry(url: str, expires: str) -> None:
    """Log once for each service that its key expires soon."""
    _log.warning("the key for %s expires soon (%r): ask for another one", url, expires[:_INSTANT_CHARS])
