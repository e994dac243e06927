"""Reserves a part of its tenant's quota for a running upload, so that many together cannot exceed the quota.

Small uploads reserve nothing: the catalog counts them when they are complete.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from overspill_service.errors import CatalogUnavailable

if TYPE_CHECKING:
    from overspill_service.catalog import Catalog
    from overspill_service.catalog.quotas import Quota

KEEP_SECONDS: Final = 600.0
"""Seconds for which a reservation lasts after its process is gone and no longer renews it."""

log = logging.getLogger(__name__)


class Reservation:
    """The reservation of one upload. It ends with the commit, or with `free`."""

    def __init__(self, catalog: Catalog, tenant: str, upload: str, quota: Quota) -> None:
        self._catalog, self.tenant, self.upload, self._quota = catalog, tenant, upload, quota
        self._size = self._stored_size = 0
        self._is_held = False

    async def cover(self, *, size: int, stored_size: int) -> None:
        """Reserve this amount in total, if it is not less than before.

        Raises `QuotaExceeded`, and `CatalogIncomplete` if the catalog does not know the totals yet.
        """
        size, stored_size = max(size, self._size), max(stored_size, self._stored_size)
        if self._is_held or self._quota.needs_reservation(size, stored_size):
            await self._reserve(size, stored_size)
        self._size, self._stored_size = size, stored_size

    async def renew(self) -> None:
        """Extend the reservation, if there is one. Raises what `cover` raises."""
        if self._is_held:
            await self._reserve(self._size, self._stored_size)

    async def free(self) -> None:
        """Give the reservation back. If the catalog does not answer, the reservation ends by itself."""
        if not self._is_held:
            return
        try:
            await self._catalog.free(self.tenant, self.upload)
        except CatalogUnavailable as error:
            log.info("a reservation is left to lapse: %s", error)
        self._is_held = False

    async def _reserve(self, size: int, stored_size: int) -> None:
        self._is_held = True  # also if the answer is lost
        await self._catalog.reserve(
            self.tenant, self.upload, size, stored_size, self._quota, keep=KEEP_SECONDS
        )
