"""Saying that an upload is under way, so that no sweep takes its segments for orphans, however short the age.

Uploads of less than a minute need not say so: no sweep touches what is younger than two.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from overspill_service.archive.archive import Archive

RENEW_SECONDS: Final = 60.0
"""From when on an upload says that it is under way, and how often it says so again."""
LEASE_SECONDS: Final = 600.0
"""For how long that holds after the last of its bytes came."""


async def renewing_lease(archive: Archive, upload: str, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Pass a body on, and say now and then that its upload is under way."""
    due = time.monotonic() + RENEW_SECONDS
    async for chunk in chunks:
        if time.monotonic() >= due:
            await archive.catalog.lease(_lease(upload), upload, LEASE_SECONDS)
            due = time.monotonic() + RENEW_SECONDS
        yield chunk


async def is_active(archive: Archive, upload: str) -> bool:
    """Return whether an upload said so lately."""
    holder = "sweep"
    is_free = await archive.catalog.lease(_lease(upload), holder, LEASE_SECONDS)
    if is_free:
        await archive.catalog.release(_lease(upload), holder)
    return not is_free


def _lease(upload: str) -> str:
    return f"upload:{upload}"
