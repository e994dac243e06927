"""What an operator runs beside `serve`: sweep, rebuild, check, and keys. Data on standard output."""

from __future__ import annotations

import json
import math
import re
import time
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from overspill.wire import Scope

from overspill_service.app import directory_of, open_archive
from overspill_service.catalog import Examinable, KeyRecord
from overspill_service.catalog.checks import check_operations as check_catalog
from overspill_service.objects import Checkable
from overspill_service.rebuild import rebuild as rebuild_catalog
from overspill_service.removal import REMOVAL_SECONDS, finish_removals
from overspill_service.settings import SettingError, Settings
from overspill_service.sweep import sweep_all, sweep_orphans
from overspill_service.tenants import TENANT_PATTERN, hash_key, new_key

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Coroutine, Mapping

    from overspill_service.catalog import Catalog


DESCRIPTIONS: Final = {
    "serve": "Serve captures over HTTP.",
    "sweep": "Remove expired captures of all tenants, and orphaned objects, now.",
    "rebuild": "Put every capture of the object store into the catalog.",
    "check": "Check that the back ends are reachable and permit what the service needs.",
}


@runtime_checkable
class BucketMaker(Protocol):
    """A store that can make the place that it keeps objects in."""

    async def create_bucket(self) -> None: ...


async def sweep(settings: Settings, _options: Mapping[str, Any]) -> int:
    directory_of(settings)
    async with open_archive(settings) as archive:
        await finish_removals(archive, age=REMOVAL_SECONDS)
        swept = await sweep_all(archive, await archive.catalog.tenants())
        orphans = await sweep_orphans(archive, age=settings.orphan_age)
    removed = swept.removed
    _print({"captures": removed.captures, "stored_size": removed.stored_size, "orphaned_objects": orphans})
    return 1 if swept.failed else 0


async def rebuild(settings: Settings, _options: Mapping[str, Any]) -> int:
    async with open_archive(settings) as archive:
        _print({"captures": await rebuild_catalog(archive)})
    return 0


async def keys_create(settings: Settings, options: Mapping[str, Any]) -> int:
    """Create a key in the catalog and print it: the only time it is seen."""
    key = new_key()
    record = _record(settings, options, key)
    async with open_archive(settings) as archive:
        await archive.catalog.add_key(record)
    print(key)
    return 0


async def keys_list(settings: Settings, _options: Mapping[str, Any]) -> int:
    async with open_archive(settings) as archive:
        for record in sorted(
            await archive.catalog.keys(), key=lambda record: (record.tenant, record.created)
        ):
            _print(
                {
                    "tenant": record.tenant,
                    "name": record.name,
                    "scopes": record.scopes,
                    "created": record.created,
                    "expires": record.expires,
                    "hash": record.hash,
                }
            )
    return 0


async def keys_revoke(settings: Settings, options: Mapping[str, Any]) -> int:
    async with open_archive(settings) as archive:
        if await archive.catalog.revoke_key(options["hash"]):
            return 0
    raise SettingError(f"no key has the hash {options['hash']}; `overspill-service keys list` shows them")


async def keys_hash(settings: Settings, _options: Mapping[str, Any]) -> int:
    """Make a key that is stored nowhere, and print it with the hash for the tenants' file."""
    key = new_key()
    _print({"key": key, "hash": hash_key(key, settings.key_secret)})
    return 0


async def check(settings: Settings, options: Mapping[str, Any]) -> int:
    """Probe both back ends; a line a probe, and exit code 1 if one is bad. A warning is not."""
    directory_of(settings)
    async with open_archive(settings) as archive:
        results = await check_catalog(archive.catalog)
        warnings = await _warnings(archive.catalog) if results[0].ok else []
        if isinstance(archive.store, BucketMaker) and options["create_bucket"]:
            await archive.store.create_bucket()
        if isinstance(archive.store, Checkable):
            results += await archive.store.check()
    for result in results:
        print(
            f"{'ok  ' if result.ok else 'BAD '} {result.name}{': ' if result.detail else ''}{result.detail}"
        )
    for warning in warnings:
        print(f"warn catalog: {warning}")
    return 0 if all(result.ok for result in results) else 1


async def _warnings(catalog: Catalog) -> list[str]:
    """What is worth changing in a catalog that works. Raises `CatalogUnavailable`."""
    return await catalog.warnings() if isinstance(catalog, Examinable) else []


def _record(settings: Settings, options: Mapping[str, Any], key: str) -> KeyRecord:
    tenant, scopes, days = options["tenant"], options["scopes"], options["expires_days"]
    if not re.fullmatch(TENANT_PATTERN, tenant):
        raise SettingError(f"--tenant {tenant!r} must be 1 to 63 of a-z, 0-9 and '-', and not begin with '-'")
    try:
        wanted = [Scope(scope.strip()) for scope in scopes.split(",")]
    except ValueError as error:
        raise SettingError(f"--scopes {scopes}: scopes are {', '.join(Scope)}") from error
    if days is not None and not 0 < days < math.inf:
        raise SettingError(f"--expires-days {days} must be more than 0; leave it out for a key without end")
    now = time.time()
    return KeyRecord(
        hash=hash_key(key, settings.key_secret),
        tenant=tenant,
        scopes=wanted,
        name=options["name"],
        created=now,
        expires=None if days is None else now + days * 86_400,
    )


def add_key_arguments(commands: argparse._SubParsersAction[Any], flags: argparse.ArgumentParser) -> None:
    """The commands `keys create`, `keys list`, `keys revoke` and `keys hash`."""
    keys = commands.add_parser("keys", help="Create, list and revoke API keys.").add_subparsers(
        dest="command", required=True, metavar="COMMAND"
    )
    create = keys.add_parser("create", parents=[flags], help="create a key in the catalog and print it, once")
    create.set_defaults(command="keys create")
    create.add_argument("--tenant", required=True, help="the tenant that the key stands for")
    create.add_argument("--scopes", default="write,read,observe", help=f"comma-separated: {', '.join(Scope)}")
    create.add_argument("--name", default="", help="what the key is for")
    create.add_argument("--expires-days", type=float, help="days until it expires (default: never)")
    keys.add_parser("list", parents=[flags], help="list the keys in the catalog").set_defaults(
        command="keys list"
    )
    revoke = keys.add_parser("revoke", parents=[flags], help="revoke a key of the catalog")
    revoke.set_defaults(command="keys revoke")
    revoke.add_argument("hash", help="the key's hash, as `keys list` shows it")
    hashed = keys.add_parser("hash", parents=[flags], help="make a key for the tenants' file")
    hashed.set_defaults(command="keys hash")


def _print(value: object) -> None:
    print(json.dumps(value))


COMMANDS: Final[dict[str, Callable[[Settings, Mapping[str, Any]], Coroutine[Any, Any, int]]]] = {
    "sweep": sweep,
    "rebuild": rebuild,
    "check": check,
    "keys create": keys_create,
    "keys list": keys_list,
    "keys revoke": keys_revoke,
    "keys hash": keys_hash,
}
