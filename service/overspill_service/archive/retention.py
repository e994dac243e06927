"""How long captures live: arithmetic on TTLs and expiries, with the clock as a parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from overspill_service.errors import InvalidParameter

if TYPE_CHECKING:
    from overspill_service.tenants import Limits

TOMBSTONE_TTL: Final = 7 * 24 * 3600
"""Seconds for which a capture that is gone still answers 410."""
MIN_ORPHAN_AGE: Final = 3600
"""Seconds between two segments of an upload that leave it alone, whatever `orphan_age` says."""
RENEWAL_SHARE: Final = 0.02
"""A repeated PUT renews a capture only when that adds more than this share of its TTL (at least a minute)."""


def expiry(now: float, ttl: int | None, limits: Limits) -> float:
    """When a capture stored now expires. Raises `InvalidParameter` outside the tenant's bounds."""
    seconds = limits.default_ttl if ttl is None else ttl
    if not limits.min_ttl <= seconds <= limits.max_ttl:
        raise InvalidParameter(
            f"a TTL of {seconds} s is not allowed; "
            f"this tenant's captures live {limits.min_ttl} to {limits.max_ttl} s"
        )
    return float(int(now + seconds + 0.999))


def is_worth_renewing(now: float, current: float, wanted: float) -> bool:
    """Whether moving an expiry from `current` to `wanted` is worth an object-store request.

    It always is where less than half of the wanted time is left.
    """
    gained, left = wanted - current, current - now
    return gained > max(60.0, RENEWAL_SHARE * (wanted - now)) or gained > max(left, 0.0)
