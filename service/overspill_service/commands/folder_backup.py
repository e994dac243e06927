"""Back up the embedded back ends into a folder while the service runs, and restore the backup.

    {folder}/catalog.sqlite     SQLite's own backup of the catalog
    {folder}/objects/…          the objects, as the store has them
    {folder}/objects.list       size and key of each object, one on each line
    {folder}/backup.json        written last: a folder without it is not a whole backup

The catalog is copied first. A capture that is stored later is not in the copied catalog; the restore finds it
by its objects. A capture that is removed meanwhile is dropped by the restore. Objects never change, so on one
file system a hard link is as good as a copy.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from overspill_service.errors import StoreUnavailable
from overspill_service.objects.file import FileStore
from overspill_service.resources.private_files import make_private_folder
from overspill_service.store_format.object_keys import KEYS, REMOVALS, ROOT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence
    from pathlib import Path

VERSION: Final = 1
CATALOG: Final = "catalog.sqlite"
OBJECTS: Final = "objects"
LIST: Final = "objects.list"
MANIFEST: Final = "backup.json"
PAGE: Final = 1000
"""Objects that one call in a thread links."""
_NOT_OPENED: Final = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY})
_NO_LINK: Final = frozenset({errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP})


class BackupRefused(Exception):
    """The folder would be overwritten, or holds no whole backup."""


class Manifest(Struct, frozen=True, kw_only=True):
    """The contents of a backup. `created` in seconds since the epoch, `size` in bytes."""

    version: int = VERSION
    created: float
    objects: int
    size: int


async def make_backup(store: FileStore, catalog: Path, folder: Path) -> Manifest:
    """Back up into a folder that is empty or does not exist. Raises `BackupRefused`, `OSError`."""
    await asyncio.to_thread(_make_empty, folder)
    created = time.time()
    await asyncio.to_thread(_copy_catalog, catalog, folder / CATALOG)
    target = FileStore(folder / OBJECTS)
    objects = size = 0
    try:
        with (folder / LIST).open("x", encoding="ascii") as listing:
            async for page in _pages(store):
                lines = await asyncio.to_thread(_transfer, store, target, page)
                listing.writelines(f"{size_of} {key}\n" for size_of, key in lines)
                objects, size = objects + len(lines), size + sum(size_of for size_of, _ in lines)
    finally:
        await target.close()
    manifest = Manifest(created=created, objects=objects, size=size)
    await asyncio.to_thread(_write, folder / MANIFEST, msgspec.json.encode(manifest))
    return manifest


async def restore_backup(folder: Path, store: FileStore, catalog: Path) -> Manifest:
    """Restore a backup where there is no store and no catalog. Raises `BackupRefused`, `StoreUnavailable`."""
    manifest = read_manifest(folder)
    await asyncio.to_thread(_require_no_data, store.folder, catalog)
    source = FileStore(folder / OBJECTS)
    try:
        with (folder / LIST).open(encoding="ascii") as listing:
            for page in _pages_of_list(listing):
                restored = await asyncio.to_thread(_transfer, source, store, page)
                if restored != page:
                    lost = sorted(set(page) - set(restored))
                    raise StoreUnavailable(
                        f"the backup lacks {len(lost)} objects, or has others in their place: {lost[0][1]}"
                    )
    finally:
        await source.close()
    await asyncio.to_thread(_copy_catalog, folder / CATALOG, catalog)
    return manifest


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a backup. Raises `BackupRefused` if the backup is not whole."""
    try:
        manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError) as error:
        raise BackupRefused(f"{folder} holds no whole backup: {MANIFEST} cannot be read ({error})") from error
    if manifest.version != VERSION:
        raise BackupRefused(f"{folder} is a backup of version {manifest.version}; this one reads {VERSION}")
    return manifest


def _make_empty(folder: Path) -> None:
    _require_empty(folder)
    make_private_folder(folder)


def _require_no_data(store: Path, catalog: Path) -> None:
    _require_empty(store)
    if catalog.exists():
        raise BackupRefused(f"{catalog} exists: a restore overwrites nothing; move it away first")


def _require_empty(folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()):
        raise BackupRefused(
            f"{folder} is not empty: nothing is overwritten; name another folder, or move it away"
        )


async def _pages(store: FileStore) -> AsyncIterator[Sequence[tuple[int, str]]]:
    """Yield the sizes and keys of all objects.

    Records of removals come first: their objects may go meanwhile.
    """
    for prefix in (REMOVALS, ROOT, KEYS):
        page: list[tuple[int, str]] = []
        async for stored in store.list(prefix):
            page.append((stored.size, stored.key))
            if len(page) == PAGE:
                yield page
                page = []
        yield page


def _pages_of_list(lines: Iterator[str]) -> Iterator[list[tuple[int, str]]]:
    page: list[tuple[int, str]] = []
    for line in lines:
        size, _, key = line.rstrip("\n").partition(" ")
        page.append((int(size), key))
        if len(page) == PAGE:
            yield page
            page = []
    yield page


def _transfer(source: FileStore, target: FileStore, page: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    """Link or copy objects. Return those that existed in the listed size."""
    transferred = []
    for size, key in page:
        source_path, target_path = source.path_of(key), target.path_of(key)
        make_private_folder(target_path.parent)
        try:
            _link(source_path, target_path)
        except FileNotFoundError:  # removed meanwhile
            continue
        if target_path.stat().st_size == size:
            transferred.append((size, key))
    return transferred


def _link(source_path: Path, target_path: Path) -> None:
    try:
        os.link(source_path, target_path)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        shutil.copy2(source_path, target_path)
        with target_path.open("rb") as file:
            os.fsync(file.fileno())


def _copy_catalog(source_path: Path, target_path: Path) -> None:
    """Copy the database as it is at one moment, while others write to it. Raises `BackupRefused`."""
    if not source_path.is_file():
        raise BackupRefused(
            f"there is no catalog at {source_path}: name the service's own --data or --catalog"
        )
    make_private_folder(target_path.parent)
    os.close(os.open(target_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        _copy_database(source_path, target_path)
        with closing(sqlite3.connect(target_path)) as target:
            target.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.Error as error:
        raise BackupRefused(
            f"the catalog {source_path} cannot be copied: {error}; if it is damaged, move it away and start "
            "the service, which makes a new one from the objects"
        ) from error


def _copy_database(source_path: Path, target_path: Path) -> None:
    try:
        with closing(sqlite3.connect(source_path)) as source, closing(sqlite3.connect(target_path)) as target:
            source.backup(target)
    except sqlite3.OperationalError as error:
        is_read_only = os.statvfs(source_path.parent).f_flag & os.ST_RDONLY
        if not is_read_only or error.sqlite_errorcode & 0xFF not in _NOT_OPENED:
            raise
        _copy_files(source_path, target_path)


def _copy_files(source_path: Path, target_path: Path) -> None:
    """Copy the file and its log. Nobody may have them open.

    On a read-only disk SQLite opens them if somebody has: maybe a service for which the disk can be written.
    """
    for suffix in ("", "-wal"):
        file = source_path.with_name(source_path.name + suffix)
        if file.exists():
            shutil.copyfile(file, target_path.with_name(target_path.name + suffix))


def _write(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
