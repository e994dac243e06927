"""The back ends that the settings name, opened, and their folders. The only module that names adapters."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from overspill_service.archive.archive import Archive
from overspill_service.archive.shared_clock import SharedClock
from overspill_service.audit.log import AuditLog
from overspill_service.audit.outputs import open_output
from overspill_service.catalog.sqlite.catalog import SqliteCatalog
from overspill_service.catalog.sqlite.clock import steady_seconds
from overspill_service.catalog.urls import open_catalog, sqlite_file
from overspill_service.errors import StoreUnavailable
from overspill_service.errors.checks import folder_risk, foreign_owner, foreign_parent
from overspill_service.errors.system import failure
from overspill_service.objects.file import FileStore
from overspill_service.objects.urls import open_store, store_folder
from overspill_service.resources.cpu import CpuThreads
from overspill_service.resources.memory_budget import MemoryBudget
from overspill_service.resources.memory_limit import default_budget
from overspill_service.settings.errors import SettingError
from overspill_service.telemetry.metered import MeteredCatalog, MeteredStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from overspill_service.catalog import Catalog
    from overspill_service.objects import ObjectStore
    from overspill_service.resources.tenant_mix import TenantMix
    from overspill_service.settings.settings import Settings
    from overspill_service.telemetry.metrics import Metrics

T = TypeVar("T")

log = logging.getLogger("overspill_service.start")


@asynccontextmanager
async def open_archive(
    settings: Settings,
    metrics: Metrics | None = None,
    *,
    mix: TenantMix | None = None,
    clock: Callable[[], float] = time.time,
    steady: Callable[[], float] = steady_seconds,
) -> AsyncIterator[Archive]:
    """Open the back ends and the audit log that the settings name, and close them at the end.

    `mix` tells who asks. `clock` is this machine's, which may be set; `steady` never jumps.

    Raises `SettingError` if one of them cannot be used.
    """
    cpu = CpuThreads(mix=mix)
    store = store_of(settings, "store", settings.store)
    try:
        with suppress(StoreUnavailable):  # whoever uses the folder says what is wrong with it
            await store.make_room()
        catalog = catalog_of(settings, "catalog", settings.catalog, clock)
        try:
            notices_jumps = not isinstance(catalog, SqliteCatalog)
            if metrics:
                store = MeteredStore(store, "store", metrics)
                catalog = MeteredCatalog(catalog, "catalog", metrics)
            shared_clock = SharedClock(clock, catalog, store, steady, notices_jumps=notices_jumps)
            await shared_clock.measure()
            memory = MemoryBudget(settings.memory or default_budget(settings.workers))
            archive = Archive(store, catalog, cpu, clock=shared_clock, level=settings.level, memory=memory)
            archive.folders = folders(settings)
            archive.audit = await open_audit_log(settings)
            try:
                yield archive
            finally:
                await archive.audit.close()
        finally:
            await catalog.close()
    finally:
        await store.close()
        cpu.close()


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
        service_error = failure(error, f"the folder {folder}", folder)
        raise SettingError(
            f"store: {service_error or f'the folder {folder} cannot be used: {error.strerror}'}"
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
