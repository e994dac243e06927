"""Whether what is stored of a capture is good, before its content is acknowledged once more.

All of it is read, frame by frame. A client that repeats a large body does not wait for that to the end: the
rest is examined while its body comes.
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
"""How long a client waits, at most, until its body is taken."""

log = logging.getLogger(__name__)


async def is_intact(archive: Archive, entry: Entry) -> bool:
    """Return whether every byte that is stored for an entry is good. Raises `StoreUnavailable`.

    What was found damaged once is not read again.
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
    """Finds out, meanwhile, whether an entry is whole."""

    def __init__(self, task: asyncio.Task[bool]) -> None:
        self._task = task

    async def seems_intact(self) -> bool:
        """Return false if damage was found within `VERIFY_SECONDS`."""
        await asyncio.wait([self._task], timeout=VERIFY_SECONDS)
        return not self._task.done() or self._task.result()

    async def is_intact(self) -> bool:
        """Return the result once there is one."""
        return await self._task


@asynccontextmanager
async def verifying(archive: Archive, entry: Entry) -> AsyncIterator[Verification]:
    """Examine an entry in a task that ends with this block."""
    task = asyncio.create_task(is_intact(archive, entry))
    try:
        yield Verification(task)
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # who did not ask for the result needs to know no failure either
