"""Make the key of this machine's user: see `overspill.wire.local_key`."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

from overspill.wire import read_local_key

from overspill_service.errors.checks import folder_risk
from overspill_service.resources.private_files import make_private_folder
from overspill_service.tenants.keys import LOCAL_PREFIX, is_key, new_key

if TYPE_CHECKING:
    from pathlib import Path


class NoLocalKey(Exception):
    """There is no key for this machine's user. The message says why."""


def ensure_local_key(path: Path) -> str:
    """Return the key in the file. Make the file if there is none; of several processes, one makes it.

    Raises `NoLocalKey`, `UnsafeKeyFile`.
    """
    try:
        if not (key := read_local_key(path)):
            make_private_folder(path.parent)
            _make(path)
            key = read_local_key(path)
        if risk := folder_risk(path.parent):
            raise NoLocalKey(risk)
    except OSError as error:
        raise NoLocalKey(f"the key file {path} cannot be made or read: {error.strerror}") from error
    if not is_key(key):
        raise NoLocalKey(f"{path} holds no key: remove it, and start again")
    return key


def _make(path: Path) -> None:
    """Write a new key beside the file, then link it there: nobody ever reads a half-written one."""
    fresh = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(new_key(LOCAL_PREFIX) + "\n")
        try:
            os.link(fresh, path)
        except FileExistsError:
            return  # another process was faster
    finally:
        fresh.unlink()
