"""The composition root: turn settings into a wired application."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

from aiohttp import web

from overspill_service import access
from overspill_service.archive.key_issuing import KeyIssuer
from overspill_service.archive.reader_notes import ReaderNotes
from overspill_service.back_ends import open_archive
from overspill_service.catalog.sqlite.clock import steady_seconds
from overspill_service.live.flusher import Flusher
from overspill_service.live.streams import Streams
from overspill_service.live.views import LiveViews
from overspill_service.maintenance import Maintenance
from overspill_service.resources.body_pace import BodyPace
from overspill_service.resources.fair_places import Places
from overspill_service.resources.fair_threads import FairThreads
from overspill_service.resources.scans import ScanThreads, scan_places
from overspill_service.resources.tasks import running
from overspill_service.resources.tenant_mix import TenantMix
from overspill_service.resources.unsent_answers import UnsentAnswers
from overspill_service.telemetry import tracing
from overspill_service.telemetry.metrics import Metrics
from overspill_service.telemetry.scrapes import Scrapes
from overspill_service.tenants_file import TenantsFile
from overspill_service.web.authentication import Authenticator
from overspill_service.web.client_address import ClientAddresses
from overspill_service.web.middleware import middleware, set_headers
from overspill_service.web.open_mode import OpenMode
from overspill_service.web.page_sessions import PageSessions
from overspill_service.web.replicas import ScanCpu, run_telling
from overspill_service.web.request_rates import RequestRates
from overspill_service.web.routes import TABLE
from overspill_service.web.service import SERVICE, Service
from overspill_service.web.streaming import note_cut_off
from overspill_service.web.tokens import Tokens

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from overspill_service.archive.archive import Archive
    from overspill_service.settings.settings import Settings
    from overspill_service.tenants.directory import TenantDirectory

FIRST_ROUND_SECONDS: Final = 2.0
"""How long a start waits for a new catalog to become complete. A rebuild of many captures takes longer."""


@asynccontextmanager
async def open_scans(archive: Archive, metrics: Metrics, mix: TenantMix) -> AsyncIterator[ScanThreads]:
    """Start the threads for scans, and those for uploads, and stop them at the end."""
    scans, uploads = (
        ScanThreads(scan_places(archive.memory.size), mix=mix, note=metrics.scan_batch),
        FairThreads("upload", mix=mix),
    )
    archive.upload_workers = uploads.of
    try:
        yield scans
    finally:
        scans.close()
        uploads.close()


def make_app(
    settings: Settings,
    *,
    clock: Callable[[], float] = time.time,
    steady: Callable[[], float] = steady_seconds,
) -> web.Application:
    """Return the application. It opens the back ends when it starts, and closes them when it stops.

    `clock` is this machine's, in seconds since the epoch; `steady` counts seconds, and is never set.
    """
    app = web.Application(middlewares=[middleware], client_max_size=0)
    app.on_response_prepare.append(set_headers)
    app.cleanup_ctx.append(lambda app: _serve(app, settings, clock, steady))
    TABLE.add_to(app)
    return app


async def _serve(
    app: web.Application, settings: Settings, clock: Callable[[], float], steady: Callable[[], float]
) -> AsyncIterator[None]:
    metrics, mix = Metrics(), TenantMix()
    stamp, directory = access.stamp_of(settings.tenants), access.directory_of(settings)
    async with (
        open_archive(settings, metrics, mix=mix, clock=clock, steady=steady) as archive,
        open_scans(archive, metrics, mix) as scans,
    ):
        is_settled = await access.try_to_settle(settings, directory, archive)
        app[SERVICE] = service = await _assemble(settings, metrics, directory, archive, scans, mix)
        async with (
            _maintained(service, is_settled=is_settled),
            running(TenantsFile(service, stamp).run(), "tenants' file"),
            _flushed(service.flusher),
            running(run_telling(archive.catalog, service.rates, ScanCpu(scans)), "limits of all replicas"),
        ):
            yield


async def _assemble(
    settings: Settings,
    metrics: Metrics,
    directory: TenantDirectory,
    archive: Archive,
    scans: ScanThreads,
    mix: TenantMix,
) -> Service:
    """Return the parts of the service, wired."""
    memory, views = archive.memory.size, LiveViews(archive)
    issuer, mode = KeyIssuer(archive.keyring, settings.key_secret), OpenMode(archive.catalog, archive.keyring)
    page_sessions = PageSessions(archive.store, archive.catalog, archive.shared_clock.now)
    rates = RequestRates()
    return Service(
        archive=archive,
        directory=directory,
        authenticator=await _authenticator(settings, directory, archive, issuer, mode, page_sessions, rates),
        rates=rates,
        mode=mode,
        issuer=issuer,
        metrics=metrics,
        reader_notes=ReaderNotes(archive.catalog),
        scrapes=Scrapes(metrics.collect),
        page_sessions=page_sessions,
        addresses=_addresses(settings),
        spans=tracing.spans(),
        settings=settings,
        places=Places.of(settings.max_uploads, memory),
        unsent=UnsentAnswers(memory, note_cut_off),
        scans=scans,
        mix=mix,
        body_pace=BodyPace(mix),
        flusher=_flusher(settings, metrics, archive),
        live_views=views,
        streams=Streams(archive, views),
    )


async def _authenticator(
    settings: Settings,
    directory: TenantDirectory,
    archive: Archive,
    issuer: KeyIssuer,
    mode: OpenMode,
    page_sessions: PageSessions,
    rates: RequestRates,
) -> Authenticator:
    clock = archive.shared_clock.now
    return Authenticator(
        directory,
        archive.catalog,
        issuer,
        mode,
        page_sessions,
        rates,
        clock=clock,
        secrets=settings.key_secrets,
        tokens=Tokens(settings, clock) if settings.jwt_issuer else None,
        local_key=await asyncio.to_thread(access.local_key, settings),
    )


def _addresses(settings: Settings) -> ClientAddresses:
    return ClientAddresses(
        settings.trusted_networks, settings.client_address_header, settings.scraping_networks
    )


def _flusher(settings: Settings, metrics: Metrics, archive: Archive) -> Flusher:
    return Flusher(
        archive,
        age=settings.live_flush_seconds,
        timeout=settings.live_timeout,
        on_ended=metrics.capture,
        metrics=metrics.live,
    )


@asynccontextmanager
async def _maintained(service: Service, *, is_settled: bool) -> AsyncIterator[None]:
    """Run the background job during the block. A short first round ends before the block begins."""
    maintenance = Maintenance(service, is_settled=is_settled)
    try:
        async with running(maintenance.run(), "maintenance"):
            with suppress(TimeoutError):
                async with asyncio.timeout(FIRST_ROUND_SECONDS):
                    await maintenance.first_round_ended.wait()
            yield
    finally:
        await maintenance.close()


@asynccontextmanager
async def _flushed(flusher: Flusher) -> AsyncIterator[None]:
    """Store what live captures have accepted during the block."""
    try:
        async with running(flusher.run(), "live captures"):
            yield
    finally:
        await flusher.close()
