"""Check the stored bytes of a capture before its content is acknowledged again. Every frame is read.

A client that repeats a large body does not wait for the end of the check: it continues while the body comes.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from overspill_service.errors import CaptureDamaged
from overspill_service.telemetry.logs import fields

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from overspill_service.archive.archive import Archive
    from overspill_service.catalog.records import Entry

VERIFY_SECONDS: Final = 10.0
"""How long a client waits, at most, until its body is read."""

log = logging.getLogger(__name__)


async def is_intact(archive: Archive, entry: Entry) -> bool:
    """Return whether every stored byte of an entry is right. Raises `StoreUnavailable`.

    An upload that was found damaged before is not read again.
    """
    if entry.upload in archive.damaged:
        return False
    try:
        await archive.verify(entry)
    except CaptureDamaged as error:
        details = fields(tenant=entry.tenant, capture=entry.id, cause=str(error))
        log.error("a capture is damaged", extra=details)  # noqa: TRY400  (no fault of this code)
        archive.damaged.append(entry.upload)
        return False
    return True


class Verification:
    """The check of one entry, in the background."""

    def __init__(self, task: asyncio.Task[bool]) -> None:
        self._task = task

    async def seems_intact(self) -> bool:
        """Return False if damage was found within `VERIFY_SECONDS`."""
        await asyncio.wait([self._task], timeout=VERIFY_SECONDS)
        return not self._task.done() or self._task.result()

    async def is_intact(self) -> bool:
        """Wait for the end of the check, and return its result."""
        return await self._task


@asynccontextmanager
async def verifying(archive: Archive, entry: Entry) -> AsyncIterator[Verification]:
    """Check an entry in a task that ends with the block."""
    task = asyncio.create_task(is_intact(archive, entry))
    try:
        yield Verification(task)
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # read its failure, or asyncio reports it as never retrieved
