"""The composition root: turn settings into a wired application. The only module that names adapters."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
from aiohttp import web

from overspill_service.archive.archive import Archive
from overspill_service.archive.shared_clock import SharedClock
from overspill_service.catalog.sqlite.catalog import SqliteCatalog
from overspill_service.catalog.sqlite.clock import steady_seconds
from overspill_service.catalog.urls import open_catalog, sqlite_file
from overspill_service.errors.checks import folder_risk
from overspill_service.errors.system import failure
from overspill_service.maintenance import Maintenance
from overspill_service.objects.file import FileStore
from overspill_service.objects.urls import open_store, store_folder
from overspill_service.resources.cpu import CpuThreads
from overspill_service.resources.memory_budget import MemoryBudget
from overspill_service.resources.memory_limit import default_budget
from overspill_service.settings.settings import SettingError, Settings
from overspill_service.telemetry import tracing
from overspill_service.telemetry.metered import MeteredCatalog, MeteredStore
from overspill_service.telemetry.metrics import Metrics
from overspill_service.telemetry.scrapes import Scrapes
from overspill_service.tenants import Limits, TenantDirectory, read_tenants
from overspill_service.web.authentication import Authenticator
from overspill_service.web.middleware import middleware, set_headers
from overspill_service.web.registry import add_routes, with_private_metrics
from overspill_service.web.routes import ROUTES
from overspill_service.web.service import SERVICE, Service

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from overspill_service.catalog import Catalog

T = TypeVar("T")

RELOADED: Final = (
    *("tenants", "log_level", "log_format"),
    *("max_capture_size", "max_stored_size", "max_captures", "default_ttl", "max_ttl"),
)
"""Settings that take effect without a restart."""
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
    store = resolve_url("store", settings.store, lambda url: open_store(url, data_dir=settings.data))
    try:
        catalog = resolve_url(
            "catalog", settings.catalog, lambda url: open_catalog(url, data_dir=settings.data, clock=clock)
        )
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


def warn_of_folders(settings: Settings) -> None:
    """Log a warning for each folder that others may write to: they could replace all captures."""
    for folder in sorted({settings.data, *folders(settings).values()}):
        if folder.is_dir() and (sentence := folder_risk(folder)):
            log.warning(sentence)


def embedded_back_ends(settings: Settings) -> tuple[FileStore, Path]:
    """Return the folder of the store and the file of the catalog.

    Raises `SettingError` for other back ends.
    """
    store = resolve_url("store", settings.store, lambda url: open_store(url, data_dir=settings.data))
    catalog = resolve_url("catalog", settings.catalog, lambda url: sqlite_file(url, data_dir=settings.data))
    if not isinstance(store, FileStore) or catalog is None:
        raise SettingError(
            "this is for a store in a folder and a catalog in a SQLite file; for S3 and Redis, see Back up "
            "in service/deploy/README.md"
        )
    return store, catalog


def resolve_url(setting: str, url: str, opener: Callable[[str], T]) -> T:
    """Return what `opener` makes of the URL.

    Raises `SettingError` without the URL, which may hold a password.
    """
    try:
        return opener(url)
    except ValueError as error:
        raise SettingError(f"{setting}: {error}") from error


def directory_of(settings: Settings) -> TenantDirectory:
    """Return the tenants of the settings. Raises `SettingError`."""
    defaults = Limits(
        max_capture_size=settings.max_capture_size,
        max_stored_size=settings.max_stored_size,
        max_captures=settings.max_captures,
        default_ttl=settings.default_ttl,
        max_ttl=settings.max_ttl,
    )
    try:
        return TenantDirectory(defaults, read_tenants(settings.tenants) if settings.tenants else ())
    except ValueError as error:
        raise SettingError(f"tenants: {error}") from error


async def may_serve_anonymously(settings: Settings, directory: TenantDirectory, catalog: Catalog) -> bool:
    """Return whether to serve without keys. Raises `SettingError` if that would expose the service."""
    if directory.has_keys or await catalog.keys():
        if not settings.is_loopback and not settings.key_secret:
            raise SettingError(
                f"key_secret is empty, and listen={settings.listen} is reachable from elsewhere: set "
                "OVERSPILL_KEY_SECRET to a random word (openssl rand -hex 32) and make new keys"
            )
        return False
    if settings.tenants is None and (settings.is_loopback or settings.anonymous):
        return True
    if settings.tenants is not None:
        raise SettingError(
            f"tenants: {settings.tenants} has no keys, and the catalog has none: nobody could use the "
            "service; make one with `overspill-service keys hash` or `overspill-service keys create`"
        )
    raise SettingError(
        f"listen={settings.listen} is reachable from elsewhere and there are no keys: create one with "
        "`overspill-service keys create`, name a file with `--tenants`, or say `--anonymous true`"
    )


def make_app(settings: Settings, *, clock: Callable[[], float] = time.time) -> web.Application:
    """Return the application. It opens the back ends when it starts, and closes them when it stops.

    `clock` is this machine's, in seconds since the epoch.
    """
    app = web.Application(middlewares=[middleware], client_max_size=0)
    app.on_response_prepare.append(set_headers)
    app.cleanup_ctx.append(lambda app: _serve(app, settings, clock))
    add_routes(app, map(with_private_metrics, ROUTES) if settings.private_metrics else ROUTES)
    return app


async def reload(service: Service, settings: Settings) -> list[str]:
    """Apply the tenants, their limits and the log's settings. Return the names of other changed settings.

    Those need a restart. If this raises `SettingError`, nothing has changed.
    """
    directory = await asyncio.to_thread(directory_of, settings)
    allows_anonymous = await may_serve_anonymously(settings, directory, service.archive.catalog)
    service.directory = directory
    service.authenticator.replace_directory(directory, allows_anonymous=allows_anonymous)
    service.settings = _with_reloaded(service.settings, settings)
    names = Settings.__struct_fields__
    return [name for name in names if getattr(settings, name) != getattr(service.settings, name)]


def _with_reloaded(former: Settings, latter: Settings) -> Settings:
    return msgspec.structs.replace(former, **{name: getattr(latter, name) for name in RELOADED})


async def _serve(app: web.Application, settings: Settings, clock: Callable[[], float]) -> AsyncIterator[None]:
    metrics = Metrics()
    directory = directory_of(settings)
    async with open_archive(settings, metrics, clock=clock) as archive:
        authenticator = Authenticator(
            directory,
            archive.catalog,
            clock=archive.shared_clock.now,
            secrets=settings.key_secrets,
            allows_anonymous=await may_serve_anonymously(settings, directory, archive.catalog),
        )
        app[SERVICE] = service = Service(
            archive=archive,
            directory=directory,
            authenticator=authenticator,
            metrics=metrics,
            scrapes=Scrapes(metrics.collect),
            spans=tracing.spans(),
            settings=settings,
            upload_slots=asyncio.Semaphore(settings.max_uploads),
        )
        maintenance = Maintenance(service)
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
