"""The lifetimes of captures: arithmetic on TTLs and expiries, with the clock as a parameter."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from overspill_service.errors import InvalidParameter

if TYPE_CHECKING:
    from overspill_service.tenants.directory import Limits

TOMBSTONE_TTL: Final = 7 * 24 * 3600
"""Seconds for which a removed capture answers 410."""
ORPHAN_INTERVAL: Final = 6 * 3600.0
"""How often all replicas together list all objects, in seconds."""
MIN_ORPHAN_AGE: Final = 3600
"""Seconds since its last segment for which an unfinished upload is kept, even if `orphan_age` is less."""
REMOVAL_MARKER_TTL: Final = TOMBSTONE_TTL - ORPHAN_INTERVAL
"""Seconds for which the marker of a removal stays. The next search for orphans deletes it."""
SILENT_SECONDS: Final = REMOVAL_MARKER_TTL - 24 * 3600
"""Seconds of a producer's silence after which an incomplete catalog's entry without objects is not trusted.

They end before the marker of a removal since then is deleted.
"""
RENEWAL_SHARE: Final = 0.02
"""A repeated PUT extends a capture only by more than this part of its TTL, and by at least a minute."""


def expiry(now: float, ttl: int | None, limits: Limits) -> float:
    """Return when a capture that is stored now expires.

    Raises `InvalidParameter` outside the tenant's limits.
    """
    seconds = limits.default_ttl if ttl is None else ttl
    if not limits.min_ttl <= seconds <= limits.max_ttl:
        raise InvalidParameter(
            f"a TTL of {seconds} s is not allowed; "
            f"this tenant's captures live {limits.min_ttl} to {limits.max_ttl} s"
        )
    return end_of_life(now, seconds)


def end_of_life(now: float, seconds: float) -> float:
    """Return the end of this lifetime from now on, rounded up: a marker's key has whole seconds."""
    return float(math.ceil(now + seconds))


def is_worth_renewing(now: float, current: float, wanted: float) -> bool:
    """Return whether moving an expiry from `current` to `wanted` is worth a request to the object store.

    It always is if less than half of the wanted time is left.
    """
    gained, left = wanted - current, current - now
    return gained > max(60.0, RENEWAL_SHARE * (wanted - now)) or gained > max(left, 0.0)
