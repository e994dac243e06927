"""The background job of a serving process: rebuild a lost catalog, sweep expired captures, find orphans."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import secrets
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from overspill_service import access
from overspill_service.archive.recovery.entries import record_of
from overspill_service.archive.recovery.generations import Generations
from overspill_service.archive.recovery.rebuild import rebuild_if_due
from overspill_service.archive.removal import REMOVAL_SECONDS, finish_removals
from overspill_service.archive.retention import MIN_ORPHAN_AGE, ORPHAN_INTERVAL
from overspill_service.archive.sweep import sweep_all, sweep_orphans
from overspill_service.catalog.quotas import Totals
from overspill_service.catalog.statistics import EXPERIMENTS, FLEET
from overspill_service.errors import RecordDamaged
from overspill_service.resources.attempts import Attempts
from overspill_service.resources.tasks import in_batches
from overspill_service.telemetry.logs import fields

if TYPE_CHECKING:
    from overspill_service.web.service import Service

POLL_SECONDS: Final = 5.0
"""How often a process checks whether the catalog was lost."""
CLOCK_SECONDS: Final = 60.0
"""How often a process compares its clock with those of the back ends."""
TOTALS_SECONDS: Final = 10.0
"""How often a process reads from the catalog how much is stored."""
CLOSE_SECONDS: Final = 3.0
"""How long a stopping process waits for its last records."""
SWEEP_LEASE: Final = "sweep"
ORPHAN_LEASE: Final = "orphans"

log = logging.getLogger(__name__)


class Maintenance:
    """One process's part of the job. Leases let each task run once for all replicas."""

    def __init__(self, service: Service, *, is_settled: bool = True) -> None:
        self._service, self._archive = service, service.archive
        self._holder = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self._generations = Generations(self._archive, self._holder)
        self._orphans_due = time.monotonic()
        self._clock_due = time.monotonic() + CLOCK_SECONDS
        self._totals_due = time.monotonic()
        self._is_settled = is_settled
        self._active: set[str] = set()
        """Tenants of which something was counted since their dashboards were prepared."""
        self._attempts = Attempts(log)
        self.first_round_ended = asyncio.Event()
        """Set after the first round. A small or intact catalog is complete then."""

    async def run(self) -> None:
        """Run a round every `POLL_SECONDS` until cancelled, and sweep every `sweep_interval`."""
        interval = self._service.settings.sweep_interval
        due = random.uniform(0, interval)  # noqa: S311  (spreads the replicas)
        waited = 0.0
        while True:
            await self._keep_catalog_once()
            self.first_round_ended.set()
            await self._attempts.make("mending", self.repair_once())
            await self._report_once()
            await self._measure_once()
            if interval and waited >= due:
                if not await self._attempts.make("sweep", self.sweep_once()):
                    self._service.metrics.sweep(0, is_done=False)
                waited, due = 0.0, interval
            await asyncio.sleep(POLL_SECONDS)
            waited += POLL_SECONDS

    async def _keep_catalog_once(self) -> None:
        """Find out whether the catalog lacks something, and bring it back. Afterwards it may be complete."""
        await self._measure_clock()
        await self._attempts.make("generation", self._generations.keep())
        await self._attempts.make("keys", self.restore_keys())
        await self._attempts.make("uses of keys", self._service.authenticator.uses.report())
        await self._attempts.make("rebuild", self.rebuild_once())

    async def _report_once(self) -> None:
        """Tell the catalog what this process has counted."""
        await self._attempts.make("statistics", self._write_statistics())
        await self._attempts.make("readers", self._service.reader_notes.report())
        await self._attempts.make("roll-ups", self._prepare_rollups())

    async def _measure_once(self) -> None:
        """Set the metrics of what is stored, of the disks and of this process. Log failures that are due."""
        if time.monotonic() >= self._totals_due:
            self._totals_due = time.monotonic() + TOTALS_SECONDS
            await self._attempts.make("totals", self.measure_totals())
        self._service.failure_log.flush()
        await self._measure_free_space()
        self._service.metrics.measure_process()

    async def restore_keys(self) -> None:
        """Give an incomplete catalog its keys back. Settle whether requests need one, if that is open."""
        if not self._is_settled:
            await access.settle(self._service.settings, self._service.directory, self._archive)
            self._is_settled = True
        elif not await self._archive.catalog.is_complete():
            restored = await self._archive.keyring.restore()
            if restored:
                log.warning("corrected %d API keys of the catalog from the object store", restored)

    async def close(self) -> None:
        """Record that this process writes nothing more, if the back ends answer in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._attempts.make("uses of keys", self._service.authenticator.uses.report())
                await self._attempts.make("statistics", self._write_statistics())
                await self._attempts.make("readers", self._service.reader_notes.report())
                await self._attempts.make("end of the generation", self._generations.close())

    async def _write_statistics(self) -> None:
        written = await self._service.metrics.write_pending(self._archive.catalog, self._archive.clock())
        self._active.update(tenant for tenant in written if tenant == FLEET or tenant[:1] != EXPERIMENTS)

    async def _prepare_rollups(self) -> None:
        """Prepare the dashboards of tenants of which something was counted."""
        tenants, self._active = self._active, set()
        await self._service.history.prepare(self._archive.catalog, tenants, self._archive.clock())

    async def _measure_clock(self) -> None:
        if time.monotonic() >= self._clock_due:
            self._clock_due = time.monotonic() + CLOCK_SECONDS
            await self._archive.shared_clock.measure()
        self._service.metrics.clock_skew(abs(self._archive.shared_clock.skew))

    async def measure_totals(self) -> None:
        """Set the metrics of what tenants have: stored, live, and in their clients' spools."""
        catalog = self._archive.catalog
        tenants = await catalog.tenants()
        totals = dict(zip(tenants, await in_batches(self._totals_of, tenants), strict=True))
        self._service.metrics.stored(
            {tenant: each for tenant, each in totals.items() if isinstance(each, Totals)}
        )
        live = await in_batches(catalog.live_totals, tenants)
        self._service.metrics.live.totals(
            dict(zip(tenants, live, strict=True)), await catalog.scheduled_count()
        )
        now = self._archive.clock()
        self._service.metrics.spooled(await catalog.backlogs(now), now)
        if damaged := next((each for each in totals.values() if isinstance(each, RecordDamaged)), None):
            raise damaged

    async def _totals_of(self, tenant: str) -> Totals | RecordDamaged:
        """Return what a tenant has, or the error if that is damaged: others are measured all the same."""
        try:
            return await self._whole_totals_of(tenant)
        except RecordDamaged as error:
            return error

    async def _whole_totals_of(self, tenant: str) -> Totals:
        """Return what a tenant has, counted again if the totals are damaged. Raises `RecordDamaged`."""
        catalog = self._archive.catalog
        with suppress(RecordDamaged):
            return await catalog.totals(tenant)
        await catalog.recount(tenant)
        counted = await catalog.totals(tenant)
        log.warning("the totals of a tenant were damaged and are counted again", extra=fields(tenant=tenant))
        return counted

    async def _measure_free_space(self) -> None:
        """Set the metrics of free space. A disk that does not answer has none."""
        for backend, folder in self._archive.folders.items():
            try:
                async with asyncio.timeout(POLL_SECONDS):
                    status = await asyncio.to_thread(os.statvfs, folder)
            except OSError as error:  # TimeoutError is an OSError
                log.debug("the disk of the %s does not say how much room it has: %s", backend, error)
            else:
                self._service.metrics.free_space(backend, status.f_bavail * status.f_frsize, status.f_favail)

    async def rebuild_once(self) -> None:
        """Rebuild the catalog if that is due, unless it refuses writes."""
        await self._archive.catalog.ping()
        count = await rebuild_if_due(self._archive, self._holder)
        if count:
            log.warning("rebuilt the catalog: the object store has %d captures", count)
        if count is not None:  # after a kill or a loss there may be orphans: count them now
            await self._find_orphans()

    async def repair_once(self) -> None:
        """Replace damaged records of the catalog from their objects."""
        for tenant, capture in self._archive.catalog.damaged():
            try:
                await record_of(self._archive, tenant, capture)
                self._service.metrics.damaged_record(is_repaired=True)
            except RecordDamaged:
                self._service.metrics.damaged_record(is_repaired=False)

    async def sweep_once(self) -> None:
        """Remove expired captures, finish removals, and now and then find orphans.

        Leases leave to other replicas what they do already. Raises `ClockSkewed` before a lease is taken, so
        a replica with a wrong clock does not keep others from sweeping.
        """
        await self._archive.shared_clock.require_agreement()
        interval = self._service.settings.sweep_interval
        if await self._archive.catalog.lease(SWEEP_LEASE, self._holder, interval):
            await self._attempts.make("removals", finish_removals(self._archive, age=REMOVAL_SECONDS))
            swept = await sweep_all(self._archive, await self._archive.catalog.tenants())
            self._service.metrics.sweep(swept.removed.captures, is_done=not swept.failed)
        if time.monotonic() >= self._orphans_due:
            await self._sweep_orphans()

    async def _sweep_orphans(self) -> None:
        if await self._archive.catalog.lease(ORPHAN_LEASE, self._holder, ORPHAN_INTERVAL):
            await self._find_orphans()
        else:
            self._service.metrics.orphans(0)  # another replica reports them

    async def _find_orphans(self) -> None:
        self._orphans_due = time.monotonic() + ORPHAN_INTERVAL
        age = max(self._service.settings.orphan_age, MIN_ORPHAN_AGE)
        orphans = await sweep_orphans(self._archive, age=age)
        self._service.metrics.orphans(orphans.size)
        if orphans.deleted:
            log.warning("deleted %d orphaned objects", orphans.deleted)
