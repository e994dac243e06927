"""The commands that copy captures: `backup`, `restore` and `copy`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overspill_service.archive.recovery.entries import captures_in, entry_of
from overspill_service.archive.recovery.generations import Generations
from overspill_service.archive.recovery.rebuild import rebuild
from overspill_service.archive.verification import is_intact
from overspill_service.back_ends import catalog_of, embedded_back_ends, open_archive, store_of
from overspill_service.commands.folder_backup import BackupRefused, make_backup, restore_backup
from overspill_service.commands.object_copy import copy_objects
from overspill_service.errors import StoreUnavailable
from overspill_service.settings.errors import SettingError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from overspill_service.archive.archive import Archive
    from overspill_service.settings.settings import Settings

DESCRIPTIONS = {
    "backup": "Back up the embedded store and catalog into a folder, while the service runs.",
    "restore": "Restore a backup where there is no store and no catalog, and check every capture.",
    "copy": "Copy all captures to another object store and compare every byte; API keys to another catalog.",
}
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
    """Copy the store, the keys, or both.

    The exit code is 1 if the target has captures that the source lacks.
    """
    report: dict[str, object] = {}
    if not options["to"] and not options["to_catalog"]:
        raise SettingError("name a target: --to URL of a store, --to-catalog URL of a catalog, or both")
    if options["to"]:
        report |= await _copy_store(settings, options["to"], deletes=options["delete"])
    if options["to_catalog"]:
        report["keys"] = await _copy_keys(settings, options["to_catalog"])
    _print(report)
    if report.get("extra"):
        raise StoreUnavailable(
            f"the target has {report['extra']} objects that the source does not have: they were removed "
            "there since, or never were there; copy again with --delete, or name an empty target"
        )
    return 0


async def _copy_store(settings: Settings, url: str, *, deletes: bool) -> dict[str, object]:
    source = store_of(settings, "store", settings.store)
    try:
        target = store_of(settings, "to", url)
        try:
            copied = await copy_objects(source, target, deletes=deletes)
        finally:
            await target.close()
    finally:
        await source.close()
    return {name: getattr(copied, name) for name in copied.__struct_fields__}


async def _copy_keys(settings: Settings, url: str) -> int:
    """Copy the API keys. Both services must hash them with the same secret. Return the number of keys."""
    source = catalog_of(settings, "catalog", settings.catalog)
    try:
        keys = await source.keys()
        target = catalog_of(settings, "to-catalog", url)
        try:
            for key in keys:
                await target.add_key(key)
        finally:
            await target.close()
    finally:
        await source.close()
    return len(keys)


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


def add_arguments(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the arguments of the three commands."""
    for name, text in (("backup", "an empty folder, or a new one"), ("restore", "the backup's folder")):
        commands.choices[name].add_argument("folder", help=text)
    copying = commands.choices["copy"]
    copying.add_argument("--to", metavar="URL", help="the object store to copy to; `--store` is the source")
    copying.add_argument(
        "--to-catalog", metavar="URL", help="the catalog that gets the API keys of `--catalog`"
    )
    copying.add_argument(
        "--delete", action="store_true", help="delete at the target what the source does not have"
    )


def _print(value: object) -> None:
    print(json.dumps(value))
