"""The totals of a tenant's captures, and the limits on them. Sizes are bytes."""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec import Struct

from overspill_service.errors import QuotaExceeded

TOTALS_INCOMPLETE: Final = (
    "the catalog is being rebuilt from the object store, and the tenant's limits cannot be checked before "
    "that; try again in a moment"
)
UNRESERVED_BYTES: Final = 2**20
UNRESERVED_SHARE: Final = 1000
"""An upload of at most a MiB, and of at most a thousandth of the limit, is counted only at its end."""


class Charge(NamedTuple):
    """An amount that counts against a quota."""

    captures: int
    size: int
    stored_size: int
    metadata: int


CHARGED: Final = ("captures", "content bytes", "stored bytes", "metadata bytes")
"""The parts of a charge, as a refusal names them."""


class Totals(Struct, frozen=True):
    captures: int = 0
    size: int = 0
    stored_size: int = 0
    metadata: int = 0
    oldest: float | None = None
    """When the oldest capture was created."""


class Quota(Struct, frozen=True, kw_only=True):
    """The limits of a tenant's totals; 0 is no limit."""

    captures: int = 0
    size: int = 0
    """Bytes of content."""
    stored_size: int = 0
    metadata: int = 0
    """Bytes of the catalog, as `Entry.metadata_size` counts them."""
    is_exact: bool = True
    """Refuse captures while the totals are not known. Otherwise compare the limits with what is known."""

    @property
    def limits(self) -> Charge:
        return Charge(self.captures, self.size, self.stored_size, self.metadata)

    @property
    def is_limited(self) -> bool:
        return any(self.limits)

    @property
    def needs_totals(self) -> bool:
        return self.is_exact and self.is_limited

    @property
    def limits_growth(self) -> bool:
        """Whether a limit applies to the growth of a capture that is already counted."""
        return bool(self.size or self.stored_size)

    @property
    def reservation_step(self) -> int:
        """The bytes of content that a growing capture reserves ahead, each time it has used those before."""
        limits = (self.size, self.stored_size)
        return max(1, min((_unreserved(limit) for limit in limits if limit > 0), default=UNRESERVED_BYTES))

    def needs_reservation(self, size: int, stored_size: int) -> bool:
        """Return whether an upload of this size must be counted before its end."""
        return _is_much(size, self.size) or _is_much(stored_size, self.stored_size)

    def refusal(self, part: int) -> QuotaExceeded:
        """Return the error for the limit of one part of a charge."""
        return QuotaExceeded(CHARGED[part], self.limits[part])

    def require(self, total: Charge) -> None:
        """Raise `QuotaExceeded` if a tenant must not hold so much."""
        for part, (limit, amount) in enumerate(zip(self.limits, total, strict=True)):
            if 0 < limit < amount:
                raise self.refusal(part)


def _is_much(amount: int, limit: int) -> bool:
    return limit > 0 and amount > _unreserved(limit)


def _unreserved(limit: int) -> int:
    """Return how many bytes under a limit need no reservation."""
    return min(UNRESERVED_BYTES, limit // UNRESERVED_SHARE)
