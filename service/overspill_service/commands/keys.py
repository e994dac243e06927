"""The commands `keys create`, `keys list`, `keys rotate`, `keys revoke` and `keys hash`."""

from __future__ import annotations

import json
import math
import re
import time
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace
from overspill.wire import Scope

from overspill_service.app import directory_of, open_archive
from overspill_service.catalog.records import KEY_ID_LENGTH, KeyRecord
from overspill_service.settings.settings import SettingError
from overspill_service.tenants import TENANT_PATTERN, hash_key, new_key

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Coroutine, Iterable, Mapping

    from overspill_service.settings.settings import Settings
    from overspill_service.tenants import FileKey

CATALOG: Final = "catalog"
FILE: Final = "file"
DAY: Final = 86_400


async def create(settings: Settings, options: Mapping[str, Any]) -> int:
    """Create a key in the catalog and print it. It is never shown again."""
    key = new_key()
    record = _record(settings, options, key)
    async with open_archive(settings) as archive:
        await archive.catalog.add_key(record)
    print(key)
    return 0


async def show(settings: Settings, _options: Mapping[str, Any]) -> int:
    """Print the keys of the catalog and of the tenants' file, one on each line.

    Instants in seconds since the epoch.
    """
    of_file = [_of_file(tenant, key) for tenant, key in directory_of(settings).file_keys()]
    async with open_archive(settings) as archive:
        of_catalog, uses = await archive.catalog.keys(), await archive.catalog.uses()
    report = [(record, CATALOG) for record in of_catalog] + [(record, FILE) for record in of_file]
    for record, where in sorted(report, key=lambda each: (each[0].tenant, each[0].created, each[0].hash)):
        facts = {
            "id": record.id,
            "tenant": record.tenant,
            "name": record.name,
            "scopes": record.scopes,
            "created": record.created or None,
            "expires": record.expires,
            "last_used": uses.get(record.hash),
            "in": where,
            "hash": record.hash,
        }
        print(json.dumps(facts))
    return 0


async def rotate(settings: Settings, options: Mapping[str, Any]) -> int:
    """Create a key with the rights of another one, and print it. The other key stays valid."""
    key, now = new_key(), time.time()
    async with open_archive(settings) as archive:
        old = _named(options["key"], await archive.catalog.keys())
        life = None if old.expires is None else old.expires - old.created
        days = _checked_days(options["expires_days"])
        life = life if days is None else days * DAY
        expires = None if life is None else now + life
        fresh = replace(old, hash=hash_key(key, settings.key_secret), created=now, expires=expires)
        await archive.catalog.add_key(fresh)
    print(key)
    return 0


async def revoke(settings: Settings, options: Mapping[str, Any]) -> int:
    async with open_archive(settings) as archive:
        record = _named(options["key"], await archive.catalog.keys())
        await archive.catalog.revoke_key(record.hash)
    return 0


async def show_hash(settings: Settings, _options: Mapping[str, Any]) -> int:
    """Make a key that is stored nowhere. Print it with its hash for the tenants' file."""
    key = new_key()
    hashed = hash_key(key, settings.key_secret)
    print(json.dumps({"key": key, "id": hashed[:KEY_ID_LENGTH], "hash": hashed}))
    return 0


def _named(name: str, keys: Iterable[KeyRecord]) -> KeyRecord:
    """Return the key of the catalog with this id or hash. Raises `SettingError`."""
    found = [record for record in keys if name in (record.id, record.hash)]
    if len(found) != 1:
        raise SettingError(
            f"{len(found)} keys of the catalog have the id or hash {name}; `overspill-service keys list` "
            "shows them. Keys of the tenants' file are changed in the file"
        )
    return found[0]


def _of_file(tenant: str, key: FileKey) -> KeyRecord:
    return KeyRecord(hash=key.hash, tenant=tenant, scopes=key.scopes, name=key.name, expires=key.expires)


def _record(settings: Settings, options: Mapping[str, Any], key: str) -> KeyRecord:
    tenant, scopes = options["tenant"], options["scopes"]
    if not re.fullmatch(TENANT_PATTERN, tenant):
        raise SettingError(f"--tenant {tenant!r} must be 1 to 63 of a-z, 0-9 and '-', and not begin with '-'")
    try:
        wanted = [Scope(scope.strip()) for scope in scopes.split(",")]
    except ValueError as error:
        raise SettingError(f"--scopes {scopes}: scopes are {', '.join(Scope)}") from error
    days, now = _checked_days(options["expires_days"]), time.time()
    return KeyRecord(
        hash=hash_key(key, settings.key_secret),
        tenant=tenant,
        scopes=wanted,
        name=options["name"],
        created=now,
        expires=None if days is None else now + days * DAY,
    )


def _checked_days(days: float | None) -> float | None:
    if days is not None and not 0 < days < math.inf:
        raise SettingError(f"--expires-days {days} must be more than 0; leave it out for a key without end")
    return days


def add_commands(commands: argparse._SubParsersAction[Any]) -> list[argparse.ArgumentParser]:
    """Add the `keys` commands and their arguments. Return their parsers."""
    group = commands.add_parser("keys", help="Create, list, rotate and revoke API keys.").add_subparsers(
        dest="command", required=True, metavar="COMMAND"
    )
    texts = {
        "create": "create a key in the catalog and print it, once",
        "list": "list the keys, with the time of their last use, to the minute",
        "rotate": "create a key with the tenant, name and scopes of another one, which stays valid",
        "revoke": "revoke a key of the catalog",
        "hash": "make a key for the tenants' file",
    }
    for name, text in texts.items():
        sentence = f"{text[0].upper()}{text[1:]}."
        group.add_parser(name, help=text, description=sentence).set_defaults(command=f"keys {name}")
    create = group.choices["create"]
    create.add_argument("--tenant", required=True, help="the tenant that the key stands for")
    create.add_argument(
        "--scopes",
        default="write,read,observe",
        help=f"what it may do, comma-separated: {', '.join(Scope)} (default: write,read,observe)",
    )
    create.add_argument("--name", default="", help="what the key is for")
    for each, usual in ((create, "never"), (group.choices["rotate"], "as long as the other one was to live")):
        text = f"days until the new key expires (default: {usual})"
        each.add_argument("--expires-days", metavar="DAYS", type=float, help=text)
    for each in (group.choices["rotate"], group.choices["revoke"]):
        each.add_argument("key", help="the key's id or hash, as `keys list` shows it")
    return list(group.choices.values())


COMMANDS: Final[dict[str, Callable[[Settings, Mapping[str, Any]], Coroutine[Any, Any, int]]]] = {
    "keys create": create,
    "keys list": show,
    "keys rotate": rotate,
    "keys revoke": revoke,
    "keys hash": show_hash,
}
