"""The commands that copy captures: `backup`, `restore` and `copy`.

Keys need no copy of their own: they lie beside the objects, and any catalog gets them from there.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from overspill_service.archive.recovery.entries import captures_in, entry_of
from overspill_service.archive.recovery.generations import Generations
from overspill_service.archive.recovery.rebuild import rebuild
from overspill_service.archive.verification import is_intact
from overspill_service.back_ends import embedded_back_ends, open_archive, store_of
from overspill_service.commands.folder_backup import BackupRefused, make_backup, restore_backup
from overspill_service.commands.object_copy import copy_objects
from overspill_service.errors import StoreUnavailable
from overspill_service.settings.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from overspill_service.archive.archive import Archive
    from overspill_service.settings.settings import Settings

HOLDER = "restore"


async def backup(settings: Settings, options: Mapping[str, Any]) -> int:
    store, catalog = embedded_back_ends(settings)
    try:
        manifest = await make_backup(store, catalog, _folder(options))
    except BackupRefused as error:
        raise SettingError(str(error)) from error
    finally:
        await store.close()
    _print({"objects": manifest.objects, "size": manifest.size})
    return 0


async def restore(settings: Settings, options: Mapping[str, Any]) -> int:
    """Restore a backup. The exit code is 1 if a capture of the backup is damaged."""
    store, catalog = embedded_back_ends(settings)
    try:
        manifest = await restore_backup(_folder(options), store, catalog)
    except BackupRefused as error:
        raise SettingError(str(error)) from error
    finally:
        await store.close()
    async with open_archive(settings) as archive:
        generations = Generations(archive, HOLDER)
        await generations.keep()
        captures = await rebuild(archive)
        damaged = await _damaged(archive)
        await generations.close()
    _print({"objects": manifest.objects, "captures": captures, "damaged": damaged})
    return 1 if damaged else 0


async def copy(settings: Settings, options: Mapping[str, Any]) -> int:
    """Copy the store. Raises `StoreUnavailable` if the target has objects that the source lacks."""
    source = store_of(settings, "store", settings.store)
    try:
        target = store_of(settings, "to", options["to"])
        try:
            copied = await copy_objects(source, target, deletes=options["delete"])
        finally:
            await target.close()
    finally:
        await source.close()
    _print(to_builtins(copied))
    if copied.extra:
        raise StoreUnavailable(
            f"the target has {copied.extra} objects that the source does not have: they were removed "
            "there since, or never were there; copy again with --delete, or name an empty target"
        )
    return 0


async def _damaged(archive: Archive) -> int:
    """Read every capture to its end. Return how many are damaged."""
    damaged = 0
    async for found in captures_in(archive):
        if found.uploads:
            entry = await entry_of(archive, found)
            damaged += entry is None or not await is_intact(archive, entry)
    return damaged


def _folder(options: Mapping[str, Any]) -> Path:
    return Path(options["folder"]).absolute()


def _print(value: object) -> None:
    print(json.dumps(value))
