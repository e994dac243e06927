"""The composition root: turn settings into a wired application. The only module that names adapters."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final, TypeVar

from aiohttp import web

from overspill_service import access
from overspill_service.archive.archive import Archive
from overspill_service.archive.key_issuing import KeyIssuer
from overspill_service.archive.shared_clock import SharedClock
from overspill_service.audit.log import AuditLog
from overspill_service.audit.outputs import open_output
from overspill_service.catalog.sqlite.catalog import SqliteCatalog
from overspill_service.catalog.sqlite.clock import steady_seconds
from overspill_service.catalog.urls import open_catalog, sqlite_file
from overspill_service.errors.checks import folder_risk, foreign_owner, foreign_parent
from overspill_service.errors.system import failure
from overspill_service.maintenance import Maintenance
from overspill_service.objects.file import FileStore
from overspill_service.objects.urls import open_store, store_folder
from overspill_service.resources.cpu import CpuThreads
from overspill_service.resources.fair_places import FairPlaces, answer_places
from overspill_service.resources.fair_threads import FairThreads
from overspill_service.resources.memory_budget import MemoryBudget
from overspill_service.resources.memory_limit import default_budget
from overspill_service.resources.scans import ScanThreads, scan_places
from overspill_service.settings.settings import SettingError, Settings
from overspill_service.telemetry import tracing
from overspill_service.telemetry.metered import MeteredCatalog, MeteredStore
from overspill_service.telemetry.metrics import Metrics
from overspill_service.telemetry.scrapes import Scrapes
from overspill_service.web.authentication import Authenticator, OpenMode
from overspill_service.web.client_address import ClientAddresses
from overspill_service.web.middleware import middleware, set_headers
from overspill_service.web.page_sessions import PageSessions
from overspill_service.web.registry import add_routes, with_private_metrics
from overspill_service.web.routes import ROUTES
from overspill_service.web.service import SERVICE, Service
from overspill_service.web.tokens import Tokens

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from overspill_service.catalog import Catalog
    from overspill_service.objects import ObjectStore
    from overspill_service.tenants.directory import TenantDirectory

T = TypeVar("T")

log = logging.getLogger("overspill_service.start")

FIRST_ROUND_SECONDS: Final = 2.0
"""How long a start waits for a new catalog to become complete. A rebuild of many captures takes longer."""


@asynccontextmanager
async def open_archive(
    settings: Settings,
    metrics: Metrics | None = None,
    *,
    clock: Callable[[], float] = time.time,
) -> AsyncIterator[Archive]:
    """Open the back ends that the settings name, and close them at the end. `clock` is this machine's."""
    cpu = CpuThreads()
    store = store_of(settings, "store", settings.store)
    try:
        catalog = catalog_of(settings, "catalog", settings.catalog, clock)
        try:
            steady = None if isinstance(catalog, SqliteCatalog) else steady_seconds
            if metrics:
                store = MeteredStore(store, "store", metrics)
                catalog = MeteredCatalog(catalog, "catalog", metrics)
            shared_clock = SharedClock(clock, catalog, store, steady)
            await shared_clock.measure()
            memory = MemoryBudget(settings.memory or default_budget(settings.workers))
            archive = Archive(store, catalog, cpu, clock=shared_clock, level=settings.level, memory=memory)
            archive.folders = folders(settings)
            yield archive
        finally:
            await catalog.close()
    finally:
        await store.close()
        cpu.close()


@asynccontextmanager
async def open_scans(archive: Archive, metrics: Metrics) -> AsyncIterator[ScanThreads]:
    """Start the threads for scans, and those for uploads, and stop them at the end."""
    scans, uploads = (
        ScanThreads(scan_places(archive.memory.size), note=metrics.scan_batch),
        FairThreads("upload"),
    )
    archive.upload_workers = uploads.of
    try:
        yield scans
    finally:
        scans.close()
        uploads.close()


async def open_audit_log(settings: Settings) -> AuditLog:
    """Return the audit log of the settings. Raises `SettingError` if it cannot be written."""
    if not settings.audit_log:
        return AuditLog()
    try:
        log = AuditLog(await asyncio.to_thread(open_output, settings.audit_log))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise SettingError(f"audit_log: {settings.audit_log} cannot be written: {reason}") from error
    await log.probe()
    return log


def require_folder(settings: Settings) -> None:
    """Raise `SettingError` if the store is a folder that cannot be used."""
    folder = folders(settings).get("store")
    if folder is None:
        return
    try:
        FileStore(folder, threads=1).prepare()
    except OSError as error:
        known = failure(error, f"the folder {folder}", folder)
        raise SettingError(
            f"store: {known or f'the folder {folder} cannot be used: {error.strerror}'}"
        ) from error


def folders(settings: Settings) -> dict[str, Path]:
    """Return the folders of back ends on this machine's disks, by `store` and `catalog`."""
    store = resolve_url("store", settings.store, lambda url: store_folder(url, data_dir=settings.data))
    file = resolve_url("catalog", settings.catalog, lambda url: sqlite_file(url, data_dir=settings.data))
    found = {"store": store, "catalog": file.parent if file else None}
    return {name: folder for name, folder in found.items() if folder is not None}


def check_folders(settings: Settings) -> None:
    """Log a warning for each folder that others may write to: they could replace all captures.

    Raises `SettingError` if another user owns a folder, or one that it lies in.
    """
    used = folders(settings)
    for name, folder in used.items():
        if sentence := foreign_parent(folder):
            raise SettingError(f"{name}: {sentence}; name a folder of your own with --data, or chown it")
    for folder in sorted({settings.data, *used.values()}):
        if folder.is_dir() and (sentence := folder_risk(folder)):
            log.warning(sentence)


def require_own_folders(settings: Settings) -> None:
    """Raise `SettingError` if a folder is another user's, whose service could not read what is written there.

    The superuser could write there all the same, and nobody would notice before the next start.
    """
    for name, folder in folders(settings).items():
        if (owner := foreign_owner(folder)) is not None:
            raise SettingError(
                f"{name}: {folder} belongs to the user {owner}, who could not read what this command writes: "
                f"run it as that user (sudo -u '#{owner}')"
            )


def embedded_back_ends(settings: Settings) -> tuple[FileStore, Path]:
    """Return the folder of the store and the file of the catalog.

    Raises `SettingError` for other back ends.
    """
    store = store_of(settings, "store", settings.store)
    catalog = resolve_url("catalog", settings.catalog, lambda url: sqlite_file(url, data_dir=settings.data))
    if not isinstance(store, FileStore) or catalog is None:
        raise SettingError(
            "this is for a store in a folder and a catalog in a SQLite file; for S3 and Redis, see Back up "
            "in service/deploy/README.md"
        )
    return store, catalog


def store_of(settings: Settings, name: str, url: str) -> ObjectStore:
    """Return the object store at a URL that the setting or option `name` gives. Raises `SettingError`."""

    def opener(url: str) -> ObjectStore:
        return open_store(url, data_dir=settings.data, require_tls=settings.require_tls)

    return resolve_url(name, url, opener)


def catalog_of(settings: Settings, name: str, url: str, clock: Callable[[], float] = time.time) -> Catalog:
    """Return the catalog at a URL that the setting or option `name` gives. Raises `SettingError`."""

    def opener(url: str) -> Catalog:
        return open_catalog(url, data_dir=settings.data, clock=clock, require_tls=settings.require_tls)

    return resolve_url(name, url, opener)


def resolve_url(setting: str, url: str, opener: Callable[[str], T]) -> T:
    """Return what `opener` makes of the URL.

    Raises `SettingError` without the URL, which may hold a password.
    """
    try:
        return opener(url)
    except ValueError as error:
        raise SettingError(f"{setting}: {error}") from error


def make_app(settings: Settings, *, clock: Callable[[], float] = time.time) -> web.Application:
    """Return the application. It opens the back ends when it starts, and closes them when it stops.

    `clock` is this machine's, in seconds since the epoch.
    """
    app = web.Application(middlewares=[middleware], client_max_size=0)
    app.on_response_prepare.append(set_headers)
    app.cleanup_ctx.append(lambda app: _serve(app, settings, clock))
    add_routes(app, map(with_private_metrics, ROUTES) if settings.private_metrics else ROUTES)
    return app


async def _serve(app: web.Application, settings: Settings, clock: Callable[[], float]) -> AsyncIterator[None]:
    metrics = Metrics()
    directory = access.directory_of(settings)
    async with (
        open_archive(settings, metrics, clock=clock) as archive,
        open_scans(archive, metrics) as scans,
    ):
        is_settled = await access.try_to_settle(settings, directory, archive)
        app[SERVICE] = service = await _assemble(settings, metrics, directory, archive, scans)
        try:
            async with _maintained(service, is_settled=is_settled):
                yield
        finally:
            await service.audit.close()


async def _assemble(
    settings: Settings, metrics: Metrics, directory: TenantDirectory, archive: Archive, scans: ScanThreads
) -> Service:
    """Return the parts of the service, wired. Raises `SettingError` if the audit log cannot be written."""
    mode = OpenMode(archive.catalog, archive.keyring)
    issuer = KeyIssuer(archive.keyring, settings.key_secret)
    page_sessions = PageSessions(archive.store, archive.catalog, archive.shared_clock.now)
    return Service(
        archive=archive,
        directory=directory,
        authenticator=await _authenticator(settings, directory, archive, issuer, mode, page_sessions),
        mode=mode,
        issuer=issuer,
        metrics=metrics,
        scrapes=Scrapes(metrics.collect),
        audit=await open_audit_log(settings),
        page_sessions=page_sessions,
        addresses=ClientAddresses(settings.trusted_networks, settings.client_address_header),
        hosts=settings.answered_hosts,
        spans=tracing.spans(),
        settings=settings,
        upload_places=FairPlaces(settings.max_uploads, "uploads"),
        answer_places=FairPlaces(answer_places(archive.memory.size), "long answers"),
        scans=scans,
    )


async def _authenticator(
    settings: Settings,
    directory: TenantDirectory,
    archive: Archive,
    issuer: KeyIssuer,
    mode: OpenMode,
    sessions: PageSessions,
) -> Authenticator:
    return Authenticator(
        directory,
        archive.catalog,
        issuer,
        mode,
        sessions,
        clock=archive.shared_clock.now,
        secrets=settings.key_secrets,
        tokens=Tokens(settings, archive.shared_clock.now) if settings.jwt_issuer else None,
        local_key=await asyncio.to_thread(access.local_key, settings),
    )


@asynccontextmanager
async def _maintained(service: Service, *, is_settled: bool) -> AsyncIterator[None]:
    """Run the background job during the block. A short first round ends before the block begins."""
    maintenance = Maintenance(service, is_settled=is_settled)
    running = asyncio.create_task(maintenance.run(), name="maintenance")
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_ROUND_SECONDS):
                await maintenance.first_round_ended.wait()
        yield
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await maintenance.close()
