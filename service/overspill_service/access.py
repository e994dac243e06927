"""Access to the service: the tenants in the settings, and whether requests need a key."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

import msgspec
from overspill.wire import UnsafeKeyFile, local_key_file

from overspill_service.catalog.key_records import AccessMode
from overspill_service.errors import StoreUnavailable
from overspill_service.settings.errors import SettingError
from overspill_service.settings.settings import Settings
from overspill_service.tenants.directory import TOTALS, Limits, TenantDirectory, read_tenants
from overspill_service.tenants.local_key import NoLocalKey, ensure_local_key

if TYPE_CHECKING:
    from pathlib import Path

    from overspill_service.archive.archive import Archive
    from overspill_service.web.service import Service

DEFAULTS: Final = {field.name: field.default for field in msgspec.structs.fields(Settings)}
DEFAULT_LIMITS: Final = tuple(name for name in Limits.__struct_fields__ if name in DEFAULTS)
"""The settings that are default limits of tenants: they have the names of the limits."""
RELOADED: Final = ("tenants", "log_level", "log_format", *DEFAULT_LIMITS)
"""Settings that take effect without a restart."""
_SET_VARIABLE: Final = "set OVERSPILL_KEY_SECRET to a random word (openssl rand -hex 32)"
log = logging.getLogger(__name__)


def directory_of(settings: Settings) -> TenantDirectory:
    """Return the tenants of the settings. Raises `SettingError`."""
    defaults = Limits(
        are_exact=any(getattr(settings, name) not in (0, DEFAULTS[name]) for name in TOTALS),
        **{name: getattr(settings, name) for name in DEFAULT_LIMITS},
    )
    try:
        return TenantDirectory(defaults, read_tenants(settings.tenants) if settings.tenants else ())
    except ValueError as error:
        raise SettingError(f"tenants: {error}") from error


async def reload(service: Service, settings: Settings) -> list[str]:
    """Apply the tenants, their limits and the log's settings. Return the names of other changed settings.

    Those need a restart. If this raises `SettingError`, nothing has changed.
    """
    await replace_tenants(service, settings)
    service.settings = _with_reloaded(service.settings, settings)
    names = Settings.__struct_fields__
    return [name for name in names if getattr(settings, name) != getattr(service.settings, name)]


def _with_reloaded(former: Settings, latter: Settings) -> Settings:
    return msgspec.structs.replace(former, **{name: getattr(latter, name) for name in RELOADED})


async def replace_tenants(service: Service, settings: Settings) -> None:
    """Use the tenants of these settings from now on.

    Raises `SettingError`, `StoreUnavailable`, and then nothing has changed.
    """
    directory = await asyncio.to_thread(directory_of, settings)
    await settle(settings, directory, service.archive, is_running=True)
    service.directory = directory
    service.authenticator.replace_directory(directory)


def stamp_of(path: Path | None) -> tuple[int, ...]:
    """Return what changes whenever the file does. Empty without a file."""
    try:
        status = path.stat() if path is not None else None
    except OSError:
        return (0,)
    return () if status is None else (status.st_ino, status.st_mtime_ns, status.st_size)


async def try_to_settle(settings: Settings, directory: TenantDirectory, archive: Archive) -> bool:
    """Do what `settle` does. Return False if the object store does not answer: then try again later."""
    try:
        await settle(settings, directory, archive)
    except StoreUnavailable as error:
        log.warning("whether requests need a key is settled later: %s", error)
        return False
    return True


async def settle(
    settings: Settings, directory: TenantDirectory, archive: Archive, *, is_running: bool = False
) -> None:
    """Remember the choice that the settings make, if they may make it.

    Raises `SettingError` if the service would be open to everybody who never asked for it, or to nobody. One
    that runs may become that, because its last key was removed.
    """
    keyring = archive.keyring
    await keyring.restore()
    mode = await keyring.mode()
    has_keys = bool(settings.jwt_issuer or directory.has_keys or await keyring.keys())
    new_mode = _mode_to_choose(mode, anonymous=settings.anonymous, has_keys=has_keys)
    if new_mode is not None and new_mode is not mode:
        await keyring.choose(new_mode)
        mode = await keyring.mode()  # a first key may have come meanwhile
    if settings.anonymous and mode is AccessMode.CLOSED:
        log.warning(
            "anonymous=true is ignored: this service has had keys, and requests need one; "
            "`overspill-service access open` lets everybody in"
        )
    is_open = mode is not None and mode.is_open
    if not is_running and not has_keys and not is_open:
        _require_use(settings)
    _require_safe(settings, is_open=is_open, has_keys=has_keys)


def _mode_to_choose(mode: AccessMode | None, *, anonymous: bool | None, has_keys: bool) -> AccessMode | None:
    """Return the choice that holds from now on. Keys and settings close a service; no setting reopens it."""
    if has_keys and mode in (None, AccessMode.UNTIL_KEY):
        return AccessMode.CLOSED
    if mode is None and anonymous:
        return AccessMode.UNTIL_KEY
    return AccessMode.CLOSED if mode is not None and anonymous is False else mode


def _require_use(settings: Settings) -> None:
    """Raise `SettingError` if nobody could use a service without keys, because it is not open."""
    if settings.tenants is not None:
        raise SettingError(
            f"tenants: {settings.tenants} has no keys, and the catalog has none: nobody could use the "
            f"service; {_secret_first(settings)}make one with `overspill-service keys hash` or "
            "`overspill-service keys create`"
        )
    if not settings.is_loopback:
        raise SettingError(
            f"listen={settings.listen} is reachable from elsewhere and there are no keys: "
            f"{_secret_first(settings)}create one with `overspill-service keys create`, "
            "name a file with `--tenants`, or say `--anonymous true`"
        )


def _secret_first(settings: Settings) -> str:
    """Return what has to come before the first key: a key that was made without a secret is then refused."""
    return "" if settings.key_secret or settings.is_loopback else f"{_SET_VARIABLE}, "


def _require_safe(settings: Settings, *, is_open: bool, has_keys: bool) -> None:
    if settings.is_loopback:
        return
    if is_open and not settings.anonymous:
        raise SettingError(
            f"listen={settings.listen} is reachable from elsewhere, and this service was opened to all: "
            "say `--anonymous true` again, or `--anonymous false` to require keys"
        )
    if has_keys and not settings.key_secret:
        raise SettingError(
            f"key_secret is empty, and listen={settings.listen} is reachable from elsewhere: "
            f"{_SET_VARIABLE}, and make new keys"
        )


def local_key(settings: Settings) -> str:
    """Return the key of this machine's user, whose clients find it by themselves; make it if there is none.

    Empty beyond loopback, and where the user has no place for it.
    """
    if not settings.is_loopback:
        return ""
    if (path := local_key_file()) is None:
        log.warning("clients on this machine need a key of their own: this user has no home directory")
        return ""
    try:
        return ensure_local_key(path)
    except (NoLocalKey, UnsafeKeyFile) as error:
        log.warning("clients on this machine need a key of their own: %s", error)
        return ""
