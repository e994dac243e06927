"""The spool on this machine's disk, as a destination.

It has a deadline of its own, which the service's does not shorten. While the disk takes other outputs, even
slowly, an output waits. The output is given up only if the disk takes nothing at all for some time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from overspill.delivery.upload import Failure
from overspill.errors.client_errors import NotSpooled
from overspill.execution.waiting import wait
from overspill.previews.notice_facts import StoreResult
from overspill.spools.order import Order
from overspill.spools.own_directory import disk_reason
from overspill.spools.writer import writer_for
from overspill.wire import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.spools.entries import Spooled
    from overspill.spools.own_directory import LockedFile
    from overspill.spools.partition import Partition
    from overspill.spools.store_request import StoreRequest

DISK_SECONDS: Final = 20.0
"""Seconds without any progress of the disk after which an output is given up."""
_STUCK: Final = f"the local spool did not store it within {DISK_SECONDS:g} s"
_UNCONFIRMED: Final = "the disk of the local spool did not confirm in time that it is stored"


class SpoolDestination:
    """Keeps outputs in `partition`. Calls `on_kept` for each one that the service may take later."""

    def __init__(self, partition: Partition, on_kept: Callable[[], None]) -> None:
        self.partition = partition
        self._on_kept = on_kept
        self._writer = writer_for(partition)

    async def put(self, request: StoreRequest, before: Failure | None) -> StoreResult | Failure:
        """Store the output in the spool, from where it is uploaded later. `before` says why it comes here."""
        before = before or Failure("")
        if self._writer.is_stuck(DISK_SECONDS):
            return Failure(_STUCK)
        order = self._order(request, before)
        reply = self._writer.submit(order)
        try:
            while not await wait(reply, DISK_SECONDS):
                if self._writer.idle_seconds() < DISK_SECONDS:
                    continue
                if order.take():
                    return Failure(_STUCK)
                if not await wait(reply, DISK_SECONDS):  # it is being published
                    return Failure(_UNCONFIRMED)
        finally:
            reply.cancel()
        try:
            return kept_in_spool(reply.result(), before)
        except NotSpooled as error:
            return Failure(str(error))
        except OSError as error:
            return Failure(disk_reason(error))

    def _order(self, request: StoreRequest, before: Failure) -> Order:
        refused = before.reason if before.is_final else ""

        def on_kept(entry: Spooled, locked: LockedFile | None) -> None:
            if before.upload is not None:
                before.upload.finish_for(self.partition, entry, locked, self._on_kept)
            elif not refused:
                self._on_kept()

        return Order(request, before.reason, refused, on_kept, is_uploading=before.upload is not None)


def kept_in_spool(entry: Spooled, before: Failure) -> StoreResult:
    """Return the facts for a notice about an output in the spool.

    `before` is why the service does not have it.
    """
    return StoreResult(
        outcome=Outcome.SPOOLED,
        expires=entry.expires,
        reason=entry.reason,
        path=entry.path,
        is_refused=before.is_refused,
    )
