"""The commands `keys create`, `keys list`, `keys rotate`, `keys revoke`, `keys hash`, and `access`."""

from __future__ import annotations

import json
import math
import re
import sys
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from msgspec import to_builtins
from overspill.wire import Scope

from overspill_service.access import directory_of
from overspill_service.archive.key_issuing import DAY, DEFAULT_LIFE, DEFAULT_OVERLAP, KeyIssuer
from overspill_service.arguments import NEVER
from overspill_service.back_ends import open_archive
from overspill_service.catalog.key_records import AccessMode, KeyRecord
from overspill_service.catalog.records import instant
from overspill_service.settings.errors import SettingError
from overspill_service.settings.settings import OWN_CATALOG
from overspill_service.telemetry.logs import bind_fields
from overspill_service.tenants.directory import KEY_ID_LENGTH, TENANT_PATTERN, Expiry
from overspill_service.tenants.keys import hash_key, new_key

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping

    from overspill_service.settings.settings import Settings
    from overspill_service.tenants.directory import FileKey

CATALOG: Final = "catalog"
FILE: Final = "file"


def tenant_of(options: Mapping[str, Any]) -> str:
    """Return the tenant that a command names. Raises `SettingError` if no tenant can have the name."""
    tenant: str = options["tenant"]
    if not re.fullmatch(TENANT_PATTERN, tenant):
        raise SettingError(f"--tenant {tenant!r} must be 1 to 63 of a-z, 0-9 and '-', and not begin with '-'")
    return tenant


@asynccontextmanager
async def _issuer(settings: Settings) -> AsyncIterator[KeyIssuer]:
    async with open_archive(settings) as archive:
        await archive.keyring.restore()  # the catalog may be an older copy, and no service runs to notice it
        yield KeyIssuer(archive.keyring, settings.key_secret)


async def create(settings: Settings, options: Mapping[str, Any]) -> int:
    """Create a key and print it. It is never shown again."""
    tenant = tenant_of(options)
    session, prefix = options["session"], options["session_prefix"]
    async with _issuer(settings) as issuer:
        issued = await issuer.issue(
            tenant,
            _scopes(options["scopes"]),
            now=time.time(),
            name=options["name"],
            life=_seconds(options, "expires_days", DEFAULT_LIFE),
            session=session if prefix is None else prefix,
            is_prefix=prefix is not None,
        )
    bind_fields(api_key=issued.record.id)
    print(issued.key)
    return 0


async def show(settings: Settings, _options: Mapping[str, Any]) -> int:
    """Print the keys of the catalog and of the tenants' file, one on each line."""
    of_file = [_of_file(tenant, key) for tenant, key in directory_of(settings).file_keys()]
    async with open_archive(settings) as archive:
        await archive.keyring.restore()
        of_catalog, uses = await archive.keyring.keys(), await archive.catalog.uses()
    report = [(record, CATALOG) for record in of_catalog] + [(record, FILE) for record in of_file]
    for record, where in sorted(report, key=lambda each: (each[0].tenant, each[0].created, each[0].hash)):
        print(json.dumps(_facts(record, uses.get(record.hash), where)))
    if not report and settings.catalog == OWN_CATALOG:
        print(
            f"no keys in the catalog of this machine, in {settings.data}; --catalog or OVERSPILL_CATALOG "
            "names another one",
            file=sys.stderr,
        )
    return 0


def _facts(record: KeyRecord, last_used: float | None, where: str) -> dict[str, object]:
    """Return what a line of the list tells of a key."""
    return {
        "id": record.id,
        "tenant": record.tenant,
        "name": record.name,
        "scopes": record.scopes,
        "session": record.session,
        "is_prefix": record.is_prefix,
        "created": _instant(record.created or None),
        "expires": _instant(record.expires),
        "expires_soon": record.expires is not None
        and Expiry(record.expires, record.created).is_near(time.time()),
        "last_used": _instant(last_used),
        "in": where,
        "secret": record.secret,
        "hash": record.hash,
    }


def _instant(seconds: float | None) -> object:
    """Return an instant as the wire has it."""
    return None if seconds is None else to_builtins(instant(seconds))


async def rotate(settings: Settings, options: Mapping[str, Any]) -> int:
    """Create a key with the rights of another one, and print it. The other key works for some days more."""
    overlap = _seconds(options, "overlap_days", DEFAULT_OVERLAP)
    async with _issuer(settings) as issuer:
        old = (await issuer.named(options["key"]))[-1]
        usual = None if old.expires is None else old.expires - old.created
        life = _seconds(options, "expires_days", usual)
        issued = await issuer.rotate(old, now=time.time(), life=life, overlap=overlap)
    bind_fields(api_key=old.id, new_api_key=issued.record.id)
    print(issued.key)
    return 0


async def revoke(settings: Settings, options: Mapping[str, Any]) -> int:
    """Remove a key. Every replica refuses it within 15 seconds."""
    async with _issuer(settings) as issuer:
        await issuer.revoke(options["key"])
    return 0


async def show_hash(settings: Settings, _options: Mapping[str, Any]) -> int:
    """Make a key that is stored nowhere. Print it with its hash for the tenants' file."""
    key = new_key()
    hashed = hash_key(key, settings.key_secret)
    print(json.dumps({"key": key, "id": hashed[:KEY_ID_LENGTH], "hash": hashed}))
    return 0


async def access(settings: Settings, options: Mapping[str, Any]) -> int:
    """Choose whether requests need a key, if a choice is given. Print what holds from now on."""
    async with open_archive(settings) as archive:
        if options["mode"] is not None:
            await archive.keyring.choose(AccessMode(options["mode"]))
        mode = await archive.keyring.mode()
    is_open = mode is not None and mode.is_open
    print(json.dumps({"access": "open" if is_open else "closed", "until_key": mode is AccessMode.UNTIL_KEY}))
    return 0


def _of_file(tenant: str, key: FileKey) -> KeyRecord:
    return KeyRecord(
        hash=key.hash,
        tenant=tenant,
        scopes=key.scopes,
        name=key.name,
        expires=key.expires,
        session=key.session,
        is_prefix=key.is_prefix,
    )


def _scopes(words: str) -> list[Scope]:
    try:
        return [Scope(scope.strip()) for scope in words.split(",")]
    except ValueError as error:
        raise SettingError(f"--scopes {words}: scopes are {', '.join(Scope)}") from error


def _seconds(options: Mapping[str, Any], option: str, default: float | None) -> float | None:
    """Return the days of an option in seconds, None for `never`. Raises `SettingError`."""
    text = options[option]
    if text is None or text == NEVER:
        return default if text is None else None
    try:
        days = float(text)
    except ValueError:
        days = math.nan
    if not 0 < days < math.inf:
        flag = "--" + option.replace("_", "-")
        raise SettingError(f"{flag} {text}: give a number of days above 0, or `{NEVER}`")
    return days * DAY


COMMANDS: Final[dict[str, Callable[[Settings, Mapping[str, Any]], Coroutine[Any, Any, int]]]] = {
    "access": access,
    "keys create": create,
    "keys list": show,
    "keys rotate": rotate,
    "keys revoke": revoke,
    "keys hash": show_hash,
}
