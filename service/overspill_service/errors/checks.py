"""The results of an operator's `check`: what was probed, whether it works, and what to do."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from overspill_service.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path


class CheckResult(Struct, frozen=True):
    """One probe: its name, whether it succeeded, and what to know or to do."""

    name: str
    ok: bool
    detail: str = ""


def folder_risk(folder: Path) -> str:
    """Return what makes a folder unsafe for captures. Empty if nothing does."""
    status = folder.stat()
    if status.st_uid not in {os.geteuid(), 0}:
        return f"{folder} belongs to another user, who may read and replace everything in it; chown it"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = stat.S_IMODE(status.st_mode)
        return f"{folder} may be written to by other users (its mode is {mode:04o}): chmod 700 it"
    return ""


def foreign_parent(folder: Path) -> str:
    """Return which part of the folder's path belongs to another user, in words. Empty if none does.

    That user could put another folder in its place. The superuser could anyway.
    """
    absolute, real = folder.absolute(), folder.resolve()
    for part in dict.fromkeys((absolute, *absolute.parents, real, *real.parents)):
        with suppress(FileNotFoundError, NotADirectoryError):
            if part.lstat().st_uid not in {os.geteuid(), 0} and part != part.parent:
                return f"{part} belongs to another user, who could put other captures there"
    return ""


def foreign_owner(folder: Path) -> int | None:
    """Return the id of another user, not the superuser, whom the folder belongs to. None if there is none."""
    if not folder.is_dir():
        return None
    owner = folder.stat().st_uid
    return None if owner in {os.geteuid(), 0} else owner


async def run_probe(name: str, probe: Callable[[], Awaitable[str]]) -> CheckResult:
    """Run one probe. It returns a detail, or raises a `ServiceError` that says what is wrong."""
    try:
        return CheckResult(name, ok=True, detail=await probe())
    except ServiceError as error:
        return CheckResult(name, ok=False, detail=str(error))
