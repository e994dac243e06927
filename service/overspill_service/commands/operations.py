"""The operator's commands sweep, rebuild, erase, trust-clock and check.

They print JSON to standard output.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from msgspec import to_builtins
from msgspec.structs import replace

from overspill_service.access import directory_of
from overspill_service.archive import erasure
from overspill_service.archive.captures import Captures
from overspill_service.archive.recovery.rebuild import YOUNG_SECONDS
from overspill_service.archive.recovery.rebuild import rebuild as rebuild_catalog
from overspill_service.archive.removal import REMOVAL_SECONDS, finish_removals
from overspill_service.archive.sweep import sweep_all, sweep_orphans
from overspill_service.back_ends import open_archive
from overspill_service.catalog import HasWarnings
from overspill_service.catalog.checks import check_operations as check_catalog
from overspill_service.catalog.records import Query
from overspill_service.commands import keys
from overspill_service.commands.backups import backup, copy, restore
from overspill_service.errors import CatalogIncomplete, StoreUnavailable
from overspill_service.objects import Checkable, ListsForeignNames
from overspill_service.settings.errors import SettingError
from overspill_service.telemetry.logs import bind_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from overspill_service.catalog import Catalog
    from overspill_service.objects import ObjectStore
    from overspill_service.settings.settings import Settings


@runtime_checkable
class HasMachineClock(Protocol):
    """A catalog whose clock follows the machine's, except for jumps."""

    async def trust_clock(self) -> float: ...


@runtime_checkable
class CreatesBucket(Protocol):
    """A store that can create its bucket."""

    async def create_bucket(self) -> None: ...


async def sweep(settings: Settings, _options: Mapping[str, Any]) -> int:
    directory_of(settings)
    async with open_archive(settings) as archive:
        await finish_removals(archive, age=REMOVAL_SECONDS)
        swept = await sweep_all(archive, await archive.catalog.tenants())
        orphans = await sweep_orphans(archive, age=max(settings.orphan_age, YOUNG_SECONDS))
    removed = swept.removed
    report = {"captures": removed.captures, "stored_size": removed.stored_size}
    _print(report | {"orphaned_objects": orphans.deleted, "orphan_bytes_left": orphans.size})
    return 1 if swept.failed else 0


async def trust_clock(settings: Settings, _options: Mapping[str, Any]) -> int:
    """Accept the machine's clock in a catalog file. Other catalogs have clocks of their own."""
    async with open_archive(settings) as archive:
        if not isinstance(archive.catalog, HasMachineClock):
            raise SettingError("this catalog has a clock of its own: set that, or restart the replicas")
        _print({"moved": round(await archive.catalog.trust_clock(), 3)})
    return 0


async def rebuild(settings: Settings, _options: Mapping[str, Any]) -> int:
    """Rebuild the catalog. Fails before any change if the store holds names that are not the service's."""
    async with open_archive(settings) as archive:
        await _require_no_foreign(archive.store)
        _print({"captures": await rebuild_catalog(archive)})
    return 0


async def _require_no_foreign(store: ObjectStore) -> None:
    foreign = [name async for name in store.foreign()] if isinstance(store, ListsForeignNames) else []
    if foreign:
        raise StoreUnavailable(
            f"the store has {len(foreign)} names that are not the service's, such as {foreign[0]!r}. "
            "Copy stores with `overspill-service copy`, and move these objects away"
        )


async def erase(settings: Settings, options: Mapping[str, Any]) -> int:
    """Remove a tenant's API keys, then its captures. Print the receipt. Exit code 1: some are on hold."""
    tenant = directory_of(settings).tenant(keys.tenant_of(options))
    revoked = 0
    async with open_archive(settings) as archive:
        if not await archive.catalog.is_complete():
            raise CatalogIncomplete("the catalog may lack captures of the tenant: run `rebuild` first")
        await archive.keyring.restore()
        for key in await archive.keyring.keys():
            revoked += key.tenant == tenant.name and await archive.keyring.revoke(key.hash)
        removed = await erasure.delete_all(Captures(archive, tenant), Query())
        orphan_age = settings.orphan_age
        receipt = await erasure.receipt(archive, removed, orphan_age=orphan_age, is_whole=True)
    bind_fields(
        api_keys=revoked, captures=removed.captures, stored_size=removed.stored_size, held=removed.held
    )
    _print({"keys": revoked, **to_builtins(receipt)})
    return 1 if removed.held else 0


async def check(settings: Settings, options: Mapping[str, Any]) -> int:
    """Probe both back ends and print one line for each probe. The exit code is 1 if a probe failed."""
    directory_of(settings)
    async with open_archive(settings) as archive:
        results = await check_catalog(archive.catalog)
        warnings = await _warnings(archive.catalog) if results[0].ok else []
        if isinstance(archive.store, CreatesBucket) and options["create_bucket"]:
            await archive.store.create_bucket()
        if isinstance(archive.store, Checkable):
            results += [replace(each, name=f"store: {each.name}") for each in await archive.store.check()]
    for result in results:
        print(
            f"{'ok  ' if result.ok else 'BAD '} {result.name}{': ' if result.detail else ''}{result.detail}"
        )
    for warning in warnings:
        print(f"warn catalog: {warning}")
    return 0 if all(result.ok for result in results) else 1


async def _warnings(catalog: Catalog) -> list[str]:
    """Return a sentence for each setting of the catalog that should change. Raises `CatalogUnavailable`."""
    return await catalog.warnings() if isinstance(catalog, HasWarnings) else []


def _print(value: object) -> None:
    print(json.dumps(value))


COMMANDS: Final[dict[str, Callable[[Settings, Mapping[str, Any]], Coroutine[Any, Any, int]]]] = {
    "sweep": sweep,
    "trust-clock": trust_clock,
    "rebuild": rebuild,
    "backup": backup,
    "restore": restore,
    "copy": copy,
    "erase": erase,
    "check": check,
    **keys.COMMANDS,
}
