"""Make live captures durable, end those whose producers are gone, and move finished ones into few objects.

Every replica looks for captures that are due. A lease lets one of them work on a capture. Tenants share
the places for that work.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from overspill import wire

from overspill_service.archive.recovery.rebuild import compared
from overspill_service.archive.retention import end_of_life
from overspill_service.catalog.live import UNKNOWN, LiveRecord
from overspill_service.catalog.records import Entry
from overspill_service.errors import (
    CatalogUnavailable,
    DeadlineExceeded,
    NotLive,
    ServiceError,
    TooManyRequests,
)
from overspill_service.live.append_queues import AppendQueues
from overspill_service.live.compaction import compact, is_worth_compacting
from overspill_service.live.digests import Digests
from overspill_service.live.ending import Ending
from overspill_service.live.producer_watch import ProducerWatch
from overspill_service.live.schedule import LOOK_SECONDS, Schedule
from overspill_service.live.segment_metrics import SegmentMetrics
from overspill_service.live.segments import store_segment
from overspill_service.resources.attempts import Attempts
from overspill_service.resources.fair_places import FairPlaces
from overspill_service.telemetry.logs import fields

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from overspill_service.archive.archive import Archive
    from overspill_service.archive.storing import OnStored
    from overspill_service.telemetry.live import LiveMetrics

SEGMENT_BYTES: Final = 8 * 2**20
"""Accepted bytes after which a segment is stored."""
LEASE_SECONDS: Final = 20.0
"""Seconds for which the lease on a live capture lasts if its replica dies while it stores a segment."""
COMPACTION_LEASE_SECONDS: Final = 300.0
LEASE_PAUSE_SECONDS: Final = 0.05
PLACES: Final = 8
"""Captures that a process works on at once."""
PLACE_SECONDS: Final = 30.0
RETRY_SECONDS: Final = 5.0
"""Seconds after a failure until a capture is looked at again."""
MAX_RUNNING: Final = 100
"""Captures of one tenant that a process works on, or waits to."""

log = logging.getLogger(__name__)


class Flusher:
    """One process's part of the work. `age` and `timeout` in seconds, as the settings say."""

    def __init__(
        self, archive: Archive, *, age: float, timeout: float, on_ended: OnStored, metrics: LiveMetrics
    ) -> None:
        """`on_ended` is called with each capture that this process has ended."""
        self._archive, self.timeout, self._on_ended = archive, timeout, on_ended
        self._metrics, self.segment_metrics = metrics, SegmentMetrics(archive, metrics)
        self.schedule = Schedule(archive, age, timeout)
        self._holder = secrets.token_hex(8)
        self._attempts = Attempts(log)
        self._places = FairPlaces(PLACES, "segments of live captures", wait_seconds=PLACE_SECONDS)
        self._running: dict[tuple[str, str], asyncio.Future[Entry | None]] = {}
        self.digests = Digests()
        self.append_queues = AppendQueues()
        self.producers = ProducerWatch(archive, timeout)

    async def run(self) -> None:
        """Look for captures that are due, until cancelled."""
        while True:
            self.producers.note_jump()
            if not await self._attempts.make("looking at live captures", self._start_due()):
                self.producers.begin()
            self.digests.trim()
            await asyncio.sleep(LOOK_SECONDS)

    async def _start_due(self) -> None:
        """Work on captures that are due: at most `MAX_RUNNING` of each tenant, so none holds up others."""
        running = Counter(tenant for tenant, _ in self._running)
        async for name in self.schedule.due():
            if name not in self._running and running[name[0]] < MAX_RUNNING:
                running[name[0]] += 1
                self.start(*name)

    async def close(self) -> None:
        """End the running work. Another replica, or the next start, goes on with it."""
        for task in self._running.values():
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    def start(self, tenant: str, capture: str) -> asyncio.Future[Entry | None]:
        """Work on a capture, unless this process does already."""
        name = tenant, capture
        running = self._running.get(name)
        if running is not None:
            return running
        task = asyncio.create_task(self._attempt(tenant, capture), name=f"live capture {capture}")
        self._running[name] = task
        task.add_done_callback(lambda ended: self._note_end(name, ended))
        return task

    @asynccontextmanager
    async def holding(self, entry: Entry) -> AsyncIterator[bool]:
        """Keep others from working on a capture. Yield False if another process already works on it."""
        name = entry.tenant, entry.id
        if name in self._running:
            yield False
            return
        running = self._running[name] = asyncio.get_running_loop().create_future()
        try:
            async with self._lease(entry) as is_held:
                yield is_held
        finally:
            del self._running[name]
            if not running.done():
                running.set_result(entry)

    def _note_end(self, name: tuple[str, str], task: asyncio.Task[Entry | None]) -> None:
        self._running.pop(name, None)
        error = None if task.cancelled() else task.exception()  # nobody may be waiting for it
        if error is not None and not isinstance(error, ServiceError):
            details = fields(tenant=name[0], capture=name[1])
            log.error("the work on a live capture failed", exc_info=error, extra=details)

    async def finish(self, tenant: str, capture: str) -> Entry | None:
        """Work on a capture whose producer has announced its end, until it has ended.

        Return None if it was removed. Raises `DeadlineExceeded`, and what the back ends raise.
        """
        try:
            async with asyncio.timeout(PLACE_SECONDS):
                while True:
                    entry = await asyncio.shield(self.start(tenant, capture))
                    if entry is None or not entry.is_live:
                        return entry
                    await asyncio.sleep(LEASE_PAUSE_SECONDS)
        except TimeoutError as error:
            late = f"storing {capture} takes long; its end is noted: ask again in a moment"
            raise DeadlineExceeded(late) from error

    async def _attempt(self, tenant: str, capture: str) -> Entry | None:
        try:
            async with self._places.hold(tenant):
                return await self._work(tenant, capture)
        except TooManyRequests:
            raise
        except ServiceError as error:
            details = fields(tenant=tenant, capture=capture, cause=str(error))
            log.info("a live capture is stored later", extra=details)
            await self.schedule.after(RETRY_SECONDS, tenant, capture)
            raise

    async def _work(self, tenant: str, capture: str) -> Entry | None:
        """Do the due work for a capture. Return its entry; None if it no longer has one."""
        entry = await self._archive.catalog.get(tenant, capture)
        if not isinstance(entry, Entry):
            await self._archive.catalog.forget_live(tenant, capture)
            return None
        async with self._lease(entry) as is_held:
            if not is_held:
                return entry
            if entry.is_live:
                entry = await self._continue(entry)
                if entry is not None and not entry.is_live:
                    self._on_ended(entry, is_new=True)
            elif is_worth_compacting(entry):
                entry = await compact(self._archive, entry)
        if entry is not None and not entry.is_live:
            self.digests.forget(entry.upload)
            later = self._archive.clock() if is_worth_compacting(entry) else None
            await self._archive.catalog.schedule(tenant, capture, later)
        return entry

    async def _continue(self, entry: Entry) -> Entry | None:
        """Store the accepted bytes, and end the capture if that is due."""
        current = await compared(self._archive, entry)
        if current != entry:
            return current if isinstance(current, Entry) else None
        record = await self._record(entry)
        if record.durable != entry.size:  # others have stored more, or the entry was read from its objects
            await self.schedule.after(0, entry.tenant, entry.id)
            return await self._archive.catalog.replace(entry, entry)
        ending = None if record.ending is None else Ending.decode(record.ending)
        if ending is None and await self.producers.is_gone(record):
            return await self._end_for(entry, record)
        if ending is None and not record.buffer and record.cut is None:
            kept = await self._kept_alive(entry)
            await self.schedule.look_again(kept or entry, record.active)
            return kept
        storing = store_segment(self._archive, self.digests, entry, record, ending)
        grown = await self.segment_metrics.counted(entry, record, storing)
        if grown is not None and grown.is_live:
            if ending is not None:
                return await self._continue(grown)  # an earlier cut ended before the end
            await self.schedule.look_again(grown, record.active)
        return grown

    async def _kept_alive(self, entry: Entry) -> Entry | None:
        """Renew a capture whose producer gives signs of life but no bytes, once half of its life is over."""
        now = self._archive.clock()
        if entry.expires - now > entry.life / 2:
            return entry
        renewed = replace(entry, expires=max(entry.expires, end_of_life(now, entry.life)))
        return await self._archive.catalog.replace(entry, renewed)

    async def _record(self, entry: Entry) -> LiveRecord:
        """Return the catalog's record. A lost record begins again at the durable offset."""
        record = await self._archive.catalog.live(entry.tenant, entry.id)
        if record is None:
            record = await reopened(self._archive, entry)
        return record

    async def _end_for(self, entry: Entry, record: LiveRecord) -> Entry | None:
        """End a capture whose producer is gone, unless it has just come back."""
        digest = await self.digests.whole(self._archive, entry, record.buffer)
        ending = Ending(state=wire.State.PARTIAL, sha256=digest, lost=record.lost)
        catalog = self._archive.catalog
        if await catalog.end_live(entry.tenant, entry.id, record.accepted, ending.encode()):
            details = fields(tenant=entry.tenant, capture=entry.id, seconds=self.timeout)
            log.info("ended a live capture whose producer is gone", extra=details)
            self._metrics.vanished(entry.tenant)
            return await self._continue(entry)
        await self.schedule.look_again(entry, self._archive.clock())
        return entry

    @asynccontextmanager
    async def _lease(self, entry: Entry) -> AsyncIterator[bool]:
        name = f"live:{entry.upload}"
        seconds = LEASE_SECONDS if entry.is_live else COMPACTION_LEASE_SECONDS
        try:
            is_held = await self._archive.catalog.lease(name, self._holder, seconds)
        except CatalogUnavailable:  # it takes nothing from any producer either
            self.producers.begin()
            raise
        try:
            yield is_held
        finally:
            if is_held:
                await self._archive.catalog.release(name, self._holder)


async def reopened(archive: Archive, entry: Entry) -> LiveRecord:
    """Begin the buffer of a live capture again after the catalog has lost it: at the durable offset.

    Raises `CatalogUnavailable`, and `NotLive` if the capture has ended or was removed since `entry` was read:
    that is why it has no buffer, and it gets none.
    """
    record = LiveRecord(
        producer=entry.producer,
        accepted=entry.size,
        start=entry.size,
        durable=entry.size,
        active=archive.clock(),
        reached=UNKNOWN if entry.size else 0,
    )
    await archive.catalog.open_live(entry.tenant, entry.id, record, only_of=entry)
    found = await archive.catalog.live(entry.tenant, entry.id)
    if found is not None:
        return found
    current = await archive.catalog.get(entry.tenant, entry.id)
    if current is None or (isinstance(current, Entry) and current.is_live):
        raise CatalogUnavailable("the catalog loses data while it is being written")
    raise NotLive(f"{entry.id} has ended: begin another capture")
