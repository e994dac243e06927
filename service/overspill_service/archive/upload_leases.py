"""Leases of running uploads, so that no sweep takes their segments for orphans, even with a short orphan age.

An upload of less than a minute needs no lease: no sweep touches objects younger than two minutes.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final, TypeVar

from overspill_service.errors import CatalogUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from overspill_service.archive.archive import Archive
    from overspill_service.archive.uploading import Upload

T = TypeVar("T")

RENEW_SECONDS: Final = 60.0
"""Seconds after which an upload takes its lease, and between renewals."""
LEASE_SECONDS: Final = 600.0
"""Seconds for which the lease lasts after its last renewal."""

log = logging.getLogger(__name__)


async def renewing(archive: Archive, upload: Upload, chunks: AsyncIterator[T]) -> AsyncIterator[T]:
    """Yield the chunks of an upload, and renew its lease and its reservation now and then."""
    due = time.monotonic() + RENEW_SECONDS
    async for chunk in chunks:
        if time.monotonic() >= due:
            await _renew(archive, upload)
            due = time.monotonic() + RENEW_SECONDS
        yield chunk


async def _renew(archive: Archive, upload: Upload) -> None:
    """Renew lease and reservation, later if the catalog does not answer. Raises what `cover` raises."""
    try:
        await archive.catalog.lease(_lease(upload.name), upload.name, LEASE_SECONDS)
        await upload.reservation.renew()
    except CatalogUnavailable as error:
        log.info("the lease of an upload is renewed later: %s", error)


async def is_active(archive: Archive, upload: str) -> bool:
    """Return whether an upload holds its lease."""
    return await archive.catalog.is_leased(_lease(upload))


def _lease(upload: str) -> str:
    return f"upload:{upload}"
